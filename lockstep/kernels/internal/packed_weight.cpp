// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/kernels/internal/packed_weight.h"

#include <ATen/ops/empty.h>

namespace lockstep::kernels {
namespace {

using at::Tensor;

std::int64_t count(const std::vector<std::int64_t>& numbers) {
  return static_cast<std::int64_t>(numbers.size());
}

// Row by row of [output][out][pixel][in]: whole vectors of channels.
Tensor pack_channels_last(
    const Tensor& weight,
    const Meeting& meeting,
    const TapTable& taps) {
  const Tensor by_tap = weight.flatten(2).permute({2, 0, 1});
  const std::int64_t outputs = count(meeting.outputs);
  const std::int64_t pixels = count(meeting.pixels);
  Tensor packed = at::empty(
      {outputs, weight.size(0), pixels, weight.size(1)},
      weight.options());
  for (std::int64_t q = 0; q < outputs; ++q) {
    for (std::int64_t p = 0; p < pixels; ++p) {
      const std::int64_t tap = taps.tap(
          meeting.outputs[static_cast<std::size_t>(q)],
          meeting.pixels[static_cast<std::size_t>(p)]);
      packed.select(0, q).select(1, p).copy_(by_tap.select(0, tap));
    }
  }
  return packed.view({outputs * weight.size(0), -1});
}

// [out][output][in][pixel]: the weight is read once, in its order.
template <class Bits>
void interleave(
    const Tensor& weight,
    const std::vector<std::int64_t>& taps, // [output][pixel]
    std::int64_t pixels,
    const Tensor& packed) {
  const std::int64_t in = weight.size(1);
  const std::int64_t all_taps = weight.size(2) * weight.size(3);
  const auto* from = static_cast<const Bits*>(weight.const_data_ptr());
  auto* to = static_cast<Bits*>(packed.mutable_data_ptr());
  for (std::int64_t out = 0; out < weight.size(0); ++out) {
    for (auto first = taps.begin(); first != taps.end(); first += pixels) {
      const Bits* channel = from;
      for (std::int64_t c = 0; c < in; ++c, channel += all_taps) {
        for (auto tap = first; tap != first + pixels; ++tap) {
          *to++ = channel[*tap];
        }
      }
    }
    from += in * all_taps;
  }
}

Tensor pack_contiguous(
    const Tensor& weight,
    const Meeting& meeting,
    const TapTable& taps) {
  std::vector<std::int64_t> used;
  for (const std::int64_t output : meeting.outputs) {
    for (const std::int64_t pixel : meeting.pixels) {
      used.push_back(taps.tap(output, pixel));
    }
  }
  const std::int64_t pixels = count(meeting.pixels);
  const Tensor packed = at::empty(
      {weight.size(0) * count(meeting.outputs), weight.size(1) * pixels},
      weight.options());
  const bool is_float = weight.scalar_type() == at::kFloat;
  const auto fill =
      is_float ? &interleave<std::uint32_t> : &interleave<std::uint16_t>;
  fill(weight.contiguous(), used, pixels, packed);
  return packed;
}

} // namespace

Tensor pack_weight(
    const Tensor& weight,
    const Meeting& meeting,
    const TapTable& taps,
    at::MemoryFormat layout) {
  const bool is_channels_last = layout == at::MemoryFormat::ChannelsLast;
  if (meeting.outputs.size() == 1 && meeting.pixels.size() == 1) {
    const Tensor tap = weight.flatten(2).select(
        2,
        taps.tap(meeting.outputs.front(), meeting.pixels.front()));
    return tap.stride(1) == 1 ? tap : tap.contiguous();
  }
  return is_channels_last ? pack_channels_last(weight, meeting, taps)
                          : pack_contiguous(weight, meeting, taps);
}

} // namespace lockstep::kernels
