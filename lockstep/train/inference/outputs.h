// SPDX-License-Identifier: BSD-3-Clause
//
// What a model's outputs mean for people: shares of classes, values, masks.
#pragma once

#include <ATen/core/Tensor.h>

#include "lockstep/train/checkpoints/trained_data.h"

namespace lockstep::train {

/// Whether `a` comes before `b` where the highest come first: what is no number
/// is above infinity, as `torch.sort` has it.
bool is_above(double a, double b);

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
