// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/kernels/tap_panels.h"

#include <algorithm>

#include <ATen/ops/empty.h>

#include "lockstep/kernels/convolution_tensors.h"
#include "lockstep/kernels/product_loops.h"
#include "lockstep/kernels/threads.h"

namespace lockstep::kernels {
namespace {

using at::Tensor;

// Rows of a panel that are packed together: a line of a cache.
constexpr std::int64_t kPackedRows = 16;
static_assert(kChannelStep % kPackedRows == 0);

// kPackedRows rows of a panel out of a matrix whose rows are `row_step` apart,
// and whose columns `column_step`. One of both is 1: that way lines are read,
// all of them at once, since lines that are far apart may share a place in a
// cache.
void fill_panel(
    const float* from,
    std::int64_t row_step,
    std::int64_t column_step,
    float* to) {
  const std::int64_t panel = product_loops().panel;
  if (row_step == 1) {
    for (std::int64_t column = 0; column < panel; ++column) {
      for (std::int64_t row = 0; row < kPackedRows; ++row) {
        to[row * panel + column] = from[row + column * column_step];
      }
    }
  } else {
    for (std::int64_t row = 0; row < kPackedRows; ++row) {
      std::copy_n(from + row * row_step, panel, to + row * panel);
    }
  }
}

} // namespace

TapPanels pack_taps(
    const Tensor& weight,
    const std::vector<bool>& is_used,
    bool is_forward) {
  const std::int64_t taps = std::ssize(is_used);
  const std::int64_t out = weight.size(0);
  const std::int64_t in = weight.size(1);
  const Tensor ordered = channels_last(weight);
  TapPanels packed{
      .numbers = at::empty({taps * in * out}, ordered.options()),
      .depth = is_forward ? in : out,
      .columns = is_forward ? out : in};
  const std::int64_t panel = product_loops().panel;
  const std::int64_t panels = packed.columns / panel;
  const std::int64_t row_step = is_forward ? 1 : taps * in;
  const std::int64_t column_step = is_forward ? taps * in : 1;
  const auto* from = ordered.const_data_ptr<float>();
  auto* to = packed.numbers.mutable_data_ptr<float>();
  // The inner blocks follow each other in memory, of each line that is read.
  const std::int64_t blocks = packed.depth / kPackedRows;
  const std::int64_t outer = is_forward ? panels : blocks;
  const std::int64_t inner = is_forward ? blocks : panels;
  in_threads(taps * outer, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin * inner; i < end * inner; ++i) {
      const std::int64_t tap = i / (outer * inner);
      const std::int64_t of_outer = i / inner % outer;
      const std::int64_t p = is_forward ? of_outer : i % inner;
      const std::int64_t row =
          (is_forward ? i % inner : of_outer) * kPackedRows;
      if (is_used[static_cast<std::size_t>(tap)]) {
        fill_panel(
            from + tap * in + row * row_step + p * panel * column_step,
            row_step,
            column_step,
            to + ((tap * panels + p) * packed.depth + row) * panel);
      }
    }
  });
  return packed;
}

} // namespace lockstep::kernels
