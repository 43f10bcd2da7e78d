// SPDX-License-Identifier: BSD-3-Clause
//
// Models by name, as the flag --model takes them.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/models/model.h"
#include "lockstep/models/options.h"

namespace lockstep {

/// Builds a model with fresh weights from the default generator.
///
/// ResNet and VGG are built as torchvision does (3 channels, 1000 classes);
/// then the first convolution is replaced if `in_channels` differs, then the
/// last layer if `num_classes` differs, both with PyTorch's default
/// initialisation. Equal seeds give the bits that Python gets this way.
/// Errors: throws kInvalidArgument for an unknown name (with the nearest one)
/// or a count below 1.
std::shared_ptr<Model> make_model(
    std::string_view name,
    const ModelOptions& options = {});

/// Names that `make_model` takes.
std::vector<std::string> model_names();

} // namespace lockstep
