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
#include "lockstep/base/result.h"
#include "lockstep/base/version.h"
#include "lockstep/ckpt/checkpoint.h"
#include "lockstep/ckpt/digest.h"
#include "lockstep/ckpt/edit/convert.h"
#include "lockstep/ckpt/edit/key_edit.h"
#include "lockstep/ckpt/edit/match_by_position.h"
#include "lockstep/ckpt/edit/tree_edit.h"
#include "lockstep/ckpt/edit/weights.h"
#include "lockstep/ckpt/find_path.h"
#include "lockstep/ckpt/flatten.h"
#include "lockstep/ckpt/inspect/diff.h"
#include "lockstep/ckpt/inspect/listing.h"
#include "lockstep/ckpt/inspect/salvage.h"
#include "lockstep/ckpt/model/extract_model.h"
#include "lockstep/ckpt/optim/optim_convert.h"
#include "lockstep/ckpt/print.h"
#include "lockstep/ckpt/scan/scan.h"
#include "lockstep/ckpt/summary.h"
#include "lockstep/ckpt/tensor_bytes.h"
#include "lockstep/ckpt/value_walk.h"
#include "lockstep/ckpt/verify.h"
// IWYU pragma: end_exports
