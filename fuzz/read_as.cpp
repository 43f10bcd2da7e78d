// SPDX-License-Identifier: BSD-3-Clause
#include "fuzz/read_as.h"

#include <algorithm>

#include "fuzz/exercise.h"
#include "fuzz/watch.h"
#include "lockstep/ckpt/core/budget.h"

namespace lockstep::fuzz {

void read_as(const ckpt::Format& format, ByteSpan bytes) {
  constexpr std::size_t kHeadBytes = 512;
  const Watch watch(bytes);
  ckpt::ReadInput input{
      .source = watch.source(),
      .head = bytes.first(std::min(bytes.size(), kHeadBytes)),
      .path = "input",
      .options = watch.options()};
  input.options.limits = ckpt::counting(input.options.limits, bytes.size());
  if (format.claims == nullptr) {
    return;
  }
  const auto claimed = format.claims(input);
  if (!claimed || !*claimed) {
    return;
  }
  auto file = format.read(input);
  if (file) {
    file->budget = input.options.limits.budget;
    exercise(*file);
  }
}

} // namespace lockstep::fuzz
