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
#include "lockstep/ckpt/core/find_path.h"
#include "lockstep/ckpt/core/flatten.h"
#include "lockstep/ckpt/core/tensor_bytes.h"
#include "lockstep/ckpt/core/value_walk.h"
#include "lockstep/ckpt/load.h"
#include "lockstep/ckpt/match.h"
#include "lockstep/ckpt/optim.h"
#include "lockstep/ckpt/print.h"
#include "lockstep/ckpt/scan.h"
#include "lockstep/ckpt/tools/digest/digest.h"
#include "lockstep/ckpt/tools/edit/convert.h"
#include "lockstep/ckpt/tools/edit/key_edit.h"
#include "lockstep/ckpt/tools/edit/tree_edit.h"
#include "lockstep/ckpt/tools/edit/weights.h"
#include "lockstep/ckpt/tools/inspect/diff.h"
#include "lockstep/ckpt/tools/inspect/listing.h"
#include "lockstep/ckpt/tools/inspect/salvage.h"
#include "lockstep/ckpt/tools/inspect/summary.h"
#include "lockstep/ckpt/tools/model/extract_model.h"
#include "lockstep/ckpt/tools/verify/verify.h"
// IWYU pragma: end_exports
