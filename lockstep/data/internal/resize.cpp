// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/data/internal/resize.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <ATen/Version.h>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"

namespace lockstep {
namespace {

// PyTorch computes float and double in turns; the conversions are its own.
float triangle(float x) {
  x = std::abs(x);
  return x < 1.0F ? static_cast<float>(1.0 - x) : 0.0F;
}

ResizeAxis::Output
output_of(std::int64_t index, std::int64_t input_size, float scale) {
  const float support = scale >= 1.0F ? scale : 1.0F;
  const float inverse = scale >= 1.0F ? 1.0F / scale : 1.0F;
  const auto center =
      static_cast<float>(scale * (static_cast<double>(index) + 0.5));
  const auto clamped = [&](double place) {
    return std::clamp<std::int64_t>(
        static_cast<std::int64_t>(place),
        0,
        input_size);
  };
  ResizeAxis::Output out{.first_input = clamped(center - support + 0.5)};
  const std::int64_t end = clamped(center + support + 0.5);
  float total = 0.0F;
  for (std::int64_t i = out.first_input; i < end; ++i) {
    const double distance = static_cast<float>(i) - center + 0.5;
    out.weights.push_back(triangle(static_cast<float>(distance * inverse)));
    total += out.weights.back();
  }
  for (float& weight : out.weights) {
    weight /= total;
  }
  return out;
}

// Lines of numbers: which ones, and how far apart.
struct Lines {
  std::int64_t count = 0;
  std::int64_t input_step = 0; // from one line to the next
  std::int64_t output_step = 0;
  std::int64_t stride = 1; // from one number of a line to the next
};

// Not inlined: a rounding of its own, never one instruction with a sum.
[[gnu::noinline]] float product(float a, float b) {
  return a * b;
}

// PyTorch's compiler multiplies four numbers at a time and then adds them in
// order. What is left over is multiplied and added in one instruction, where
// the kernels are built for processors that have it.
template <bool kIsFused>
[[gnu::always_inline]] inline float weighted_sum(
    const std::vector<float>& weights,
    const float* in,
    std::int64_t stride) {
  constexpr std::size_t kBlock = 4;
  const std::size_t fused = kIsFused ? (weights.size() - 1) % kBlock : 0;
  float sum = in[0] * weights[0];
  std::size_t i = 1;
  for (; i + fused < weights.size(); ++i) {
    in += stride;
    sum += product(in[0], weights[i]);
  }
  for (; i < weights.size(); ++i) {
    in += stride;
    sum = std::fma(in[0], weights[i], sum);
  }
  return sum;
}

template <bool kIsFused>
[[gnu::always_inline]] inline void
pass(const ResizeAxis& axis, const Lines& lines, const float* in, float* out) {
  for (std::int64_t line = 0; line < lines.count; ++line) {
    const float* source = in + line * lines.input_step;
    float* target = out + line * lines.output_step;
    for (const ResizeAxis::Output& output : axis.outputs) {
      *target = weighted_sum<kIsFused>(
          output.weights,
          source + output.first_input * lines.stride,
          lines.stride);
      target += lines.stride;
    }
  }
}

#if defined(__x86_64__)
[[gnu::target("fma")]] void fused_pass(
    const ResizeAxis& axis,
    const Lines& lines,
    const float* in,
    float* out) {
  pass<true>(axis, lines, in, out);
}

bool is_fused() {
  static const bool answer = at::get_cpu_capability() != "DEFAULT";
  return answer;
}
#else
void fused_pass(
    const ResizeAxis& axis,
    const Lines& lines,
    const float* in,
    float* out) {
  pass<true>(axis, lines, in, out);
}

bool is_fused() {
  return true;
}
#endif

void run(
    const ResizeAxis& axis,
    const Lines& lines,
    const float* in,
    float* out) {
  if (is_fused()) {
    fused_pass(axis, lines, in, out);
  } else {
    pass<false>(axis, lines, in, out);
  }
}

ImageShape
checked(const ImageShape& from, std::int64_t height, std::int64_t width) {
  if (std::min({from.height, from.width, height, width}) < 1) {
    raise(
        {.code = ErrorCode::kInvalidArgument,
         .op = "data.resize",
         .message = format(
             "images have at least 1 x 1 pixels; cannot resize {} x {} to {} x "
             "{}",
             from.height,
             from.width,
             height,
             width),
         .detail = "E_IMAGE_SIZE"});
  }
  return {.channels = from.channels, .height = height, .width = width};
}

} // namespace

ResizeAxis::ResizeAxis(std::int64_t input_size, std::int64_t output_size)
    : ResizeAxis(input_size, output_size, 0, output_size) {}

ResizeAxis::ResizeAxis(
    std::int64_t input_size,
    std::int64_t output_size,
    std::int64_t first,
    std::int64_t count) {
  const float scale =
      static_cast<float>(input_size) / static_cast<float>(output_size);
  outputs.reserve(static_cast<std::size_t>(count));
  for (std::int64_t i = first; i < first + count; ++i) {
    outputs.push_back(output_of(i, input_size, scale));
  }
  begin = outputs.front().first_input;
  end = outputs.back().first_input + std::ssize(outputs.back().weights);
  for (Output& output : outputs) {
    output.first_input -= begin;
  }
}

Resize::Resize(const ImageShape& from, std::int64_t height, std::int64_t width)
    : from_(from),
      to_(checked(from, height, width)),
      columns_(from.width, width),
      rows_(from.height, height) {}

Resize::Resize(
    std::int64_t channels,
    ResizeAxis rows,
    ResizeAxis columns)
    : from_{.channels = channels,
            .height = rows.end - rows.begin,
            .width = columns.end - columns.begin},
      to_{.channels = channels,
          .height = std::ssize(rows.outputs),
          .width = std::ssize(columns.outputs)},
      columns_(std::move(columns)),
      rows_(std::move(rows)) {}

void Resize::apply(const float* image, float* out) const {
  const std::int64_t rows = from_.channels * from_.height;
  std::vector<float> narrow(static_cast<std::size_t>(rows * to_.width));
  run(columns_,
      {.count = rows, .input_step = from_.width, .output_step = to_.width},
      image,
      narrow.data());
  for (std::int64_t c = 0; c < from_.channels; ++c) {
    run(rows_,
        {.count = to_.width,
         .input_step = 1,
         .output_step = 1,
         .stride = to_.width},
        narrow.data() + c * from_.height * to_.width,
        out + c * to_.height * to_.width);
  }
}

} // namespace lockstep
