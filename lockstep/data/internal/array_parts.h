// SPDX-License-Identifier: BSD-3-Clause
//
// From arrays that were read to data sets: what the samples and the targets
// are, and both parts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "lockstep/data/internal/array_dataset.h"
#include "lockstep/data/open_dataset.h"

namespace lockstep::internal {

/// What was read of one part.
struct ArrayPart {
  ArrayElements inputs = {};
  /// One of the two. Classes are as the file has them.
  std::vector<std::int64_t> classes = {};
  ArrayElements targets = {};
  TargetFormat target = {.kind = TargetKind::kClasses};
  std::string file = {};
  /// For messages about labels; empty: as `file`.
  std::string label_file = {};
};

/// What both parts are told beside their arrays.
struct ArrayNames {
  /// Of the classes; their number is then known. Empty: as the labels say.
  std::vector<std::string> classes = {};
  /// Of the values.
  std::vector<std::string> values = {};
};

/// The data sets of one part, which is split, or of two. Images of one or three
/// or four channels, [C, H, W], or [H, W, C] where the last dimension is 1, 3
/// or 4 and the first is not; [H, W] is one channel.
/// Errors: throws kMismatch for parts of different shapes (E_DATA_SHAPE), for
/// inputs and targets of different counts (E_DATA_SHAPE) and for wrong labels
/// (E_LABEL); kInvalidArgument for a split that is none.
DatasetParts array_parts(
    std::vector<ArrayPart> parts,
    const DatasetOptions& options,
    const ArrayNames& names = {});

/// Whether images of that shape are stored [H, W, C].
bool is_channels_last(const std::vector<std::int64_t>& shape);

} // namespace lockstep::internal
