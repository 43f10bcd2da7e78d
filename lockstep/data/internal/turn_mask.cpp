// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/data/internal/turn_mask.h"

#include <vector>

#include "lockstep/base/internal/uncounted.h"

namespace lockstep::internal {

void turn_masks(
    const TransformOptions& options,
    std::span<const std::int64_t> indices,
    std::int64_t epoch,
    const TargetFormat& format,
    std::int64_t num_classes,
    TargetRows targets) {
  const bool is_random = options.crop_padding > 0 || options.horizontal_flip;
  if (!is_random || format.kind != TargetKind::kClasses) {
    return;
  }
  const std::int64_t height = format.shape[0];
  const std::int64_t width = format.shape[1];
  const auto numel = static_cast<std::size_t>(height * width);
  for (std::size_t i = 0; i < indices.size(); ++i) {
    const Augmentation choice = augmentation(options, epoch, indices[i]);
    const auto mask = targets.classes.subspan(i * numel, numel);
    const std::vector<std::int64_t> whole(mask.begin(), mask.end());
    std::size_t at = 0;
    for (std::int64_t y = 0; y < height; ++y) {
      for (std::int64_t x = 0; x < width; ++x) {
        const std::int64_t column = choice.flip ? width - 1 - x : x;
        const std::int64_t from_y = y + choice.top - options.crop_padding;
        const std::int64_t from_x = column + choice.left - options.crop_padding;
        const bool is_inside =
            from_y >= 0 && from_y < height && from_x >= 0 && from_x < width;
        mask[at++] =
            is_inside ? whole[static_cast<std::size_t>(from_y * width + from_x)]
                      : uncounted_pixel(num_classes);
      }
    }
  }
}

} // namespace lockstep::internal
