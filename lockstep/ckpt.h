// SPDX-License-Identifier: BSD-3-Clause
//
// Everything that a program needs to read, check, edit and write checkpoint
// files, in one header. No LibTorch:
//   find_package(Lockstep REQUIRED COMPONENTS ckpt)
//   target_link_libraries(app PRIVATE lockstep::ckpt)
//   #include <lockstep/ckpt.h>
#pragma once

// IWYU pragma: begin_exports
#include "lockstep/base/error.h"
#include "lockstep/base/version.h"
#include "lockstep/ckpt/byte_source.h"
#include "lockstep/ckpt/checkpoint.h"
#include "lockstep/ckpt/convert.h"
#include "lockstep/ckpt/edit.h"
#include "lockstep/ckpt/entry.h"
#include "lockstep/ckpt/inspect.h"
#include "lockstep/ckpt/load.h"
#include "lockstep/ckpt/match.h"
#include "lockstep/ckpt/model.h"
#include "lockstep/ckpt/optim.h"
#include "lockstep/ckpt/print.h"
#include "lockstep/ckpt/scan.h"
#include "lockstep/ckpt/tensor.h"
#include "lockstep/ckpt/value.h"
#include "lockstep/ckpt/verify.h"
#include "lockstep/ckpt/walk.h"
// IWYU pragma: end_exports
