// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/kernels/internal/direct_loops.h"

#include <algorithm>
#include <cstring>

#include <ATen/ceil_div.h>

#include "lockstep/kernels/internal/threads.h"

namespace lockstep::kernels {
namespace {

using at::ceil_div;

// Images that are worked on together: enough to read a weight seldom, few
// enough for a cache.
constexpr std::int64_t kImagesTogether = 32;
// Output channels of a weight's gradient that a thread computes at a time.
constexpr std::int64_t kGradientRows = 32;
// Pairs of images that are gone through position by position: so many streams.
constexpr std::int64_t kPairsTogether = 16;

void write_row(const float* from, std::int64_t count, float* to) {
  std::copy_n(from, count, to);
}

void write_row(const float* from, std::int64_t count, std::uint16_t* to) {
  pair_loops()->round(from, count, to);
}

template <class Number>
void add_terms(
    const DirectSums<Number>& of,
    const std::vector<Term>& terms,
    std::int64_t images,
    const Number* from,
    float* sums) {
  const std::int64_t panel = product_loops().panel;
  const std::int64_t from_row = of.weight.depth + kRowGap;
  for (const Term& term : terms) {
    multiply(Product<Number>{
        .a = from + term.from * images * from_row,
        .a_row = from_row,
        .a_step = 1,
        .b = of.weight.of(term.tap),
        .b_step = panel,
        .b_panel = of.weight.depth * panel,
        .to = sums,
        .to_row = of.weight.columns + kRowGap,
        .rows = images,
        .columns = of.weight.columns,
        .depth = of.weight.depth,
        .is_added = true});
  }
}

template <class Number>
void convolve_images(
    const DirectSums<Number>& of,
    std::int64_t image,
    std::int64_t images) {
  const std::int64_t channels = of.weight.depth * kStored<Number>;
  const std::int64_t columns = of.weight.columns;
  const std::int64_t from_row = of.weight.depth + kRowGap;
  const std::int64_t to_row = columns + kRowGap;
  const std::int64_t rows = of.from_positions * images;
  auto* from =
      static_cast<Number*>(thread_scratch(rows * from_row + images * to_row));
  auto* sums = reinterpret_cast<float*>(from + rows * from_row);
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t source =
        (image + row % images) * of.from_positions + row / images;
    std::memcpy(
        from + row * from_row,
        of.from + source * channels,
        static_cast<std::size_t>(of.weight.depth) * sizeof(Number));
  }
  const std::int64_t positions = std::ssize(of.terms);
  for (std::int64_t position = 0; position < positions; ++position) {
    for (std::int64_t i = 0; i < images; ++i) {
      if (of.bias != nullptr) {
        std::copy_n(of.bias, columns, sums + i * to_row);
      } else {
        std::fill_n(sums + i * to_row, columns, 0.0F);
      }
    }
    const auto& terms = of.terms[static_cast<std::size_t>(position)];
    add_terms(of, terms, images, from, sums);
    for (std::int64_t i = 0; i < images; ++i) {
      write_row(
          sums + i * to_row,
          columns,
          of.to + ((image + i) * positions + position) * columns);
    }
  }
}

// Some rows (output channels). Outputs are gone through one by one, so that
// what the taps of one read stays in a cache for the next.
template <class Number>
void compute_rows(
    const DirectGradient<Number>& of,
    std::int64_t row,
    std::int64_t rows) {
  const std::int64_t to_row = of.taps * of.in;
  std::vector<bool> is_begun(static_cast<std::size_t>(of.taps));
  for (std::int64_t output = 0; output < std::ssize(of.terms); ++output) {
    for (const Term& term : of.terms[static_cast<std::size_t>(output)]) {
      const auto tap = static_cast<std::size_t>(term.tap);
      multiply(Product<Number>{
          .a = of.grads.first + output * of.grads.position_step + row,
          .a_row = 1,
          .a_step = of.grads.image_step,
          .b = of.input.first + term.from * of.input.position_step,
          .b_step = of.input.image_step,
          .b_panel = product_loops().panel,
          .to = of.to + row * to_row + term.tap * of.in,
          .to_row = to_row,
          .rows = rows,
          .columns = of.in,
          .depth = of.batch,
          .is_added = is_begun[tap]});
      is_begun[tap] = true;
    }
  }
  for (std::int64_t i = 0; i < rows * of.taps; ++i) {
    if (!is_begun[static_cast<std::size_t>(i % of.taps)]) {
      std::fill_n(of.to + row * to_row + i * of.in, of.in, 0.0F);
    }
  }
}

} // namespace

Terms terms_of_outputs(const TapTable& taps) {
  Terms terms(static_cast<std::size_t>(taps.outputs()));
  taps.for_each([&](std::int64_t output, std::int64_t pixel, std::int64_t tap) {
    terms[static_cast<std::size_t>(output)].push_back(
        {.from = pixel, .tap = tap});
  });
  return terms;
}

Terms terms_of_pixels(const TapTable& taps) {
  Terms terms(static_cast<std::size_t>(taps.pixels()));
  taps.for_each([&](std::int64_t output, std::int64_t pixel, std::int64_t tap) {
    terms[static_cast<std::size_t>(pixel)].push_back(
        {.from = output, .tap = tap});
  });
  return terms;
}

std::vector<bool> used_taps(const Terms& terms, std::int64_t taps) {
  std::vector<bool> is_used(static_cast<std::size_t>(taps));
  for (const auto& of_position : terms) {
    for (const Term& term : of_position) {
      is_used[static_cast<std::size_t>(term.tap)] = true;
    }
  }
  return is_used;
}

template <class Number>
void convolve(const DirectSums<Number>& sums, std::int64_t batch) {
  in_threads(
      ceil_div(batch, kRowStep),
      1,
      [&](std::int64_t begin, std::int64_t end) {
        const std::int64_t last = std::min(end * kRowStep, batch);
        for (std::int64_t image = begin * kRowStep; image < last;
             image += kImagesTogether) {
          convolve_images(sums, image, std::min(kImagesTogether, last - image));
        }
      });
}

template <class Number>
void compute_gradient(const DirectGradient<Number>& gradient) {
  const std::int64_t parts = ceil_div(gradient.out, kGradientRows);
  in_threads(parts, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin * kGradientRows;
         row < std::min(end * kGradientRows, gradient.out);
         row += kGradientRows) {
      compute_rows(gradient, row, std::min(kGradientRows, gradient.out - row));
    }
  });
}

void pair_images(
    const std::uint16_t* from,
    std::int64_t batch,
    std::int64_t positions,
    std::int64_t channels,
    Pair* to) {
  const std::vector<std::uint16_t> zeros(
      static_cast<std::size_t>(batch % 2 * channels));
  const std::int64_t pairs = ceil_div(batch, std::int64_t{2});
  const auto pair_some = [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t position = 0; position < positions; ++position) {
      for (std::int64_t pair = begin; pair < end; ++pair) {
        const std::uint16_t* first =
            from + (2 * pair * positions + position) * channels;
        pair_loops()->join(
            first,
            2 * pair + 1 < batch ? first + positions * channels : zeros.data(),
            channels,
            to + (position * pairs + pair) * channels);
      }
    }
  };
  in_threads(
      ceil_div(pairs, kPairsTogether),
      1,
      [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
          const std::int64_t first = i * kPairsTogether;
          pair_some(first, std::min(first + kPairsTogether, pairs));
        }
      });
}

template void convolve(const DirectSums<float>&, std::int64_t);
template void convolve(const DirectSums<Pair>&, std::int64_t);
template void compute_gradient(const DirectGradient<float>&);
template void compute_gradient(const DirectGradient<Pair>&);

} // namespace lockstep::kernels
