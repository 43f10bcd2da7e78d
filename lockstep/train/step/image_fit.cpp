// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/step/image_fit.h"

#include <algorithm>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/data/internal/resized_dataset.h"
#include "lockstep/train/step/named_model.h"

namespace lockstep::train {
namespace {

[[noreturn]] void refuse_size(std::string message, std::string hint) {
  raise(
      {.code = ErrorCode::kInvalidArgument,
       .op = "train.data",
       .message = std::move(message),
       .hint = std::move(hint),
       .detail = "E_IMAGE_SIZE"});
}

/// The size nearest to `height` x `width` that `sizes` takes; 0: as they are.
std::int64_t
default_size(const ImageSizes& sizes, std::int64_t height, std::int64_t width) {
  if (height != width && sizes.takes(height) && sizes.takes(width)) {
    return 0;
  }
  const std::int64_t size = std::max({height, width, sizes.smallest});
  return sizes.largest == 0 ? size : std::min(size, sizes.largest);
}

} // namespace

ImageFit fit_images(
    std::int64_t img_size,
    std::string_view model,
    std::span<const std::int64_t> shape) {
  if (shape.size() != 3) {
    if (img_size > 0) {
      refuse_size(
          format(
              "--img-size {}: the samples are not images; expected 3 "
              "dimensions "
              "(channels, height, width), got {}",
              img_size,
              shape.size()),
          "leave it out");
    }
    return {};
  }
  const std::int64_t height = shape[1];
  const std::int64_t width = shape[2];
  const ImageSizes sizes =
      model.empty() ? ImageSizes() : named_image_sizes(model);
  if (img_size > 0 && !sizes.takes(img_size)) {
    refuse_size(
        format(
            "--img-size {}: {} takes images of {}",
            img_size,
            model,
            sizes.to_text()),
        "leave it out: the size is chosen by the model");
  }
  ImageFit fit{.size = img_size};
  if (img_size == 0 && !model.empty()) {
    fit.size = default_size(sizes, height, width);
  }
  fit.text = resize_text("images", shape, fit);
  return fit;
}

std::string resize_text(
    std::string_view what,
    std::span<const std::int64_t> shape,
    const ImageFit& fit) {
  if (fit.size == 0 || shape.size() != 3 ||
      (shape[1] == fit.size && shape[2] == fit.size)) {
    return {};
  }
  return format(
      "{} {}x{} resized to {}x{}",
      what,
      shape[1],
      shape[2],
      fit.size,
      fit.size);
}

std::shared_ptr<const Dataset> resized(
    std::shared_ptr<const Dataset> data,
    const ImageFit& fit) {
  const std::vector<std::int64_t> shape = data->sample_shape();
  const bool fits =
      fit.size == 0 ||
      (shape.size() == 3 && shape[1] == fit.size && shape[2] == fit.size);
  if (fits) {
    return data;
  }
  return std::make_shared<ResizedDataset>(std::move(data), fit.size, fit.size);
}

} // namespace lockstep::train
