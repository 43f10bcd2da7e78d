// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/data/internal/resize_float.h"

#include <algorithm>
#include <cmath>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/data/internal/resize_passes.h"

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

void Resize::apply(const float* image, float* out) const {
  const std::int64_t lines = from_.channels * from_.height;
  std::vector<float> narrow(
      static_cast<std::size_t>(lines * to_.width + internal::kLineSlack));
  for (std::int64_t y = 0; y < lines; ++y) {
    internal::resize_columns(
        columns_,
        /*channels=*/1,
        image + y * from_.width,
        narrow.data() + y * to_.width);
  }
  for (std::int64_t c = 0; c < from_.channels; ++c) {
    const float* plane = narrow.data() + c * from_.height * to_.width;
    for (const ResizeAxis::Output& row : rows_.outputs) {
      internal::sum_lines(
          row.weights,
          plane + row.first_input * to_.width,
          to_.width,
          to_.width,
          out);
      out += to_.width;
    }
  }
}

} // namespace lockstep
