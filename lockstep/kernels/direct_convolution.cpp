// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/kernels/direct_convolution.h"

#include <algorithm>
#include <vector>

#include <ATen/ceil_div.h>
#include <ATen/native/ConvUtils.h>
#include <ATen/ops/empty.h>

#include "lockstep/kernels/convolution_tensors.h"
#include "lockstep/kernels/product_loops.h"
#include "lockstep/kernels/tap_panels.h"
#include "lockstep/kernels/threads.h"

namespace lockstep::kernels {
namespace {

using at::ceil_div;
using at::MemoryFormat;
using at::Tensor;

constexpr std::int64_t kMaxPositions = 64;
// Images that are worked on together: enough to read a weight seldom, few
// enough for a cache.
constexpr std::int64_t kImagesTogether = 32;
// Output channels of a weight's gradient that a thread computes at a time.
constexpr std::int64_t kGradientRows = 64;
// Below these LibTorch's kernels are good enough, and above this panel. Columns
// of a panel: two vectors of AVX2.
constexpr std::int64_t kMinDirectBatch = 32;
constexpr std::int64_t kMinDirectChannels = 64;
constexpr std::int64_t kMinDirectPanel = 16;

// A position of the map that is read, and the tap through which.
struct Term {
  std::int64_t from = 0;
  std::int64_t tap = 0;
};

// What each position of the map that is written is the sum of.
using Terms = std::vector<std::vector<Term>>;

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

// Sums of products of one map, [batch][position][channels], into another.
struct DirectWork {
  const Terms& terms;
  const TapPanels& weight;
  const float* from = nullptr;
  std::int64_t from_positions = 0;
  const float* bias = nullptr;
  float* to = nullptr;
};

void add_terms(
    const DirectWork& work,
    const std::vector<Term>& terms,
    std::int64_t images,
    const float* from,
    float* sums) {
  const std::int64_t panel = product_loops().panel;
  const std::int64_t from_row = work.weight.depth + kRowGap;
  for (const Term& term : terms) {
    product_loops().multiply(
        {.a = from + term.from * images * from_row,
         .a_row = from_row,
         .a_step = 1,
         .b = work.weight.of(term.tap),
         .b_step = panel,
         .b_panel = work.weight.depth * panel,
         .to = sums,
         .to_row = work.weight.columns + kRowGap,
         .rows = images,
         .columns = work.weight.columns,
         .depth = work.weight.depth,
         .is_added = true});
  }
}

void convolve_images(
    const DirectWork& work,
    std::int64_t image,
    std::int64_t images) {
  const std::int64_t depth = work.weight.depth;
  const std::int64_t columns = work.weight.columns;
  const std::int64_t rows = work.from_positions * images;
  float* from =
      thread_scratch(rows * (depth + kRowGap) + images * (columns + kRowGap));
  float* sums = from + rows * (depth + kRowGap);
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t position = row / images;
    std::copy_n(
        work.from +
            ((image + row % images) * work.from_positions + position) * depth,
        depth,
        from + row * (depth + kRowGap));
  }
  const std::int64_t positions = std::ssize(work.terms);
  for (std::int64_t position = 0; position < positions; ++position) {
    for (std::int64_t i = 0; i < images; ++i) {
      float* row = sums + i * (columns + kRowGap);
      if (work.bias != nullptr) {
        std::copy_n(work.bias, columns, row);
      } else {
        std::fill_n(row, columns, 0.0F);
      }
    }
    const auto& terms = work.terms[static_cast<std::size_t>(position)];
    add_terms(work, terms, images, from, sums);
    for (std::int64_t i = 0; i < images; ++i) {
      std::copy_n(
          sums + i * (columns + kRowGap),
          columns,
          work.to + ((image + i) * positions + position) * columns);
    }
  }
}

void convolve_batch(const DirectWork& work, std::int64_t batch) {
  in_threads(
      ceil_div(batch, kRowStep),
      1,
      [&](std::int64_t begin, std::int64_t end) {
        const std::int64_t last = std::min(end * kRowStep, batch);
        for (std::int64_t image = begin * kRowStep; image < last;
             image += kImagesTogether) {
          convolve_images(work, image, std::min(kImagesTogether, last - image));
        }
      });
}

// The gradient of a weight, [out][tap][in].
struct DirectGradient {
  const Terms& terms; // of outputs
  const float* grads = nullptr;
  const float* input = nullptr;
  std::int64_t batch = 0;
  std::int64_t pixels = 0;
  std::int64_t taps = 0;
  std::int64_t out = 0;
  std::int64_t in = 0;
  float* to = nullptr;
};

// Some rows (output channels) of one tap.
void compute_tap(
    const DirectGradient& of,
    std::int64_t tap,
    std::int64_t row,
    std::int64_t rows) {
  const std::int64_t outputs = std::ssize(of.terms);
  float* to = of.to + (row * of.taps + tap) * of.in;
  bool is_added = false;
  for (std::int64_t output = 0; output < outputs; ++output) {
    for (const Term& term : of.terms[static_cast<std::size_t>(output)]) {
      if (term.tap != tap) {
        continue;
      }
      product_loops().multiply(
          {.a = of.grads + output * of.out + row,
           .a_row = 1,
           .a_step = outputs * of.out,
           .b = of.input + term.from * of.in,
           .b_step = of.pixels * of.in,
           .b_panel = product_loops().panel,
           .to = to,
           .to_row = of.taps * of.in,
           .rows = rows,
           .columns = of.in,
           .depth = of.batch,
           .is_added = is_added});
      is_added = true;
    }
  }
  if (!is_added) {
    for (std::int64_t i = 0; i < rows; ++i) {
      std::fill_n(to + i * of.taps * of.in, of.in, 0.0F);
    }
  }
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

Tensor empty_map(at::IntArrayRef sizes, const Tensor& like) {
  return at::empty(
      sizes,
      like.options().memory_format(MemoryFormat::ChannelsLast));
}

} // namespace

std::optional<DirectConvolution> DirectConvolution::of(
    const Tensor& input,
    const Tensor& weight,
    const KernelSteps& steps) {
  if (!is_a_batch(input) || !is_a_batch(weight) ||
      input.scalar_type() != at::kFloat || weight.scalar_type() != at::kFloat ||
      input.size(1) != weight.size(1) || input.size(1) % kChannelStep != 0 ||
      weight.size(0) % kChannelStep != 0 || !are_valid(steps) ||
      input.size(2) * input.size(3) > kMaxPositions ||
      !at::native::mkldnn_conv_use_channels_last(input, weight)) {
    return std::nullopt;
  }
  const DirectConvolution found(input, weight, steps);
  const std::int64_t outputs = found.down_.outputs * found.across_.outputs;
  return outputs > 0 && outputs <= kMaxPositions ? std::optional(found)
                                                 : std::nullopt;
}

DirectConvolution::DirectConvolution(
    const Tensor& input,
    const Tensor& weight,
    const KernelSteps& steps)
    : input_(input),
      weight_(weight),
      down_(input.size(2), weight.size(2), steps, 0),
      across_(input.size(3), weight.size(3), steps, 1),
      is_strided_(std::max(steps.stride.front(), steps.stride.back()) > 1) {}

bool DirectConvolution::is_better(Pass pass) const {
  if (product_loops().panel < kMinDirectPanel ||
      input_.size(0) < kMinDirectBatch ||
      std::min(in(), out()) < kMinDirectChannels) {
    return false;
  }
  const std::int64_t outputs = down_.outputs * across_.outputs;
  const bool is_one_tap = down_.taps * across_.taps == 1;
  // One product of the whole map, which LibTorch's kernel does as well.
  const bool is_plain = is_one_tap && !is_strided_;
  const bool is_tiny = outputs == 1 || (outputs <= 4 && !is_plain);
  switch (pass) {
    case Pass::kForward:
      return is_tiny || (is_one_tap && is_strided_);
    case Pass::kInputGradient:
      return is_tiny || is_strided_;
    case Pass::kWeightGradient:
      return outputs <= 4 || !is_plain;
  }
  return false;
}

bool DirectConvolution::takes_bias(const Tensor& bias) const {
  return is_bias_of(weight_, bias);
}

bool DirectConvolution::takes_gradient(const Tensor& grad_output) const {
  return is_gradient_of(weight_, output_sizes(), grad_output);
}

std::array<std::int64_t, 4> DirectConvolution::output_sizes() const {
  return {input_.size(0), out(), down_.outputs, across_.outputs};
}

Tensor DirectConvolution::forward(const Tensor& bias) const {
  const Terms terms = terms_of_outputs(TapTable(down_, across_));
  const Tensor input = channels_last(input_);
  const Tensor biases = bias.defined() ? bias.contiguous() : bias;
  Tensor output = empty_map(output_sizes(), input);
  convolve_batch(
      {.terms = terms,
       .weight = pack_taps(
           weight_,
           used_taps(terms, down_.taps * across_.taps),
           true),
       .from = input.const_data_ptr<float>(),
       .from_positions = down_.pixels * across_.pixels,
       .bias = bias.defined() ? biases.const_data_ptr<float>() : nullptr,
       .to = output.mutable_data_ptr<float>()},
      input.size(0));
  return output;
}

Tensor DirectConvolution::input_gradient(const Tensor& grad_output) const {
  const Terms terms = terms_of_pixels(TapTable(down_, across_));
  const Tensor grads = channels_last(grad_output);
  Tensor gradient = empty_map(input_.sizes(), grads);
  convolve_batch(
      {.terms = terms,
       .weight = pack_taps(
           weight_,
           used_taps(terms, down_.taps * across_.taps),
           false),
       .from = grads.const_data_ptr<float>(),
       .from_positions = down_.outputs * across_.outputs,
       .to = gradient.mutable_data_ptr<float>()},
      grads.size(0));
  return gradient;
}

Tensor DirectConvolution::weight_gradient(const Tensor& grad_output) const {
  const Terms terms = terms_of_outputs(TapTable(down_, across_));
  const Tensor input = channels_last(input_);
  const Tensor grads = channels_last(grad_output);
  Tensor gradient = empty_map(weight_.sizes(), grads);
  const DirectGradient work{
      .terms = terms,
      .grads = grads.const_data_ptr<float>(),
      .input = input.const_data_ptr<float>(),
      .batch = input.size(0),
      .pixels = down_.pixels * across_.pixels,
      .taps = down_.taps * across_.taps,
      .out = out(),
      .in = in(),
      .to = gradient.mutable_data_ptr<float>()};
  const std::int64_t parts = ceil_div(work.out, kGradientRows);
  in_threads(parts * work.taps, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t row = i / work.taps * kGradientRows;
      compute_tap(
          work,
          i % work.taps,
          row,
          std::min(kGradientRows, work.out - row));
    }
  });
  return gradient;
}

} // namespace lockstep::kernels
