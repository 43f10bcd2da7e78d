// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "lockstep/distributed/group/gloo_stub/gloo/declarations.h"
