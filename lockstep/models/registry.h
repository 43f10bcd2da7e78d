// SPDX-License-Identifier: BSD-3-Clause
//
// Models by name, as the flag --model takes them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/models/model.h"

namespace lockstep {

/// Builds a model with fresh weights from the default generator.
///
/// ResNet and VGG are built as torchvision does (3 channels, 1000 classes);
/// then the first convolution is replaced if `in_channels` differs, then the
/// last layer if `num_classes` differs, both with PyTorch's default
/// initialisation. Equal seeds give the bits that Python gets this way. FCN and
/// DeepLabV3 are built for `num_classes` at once, as torchvision's functions
/// are. What `num_classes` is if nothing is asked for is 1000, for all.
/// Errors: throws kInvalidArgument for an unknown name (with the nearest one)
/// (E_MODEL_NAME), a number below 1, or `aux_loss` where there is no second
/// head (E_MODEL_OPTION).
std::shared_ptr<Model> make_model(
    std::string_view name,
    const ModelOptions& options = {});

/// What a model says of an image.
enum class ModelTask {
  /// A score of each class: [N, num_classes].
  kClassification,
  /// A score of each class for each pixel, at the size of the images:
  /// [N, num_classes, H, W].
  kSegmentation,
};

/// What the model of this name is for. Errors: as `make_model`.
ModelTask model_task(std::string_view model);

/// Which images a model takes, in height and in width.
struct ImageSizes {
  /// Units: pixels.
  std::int64_t smallest = 1;
  /// Units: pixels; 0: no limit.
  std::int64_t largest = 0;

  [[nodiscard]] bool takes(std::int64_t size) const;
  /// "at least 32 x 32", "32 x 32 only".
  [[nodiscard]] std::string to_text() const;
};

/// What the model of this name takes. Errors: as `make_model`.
ImageSizes image_sizes(std::string_view model);

/// Names that `make_model` takes.
std::vector<std::string> model_names();

} // namespace lockstep
