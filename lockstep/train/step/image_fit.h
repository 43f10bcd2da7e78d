// SPDX-License-Identifier: BSD-3-Clause
//
// Which size a run's images get, from `--img-size` and what the model takes.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "lockstep/data/dataset.h"

namespace lockstep::train {

struct ImageFit {
  /// Units: pixels of both sides that all images have; 0: they stay as they
  /// are.
  std::int64_t size = 0;
  /// "images 28x28 resized to 32x32"; empty if nothing is resized.
  std::string text = {};
};

/// `img_size` is the user's, 0 if the size is not given; `model` a name of the
/// registry, empty for a program's own, whose images stay as they are unless
/// the size is given; `shape` that of a sample.
/// Errors: throws kInvalidArgument (E_IMAGE_SIZE) for a size that the model
/// does not take, and for one of samples that are not images.
ImageFit fit_images(
    std::int64_t img_size,
    std::string_view model,
    std::span<const std::int64_t> shape);

/// "test images 80x80 resized to 64x64"; empty if those of a sample of `shape`
/// are not.
std::string resize_text(
    std::string_view what,
    std::span<const std::int64_t> shape,
    const ImageFit& fit);

/// `data`, or a `ResizedDataset` where its images are of another size.
std::shared_ptr<const Dataset> resized(
    std::shared_ptr<const Dataset> data,
    const ImageFit& fit);

} // namespace lockstep::train
