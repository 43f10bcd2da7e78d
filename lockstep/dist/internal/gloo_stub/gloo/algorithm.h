// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "lockstep/dist/internal/gloo_stub/gloo/declarations.h"
