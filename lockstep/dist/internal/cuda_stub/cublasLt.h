// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "lockstep/dist/internal/cuda_stub/declarations.h"
