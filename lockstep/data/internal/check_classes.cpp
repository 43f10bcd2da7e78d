// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/data/internal/check_classes.h"

#include <algorithm>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"

namespace lockstep::internal {

// A sample whose target is outside the classes trains nothing, or crashes a
// GPU.
void check_classes(
    const Dataset& dataset,
    std::span<const std::int64_t> indices,
    std::span<const std::int64_t> classes) {
  const std::int64_t count = dataset.num_classes();
  const TargetFormat target = dataset.target_format();
  const std::int64_t uncounted = target.shape.empty() ? -100 : 255;
  const auto wrong = std::ranges::find_if(classes, [&](std::int64_t number) {
    return (number < 0 || number >= count) && number != uncounted;
  });
  if (count == 0 || wrong == classes.end()) {
    return;
  }
  const std::int64_t sample = indices
      [static_cast<std::size_t>(wrong - classes.begin()) /
       static_cast<std::size_t>(target.numel())];
  const std::string name = dataset.sample_name(sample);
  raise(
      {.code = ErrorCode::kInvalidArgument,
       .op = "data.read",
       .message = format(
           "the target of sample {} is not a class; expected 0 to {}{}, got {}",
           sample,
           count - 1,
           target.shape.empty() ? "" : ", or 255 for what is not counted",
           *wrong),
       .path = name == format("sample {}", sample) ? "" : name,
       .detail = "E_LABEL"});
}

} // namespace lockstep::internal
