// SPDX-License-Identifier: BSD-3-Clause
//
// What a model's outputs mean for people: shares of classes, values, masks.
#pragma once

#include <ATen/core/Tensor.h>

#include "lockstep/train/state/trained_data.h"

namespace lockstep::train {

enum class OutputKind {
  /// One class for each sample: shares by softmax.
  kClasses,
  /// Any number of labels: a share each by sigmoid.
  kLabels,
  /// One row of values for each sample.
  kValues,
  /// Values in any other shape: heat maps.
  kMaps,
  /// A class for each pixel.
  kMasks
};

/// What a model of that task and those targets gives. The outputs of a task of
/// a program's own are taken for what its targets are. Errors: throws
/// kUnsupported (E_TASK) for data without targets, and for classes in any other
/// shape.
OutputKind output_kind(const TrainedData& data);

/// The scores of a batch, float32 on the CPU. Shapes as those of `outputs`.
/// Errors: throws kMismatch (E_TASK) if these are not of that kind, for so many
/// names.
at::Tensor
scores_of(const at::Tensor& outputs, OutputKind kind, const TrainedData& data);

/// Shape: [N, H, W] uint8 of outputs [N, classes, H, W]: the highest one's
/// class. Errors: throws kMismatch (E_TASK) for other outputs, kUnsupported for
/// more than 256 classes.
at::Tensor masks_of(const at::Tensor& outputs, const TrainedData& data);

} // namespace lockstep::train
