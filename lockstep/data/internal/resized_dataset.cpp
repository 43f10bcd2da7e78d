// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/data/internal/resized_dataset.h"

#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"

namespace lockstep {
namespace {

ImageShape shape_of(const Dataset& source) {
  const std::vector<std::int64_t> shape = source.sample_shape();
  if (shape.size() != 3) {
    raise(
        {.code = ErrorCode::kInvalidArgument,
         .op = "data.resize",
         .message = format(
             "only images can be resized; expected samples of 3 dimensions "
             "(channels, height, width), got {}",
             shape.size()),
         .detail = "E_IMAGE_SIZE"});
  }
  return {.channels = shape[0], .height = shape[1], .width = shape[2]};
}

} // namespace

ResizedDataset::ResizedDataset(
    std::shared_ptr<const Dataset> source,
    std::int64_t height,
    std::int64_t width)
    : source_(std::move(source)), resize_(shape_of(*source_), height, width) {}

std::int64_t ResizedDataset::size() const {
  return source_->size();
}

std::vector<std::int64_t> ResizedDataset::sample_shape() const {
  const ImageShape& shape = resize_.to();
  return {shape.channels, shape.height, shape.width};
}

std::int64_t ResizedDataset::num_classes() const {
  return source_->num_classes();
}

void ResizedDataset::read(
    std::span<const std::int64_t> indices,
    std::int64_t epoch,
    std::span<float> images,
    std::span<std::int64_t> targets) const {
  const std::int64_t from = resize_.from().numel();
  const std::int64_t to = resize_.to().numel();
  std::vector<float> originals(indices.size() * static_cast<std::size_t>(from));
  source_->read(indices, epoch, originals, targets);
  for (std::int64_t i = 0; i < std::ssize(indices); ++i) {
    resize_.apply(originals.data() + i * from, images.data() + i * to);
  }
}

} // namespace lockstep
