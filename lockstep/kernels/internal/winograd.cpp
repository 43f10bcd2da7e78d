// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/kernels/internal/winograd.h"

#include <algorithm>
#include <array>
#include <vector>

#include <ATen/Parallel.h>
#include <ATen/ceil_div.h>
#include <ATen/native/ConvUtils.h>
#include <ATen/ops/empty.h>

#include "lockstep/kernels/internal/convolution_tensors.h"
#include "lockstep/kernels/internal/threads.h"

namespace lockstep::kernels {
namespace {

using at::ceil_div;
using at::MemoryFormat;
using at::Tensor;

// Rows of spectra that are worked on together: enough to read a weight's
// spectrum seldom, few enough for a cache.
constexpr std::int64_t kRowsTogether = 32;
// The part of a weight's gradient that a thread computes at a time, and the
// tiles that are added to it at a time.
constexpr std::int64_t kGradientRows = 64;
constexpr std::int64_t kGradientColumns = 128;
constexpr std::int64_t kGradientTiles = 32;
// Rows of a weight that are worth a thread.
constexpr std::int64_t kWeightGrain = 16;
// Beyond these limits LibTorch's kernels are as fast, or more exact. Columns of
// a panel: two vectors of AVX2.
constexpr std::int64_t kMinPanel = 16;
constexpr std::int64_t kMinTiledChannels = 64;
constexpr std::int64_t kMinLine = 4;
// What pays for the spectrum of a weight.
constexpr std::int64_t kMinTiles = 64;
constexpr std::int64_t kMinTilesOfSmallWeight = 16;
constexpr std::int64_t kSmallWeight = 1 << 15; // numbers of a tap
constexpr std::int64_t kMinTilesOfGradient = 256;
constexpr std::int64_t kMinImagesOfGradient = 32;
constexpr std::int64_t kMaxGradientMap = 256; // outputs

bool are_within(at::IntArrayRef numbers, std::int64_t low, std::int64_t high) {
  return (numbers.size() == 1 || numbers.size() == 2) &&
         std::ranges::all_of(numbers, [&](std::int64_t number) {
           return number >= low && number <= high;
         });
}

// Of a map whose windows begin `above` and `left` of it, and which has room for
// the outputs of `down` x `across` tiles.
TiledMap tiled(
    at::IntArrayRef sizes,
    std::int64_t above,
    std::int64_t left,
    const TiledMap& outputs) {
  return {
      .height = sizes[2],
      .width = sizes[3],
      .channels = sizes[1],
      .above = above,
      .left = left,
      .tiles_down = outputs.tiles_down,
      .tiles_across = outputs.tiles_across};
}

TiledMap
outputs_of(std::int64_t height, std::int64_t width, std::int64_t channels) {
  return {
      .height = height,
      .width = width,
      .channels = channels,
      .tiles_down = ceil_div(height, kTileOutputs),
      .tiles_across = ceil_div(width, kTileOutputs)};
}

Tensor spectrum_of(const WinogradLoops::Weight& weight, const float* from) {
  Tensor result =
      at::empty({kSpectrum * spectrum_step(weight.rows, weight.columns)});
  auto* to = result.mutable_data_ptr<float>();
  in_threads(
      weight.rows,
      kWeightGrain,
      [&](std::int64_t begin, std::int64_t end) {
        WinogradLoops::Weight rows = weight;
        rows.begin = begin;
        rows.end = end;
        winograd_loops().weight_spectrum(rows, from, to);
      });
  return result;
}

// What a convolution reads and writes.
struct Work {
  const TiledMap& from_map;
  const float* from = nullptr;
  // A weight's, [36][panel][channels of from_map][panel].
  const float* spectrum = nullptr;
  const float* bias = nullptr;
  const TiledMap& to_map;
  float* to = nullptr;
};

// The outputs of some tiles.
void convolve_tiles(const Work& work, std::int64_t tile, std::int64_t tiles) {
  const WinogradLoops& loops = winograd_loops();
  const std::int64_t in = work.from_map.channels;
  const std::int64_t out = work.to_map.channels;
  const std::int64_t rows = at::round_up(tiles, kRowStep);
  const auto part = [&](std::int64_t channels) {
    return TilePart{
        .tile = tile,
        .tiles = tiles,
        .channels = channels,
        .step = spectrum_step(rows, channels)};
  };
  auto* windows = static_cast<float*>(
      thread_scratch(kSpectrum * (part(in).step + part(out).step)));
  float* products = windows + kSpectrum * part(in).step;
  loops.window_spectrum(work.from_map, part(in), work.from, windows);
  for (std::int64_t i = 0; i < kSpectrum; ++i) {
    product_loops().multiply(
        {.a = windows + i * part(in).step,
         .a_row = in,
         .a_step = 1,
         .b = work.spectrum + i * spectrum_step(in, out),
         .b_step = loops.panel,
         .b_panel = in * loops.panel,
         .to = products + i * part(out).step,
         .to_row = out,
         .rows = rows,
         .columns = out,
         .depth = in});
  }
  loops.outputs(work.to_map, part(out), products, work.bias, work.to);
}

void convolve(const Work& work, std::int64_t tiles) {
  in_threads(
      ceil_div(tiles, kRowStep),
      1,
      [&](std::int64_t begin, std::int64_t end) {
        const std::int64_t last = std::min(end * kRowStep, tiles);
        for (std::int64_t tile = begin * kRowStep; tile < last;
             tile += kRowsTogether) {
          convolve_tiles(work, tile, std::min(kRowsTogether, last - tile));
        }
      });
}

// Some rows (output channels) and columns (input channels) of the gradient of a
// weight [out][9][in].
struct GradientPart {
  std::int64_t row = 0;
  std::int64_t rows = 0;
  std::int64_t column = 0;
  std::int64_t columns = 0;
};

struct GradientWork {
  const TiledMap& pixels;
  const float* input = nullptr;
  const TiledMap& outputs;
  const float* grad_output = nullptr;
  std::int64_t tiles = 0;
  float* to = nullptr;
};

void compute_gradient(const GradientWork& work, const GradientPart& part) {
  const WinogradLoops& loops = winograd_loops();
  const std::int64_t sums_step = spectrum_step(part.rows, part.columns);
  TilePart in{
      .channel = part.column,
      .channels = part.columns,
      .step = spectrum_step(kGradientTiles, part.columns)};
  TilePart out{
      .channel = part.row,
      .channels = part.rows,
      .step = spectrum_step(kGradientTiles, part.rows)};
  auto* sums = static_cast<float*>(
      thread_scratch(kSpectrum * (sums_step + in.step + out.step)));
  float* windows = sums + kSpectrum * sums_step;
  float* grads = windows + kSpectrum * in.step;
  for (std::int64_t tile = 0; tile < work.tiles; tile += kGradientTiles) {
    const std::int64_t tiles = std::min(kGradientTiles, work.tiles - tile);
    in.tile = out.tile = tile;
    in.tiles = out.tiles = tiles;
    loops.window_spectrum(work.pixels, in, work.input, windows);
    loops.gradient_spectrum(work.outputs, out, work.grad_output, grads);
    for (std::int64_t i = 0; i < kSpectrum; ++i) {
      product_loops().multiply(
          {.a = grads + i * out.step,
           .a_row = 1,
           .a_step = part.rows,
           .b = windows + i * in.step,
           .b_step = part.columns,
           .b_panel = loops.panel,
           .to = sums + i * sums_step,
           .to_row = part.columns,
           .rows = part.rows,
           .columns = part.columns,
           .depth = tiles,
           .is_added = tile > 0});
    }
  }
  const std::int64_t taps_step = work.pixels.channels;
  loops.weight_gradient(
      {.end = part.rows,
       .rows = part.rows,
       .columns = part.columns,
       .row_step = kTaps * taps_step,
       .tap_step = taps_step},
      sums,
      work.to + part.row * kTaps * taps_step + part.column);
}

// As many parts as threads, if they are not too small.
std::vector<GradientPart> gradient_parts(std::int64_t out, std::int64_t in) {
  const std::int64_t columns = std::min(in, kGradientColumns);
  const bool are_few = ceil_div(out, kGradientRows) * ceil_div(in, columns) <
                       at::get_num_threads();
  const std::int64_t rows = are_few ? kChannelStep : kGradientRows;
  std::vector<GradientPart> parts;
  for (std::int64_t row = 0; row < out; row += rows) {
    for (std::int64_t column = 0; column < in; column += columns) {
      parts.push_back(
          {.row = row,
           .rows = std::min(rows, out - row),
           .column = column,
           .columns = std::min(columns, in - column)});
    }
  }
  return parts;
}

} // namespace

std::optional<WinogradConvolution> WinogradConvolution::of(
    const Tensor& input,
    const Tensor& weight,
    const KernelSteps& steps) {
  if (!is_a_batch(input) || !is_a_batch(weight) ||
      input.scalar_type() != at::kFloat || weight.scalar_type() != at::kFloat ||
      weight.size(2) != 3 || weight.size(3) != 3 ||
      input.size(1) != weight.size(1) || input.size(1) % kChannelStep != 0 ||
      weight.size(0) % kChannelStep != 0 || !are_within(steps.stride, 1, 1) ||
      !are_within(steps.dilation, 1, 1) || !are_within(steps.padding, 0, 2) ||
      !at::native::mkldnn_conv_use_channels_last(input, weight)) {
    return std::nullopt;
  }
  const WinogradConvolution found(input, weight, steps.padding);
  return found.outputs_.height > 0 && found.outputs_.width > 0
             ? std::optional(found)
             : std::nullopt;
}

WinogradConvolution::WinogradConvolution(
    const Tensor& input,
    const Tensor& weight,
    at::IntArrayRef padding)
    : ConvolutionAlgorithm(input, weight),
      outputs_(outputs_of(
          input.size(2) + 2 * padding.front() - 2,
          input.size(3) + 2 * padding.back() - 2,
          weight.size(0))) {
  pixels_ = tiled(input.sizes(), padding.front(), padding.back(), outputs_);
}

bool WinogradConvolution::is_better(Pass pass) const {
  // Outputs of a tile that are outside of the map are computed for nothing.
  const std::int64_t area = outputs_.height * outputs_.width;
  const std::int64_t tiled_area =
      outputs_.tiles_down * outputs_.tiles_across * kTileOutputs * kTileOutputs;
  const std::int64_t min_tiles =
      in() * out() <= kSmallWeight ? kMinTilesOfSmallWeight : kMinTiles;
  const bool is_enough = pass == Pass::kWeightGradient
                             ? tiles() >= kMinTilesOfGradient &&
                                   area <= kMaxGradientMap &&
                                   batch() >= kMinImagesOfGradient
                             : tiles() >= min_tiles;
  return winograd_loops().panel >= kMinPanel &&
         std::min(in(), out()) >= kMinTiledChannels &&
         std::min(outputs_.height, outputs_.width) >= kMinLine &&
         2 * area >= tiled_area && is_enough;
}

std::array<std::int64_t, 4> WinogradConvolution::output_sizes() const {
  return {batch(), out(), outputs_.height, outputs_.width};
}

Tensor WinogradConvolution::forward(const Tensor& bias) const {
  const Tensor from = channels_last(input());
  const Tensor taps = weight().permute({2, 3, 1, 0}).contiguous();
  const Tensor spectrum = spectrum_of(
      {.rows = in(),
       .columns = out(),
       .row_step = out(),
       .tap_step = in() * out()},
      taps.const_data_ptr<float>());
  const Tensor biases = bias.defined() ? bias.contiguous() : bias;
  Tensor output = at::empty(
      output_sizes(),
      from.options().memory_format(MemoryFormat::ChannelsLast));
  convolve(
      {.from_map = pixels_,
       .from = from.const_data_ptr<float>(),
       .spectrum = spectrum.const_data_ptr<float>(),
       .bias = bias.defined() ? biases.const_data_ptr<float>() : nullptr,
       .to_map = outputs_,
       .to = output.mutable_data_ptr<float>()},
      tiles());
  return output;
}

// The convolution of the output's gradient with the taps turned round.
Tensor WinogradConvolution::input_gradient(const Tensor& grad_output) const {
  const Tensor grads = channels_last(grad_output);
  const Tensor taps = channels_last(weight());
  const Tensor spectrum = spectrum_of(
      {.rows = out(),
       .columns = in(),
       .row_step = kTaps * in(),
       .tap_step = -in()},
      taps.const_data_ptr<float>() + (kTaps - 1) * in());
  Tensor gradient = at::empty(
      input().sizes(),
      grads.options().memory_format(MemoryFormat::ChannelsLast));
  const TiledMap to = outputs_of(pixels_.height, pixels_.width, in());
  convolve(
      {.from_map =
           tiled(grads.sizes(), 2 - pixels_.above, 2 - pixels_.left, to),
       .from = grads.const_data_ptr<float>(),
       .spectrum = spectrum.const_data_ptr<float>(),
       .to_map = to,
       .to = gradient.mutable_data_ptr<float>()},
      batch() * to.tiles_down * to.tiles_across);
  return gradient;
}

Tensor WinogradConvolution::weight_gradient(const Tensor& grad_output) const {
  const Tensor from = channels_last(input());
  const Tensor grads = channels_last(grad_output);
  Tensor gradient = at::empty(
      weight().sizes(),
      grads.options().memory_format(MemoryFormat::ChannelsLast));
  const GradientWork work{
      .pixels = pixels_,
      .input = from.const_data_ptr<float>(),
      .outputs = outputs_,
      .grad_output = grads.const_data_ptr<float>(),
      .tiles = tiles(),
      .to = gradient.mutable_data_ptr<float>()};
  const auto parts = gradient_parts(out(), in());
  in_threads(std::ssize(parts), 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      compute_gradient(work, parts[static_cast<std::size_t>(i)]);
    }
  });
  return gradient;
}

} // namespace lockstep::kernels
