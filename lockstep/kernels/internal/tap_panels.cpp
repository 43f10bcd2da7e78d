// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/kernels/internal/tap_panels.h"

#include <algorithm>
#include <cstring>

#include <ATen/ops/empty.h>

#include "lockstep/kernels/internal/convolution_tensors.h"
#include "lockstep/kernels/internal/threads.h"

namespace lockstep::kernels {
namespace {

using at::Tensor;

// Rows of a panel that are packed together: a line of a cache.
constexpr std::int64_t kPackedRows = 16;
static_assert(kChannelStep % (2 * kPackedRows) == 0);

// kPackedRows rows of a panel out of a matrix whose columns are `column_step`
// apart. Lines are read, all of them at once, since lines that are far apart
// may share a place in a cache.
template <class Number>
void fill_transposed(
    const Stored<Number>* from,
    std::int64_t column_step,
    std::int64_t panel,
    Number* to) {
  for (std::int64_t column = 0; column < panel; ++column) {
    const Stored<Number>* line = from + column * column_step;
    for (std::int64_t row = 0; row < kPackedRows; ++row) {
      // A pair may begin anywhere.
      std::memcpy(
          to + row * panel + column,
          line + row * kStored<Number>,
          sizeof(Number));
    }
  }
}

// The same of a matrix whose rows are `row_step` apart.
void fill(
    const float* from,
    std::int64_t row_step,
    std::int64_t panel,
    float* to) {
  for (std::int64_t row = 0; row < kPackedRows; ++row) {
    std::copy_n(from + row * row_step, panel, to + row * panel);
  }
}

// Two rows become one of pairs.
void fill(
    const std::uint16_t* from,
    std::int64_t row_step,
    std::int64_t panel,
    Pair* to) {
  for (std::int64_t row = 0; row < kPackedRows; ++row) {
    const std::uint16_t* first = from + 2 * row * row_step;
    pair_loops()->join(first, first + row_step, panel, to + row * panel);
  }
}

} // namespace

template <class Number>
TapPanels<Number> pack_taps(
    const Tensor& weight,
    const std::vector<bool>& is_used,
    bool is_forward) {
  const std::int64_t taps = std::ssize(is_used);
  const std::int64_t out = weight.size(0);
  const std::int64_t in = weight.size(1);
  const std::int64_t panel = product_loops().panel;
  const Tensor ordered = channels_last(weight);
  TapPanels<Number> packed{
      .numbers = at::empty({taps * in * out}, ordered.options()),
      .depth = (is_forward ? in : out) / kStored<Number>,
      .columns = is_forward ? out : in};
  const auto* from =
      static_cast<const Stored<Number>*>(ordered.const_data_ptr());
  auto* to = static_cast<Number*>(packed.numbers.mutable_data_ptr());
  const std::int64_t panels = packed.columns / panel;
  const std::int64_t blocks = packed.depth / kPackedRows;
  // The inner blocks follow each other in memory, of each line that is read.
  const std::int64_t outer = is_forward ? panels : blocks;
  const std::int64_t inner = is_forward ? blocks : panels;
  in_threads(taps * outer, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin * inner; i < end * inner; ++i) {
      const std::int64_t tap = i / (outer * inner);
      if (!is_used[static_cast<std::size_t>(tap)]) {
        continue;
      }
      const std::int64_t of_outer = i / inner % outer;
      const std::int64_t p = is_forward ? of_outer : i % inner;
      const std::int64_t row =
          (is_forward ? i % inner : of_outer) * kPackedRows;
      Number* block = to + ((tap * panels + p) * packed.depth + row) * panel;
      const Stored<Number>* first = from + tap * in;
      if (is_forward) {
        first += row * kStored<Number> + p * panel * taps * in;
        fill_transposed(first, taps * in, panel, block);
      } else {
        first += row * kStored<Number> * taps * in + p * panel;
        fill(first, taps * in, panel, block);
      }
    }
  });
  return packed;
}

template TapPanels<float>
pack_taps(const at::Tensor&, const std::vector<bool>&, bool);
template TapPanels<Pair>
pack_taps(const at::Tensor&, const std::vector<bool>&, bool);

} // namespace lockstep::kernels
