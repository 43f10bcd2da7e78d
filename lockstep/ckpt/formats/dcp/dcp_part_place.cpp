// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/formats/dcp/dcp_part_place.h"

#include <algorithm>
#include <cstring>

namespace lockstep::ckpt::internal {

PartPlace::PartPlace(
    const std::vector<std::int64_t>& whole,
    const std::vector<std::int64_t>& offsets,
    const std::vector<std::int64_t>& sizes,
    std::uint64_t element)
    : dimensions_(whole.size()), bytes_(element), run_(element) {
  std::uint64_t stride = element;
  for (std::size_t d = whole.size(); d-- > 0;) {
    const bool is_inner_whole = run_ == stride;
    dimensions_[d] = {
        .offset = static_cast<std::uint64_t>(offsets[d]),
        .size = static_cast<std::uint64_t>(sizes[d]),
        .stride = stride,
        .box_stride = bytes_};
    stride *= static_cast<std::uint64_t>(whole[d]);
    bytes_ *= dimensions_[d].size;
    if (is_inner_whole) {
      run_ = bytes_;
    }
  }
  begin_ = place_of(0);
  end_ = place_of(bytes_ - 1) + 1;
}

std::uint64_t PartPlace::before(std::uint64_t at) const {
  std::uint64_t count = 0;
  for (const Dimension& d : dimensions_) {
    const std::uint64_t index = at / d.stride;
    at %= d.stride;
    if (index < d.offset) {
      return count;
    }
    if (index - d.offset >= d.size) {
      return count + d.size * d.box_stride;
    }
    count += (index - d.offset) * d.box_stride;
  }
  return count + at;
}

void PartPlace::put(
    std::uint64_t at,
    ByteSpan bytes,
    std::uint64_t front,
    std::span<std::byte> out) const {
  while (!bytes.empty()) {
    const std::uint64_t count =
        std::min<std::uint64_t>(bytes.size(), run_ - at % run_);
    std::memcpy(out.data() + (place_of(at) - front), bytes.data(), count);
    bytes = bytes.subspan(count);
    at += count;
  }
}

std::uint64_t PartPlace::place_of(std::uint64_t at) const {
  std::uint64_t place = 0;
  for (const Dimension& d : dimensions_) {
    place += (d.offset + at / d.box_stride) * d.stride;
    at %= d.box_stride;
  }
  return place + at;
}

} // namespace lockstep::ckpt::internal
