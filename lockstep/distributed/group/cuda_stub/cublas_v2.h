// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "lockstep/distributed/group/cuda_stub/declarations.h"
