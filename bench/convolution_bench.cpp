// SPDX-License-Identifier: BSD-3-Clause
//
// LibTorch's convolutions beside Lockstep's, one layer per round:
//   {"threads": 2, "batch": 256, "in": 512, "out": 512, "map": 1, "kernel": 3,
//    "stride": 1, "type": "float32", "layout": "nchw"}
// A round's result: for each of "winograd", "direct" and "products" that can
// compute the layer the best times in ms of "forward", "input" and "weight"
// (gradient), each {"libtorch", "ours", "chosen"}. Of one thread it is
// processor time, which other jobs on the machine disturb less.
#include <algorithm>
#include <array>
#include <ctime>
#include <functional>
#include <string>

#include <ATen/ops/convolution_backward_native.h>
#include <ATen/ops/convolution_native.h>
#include <torch/torch.h>

#include "bench/serve.h"
#include "lockstep/kernels/convolution_products.h"
#include "lockstep/kernels/direct_convolution.h"
#include "lockstep/kernels/winograd.h"
#include "lockstep/tensor/memory_format.h"

namespace lockstep::bench {
namespace {

using kernels::ConvolutionProducts;
using kernels::DirectConvolution;
using kernels::KernelSteps;
using kernels::Pass;
using kernels::WinogradConvolution;

constexpr int kRepeats = 15;

double milliseconds_now(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) * 1e3 +
         static_cast<double>(now.tv_nsec) / 1e6;
}

double milliseconds(const std::function<at::Tensor()>& compute) {
  const clockid_t clock =
      at::get_num_threads() == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC;
  const double start = milliseconds_now(clock);
  compute();
  return milliseconds_now(clock) - start;
}

// The best of both, which take turns.
nlohmann::json compare(
    const std::function<at::Tensor()>& libtorch,
    const std::function<at::Tensor()>& way,
    bool is_chosen) {
  libtorch();
  way();
  double theirs = milliseconds(libtorch);
  double ours = milliseconds(way);
  for (int i = 1; i < kRepeats; ++i) {
    theirs = std::min(theirs, milliseconds(libtorch));
    ours = std::min(ours, milliseconds(way));
  }
  return {{"libtorch", theirs}, {"ours", ours}, {"chosen", is_chosen}};
}

// A layer, and LibTorch's kernels for it.
struct Layer {
  at::Tensor x;
  at::Tensor w;
  KernelSteps steps;
  std::function<at::Tensor()> forward;
  std::function<at::Tensor(bool of_input)> gradient;
  at::Tensor grad_output;
};

// Adds what a way takes, if it can compute the layer.
template <class Way>
void add_way(nlohmann::json& ways, const char* name, const Layer& layer) {
  const auto make = [&] { return Way::of(layer.x, layer.w, layer.steps); };
  const auto found = make();
  if (!found) {
    return;
  }
  const auto& grads = layer.grad_output;
  ways[name] = {
      {"forward",
       compare(
           layer.forward,
           [&] { return make()->forward({}); },
           found->is_better(Pass::kForward))},
      {"input",
       compare(
           [&] { return layer.gradient(true); },
           [&] { return make()->input_gradient(grads); },
           found->is_better(Pass::kInputGradient))},
      {"weight",
       compare(
           [&] { return layer.gradient(false); },
           [&] { return make()->weight_gradient(grads); },
           found->is_better(Pass::kWeightGradient))}};
}

// A square layer with as much padding as keeps the map's size.
nlohmann::json measure(const nlohmann::json& layer) {
  const auto number = [&](const char* name) {
    return layer.at(name).get<std::int64_t>();
  };
  at::set_num_threads(layer.at("threads").get<int>());
  const auto type = layer.at("type") == "bfloat16" ? at::kBFloat16 : at::kFloat;
  const std::int64_t kernel = number("kernel");
  const std::int64_t map = number("map");
  const std::vector<std::int64_t> stride(2, number("stride"));
  const std::vector<std::int64_t> padding(2, kernel / 2);
  const std::vector<std::int64_t> ones(2, 1);
  const std::vector<std::int64_t> none(2, 0);
  const auto format = layer.at("layout") == "nhwc"
                          ? at::MemoryFormat::ChannelsLast
                          : at::MemoryFormat::Contiguous;
  const auto random = [&](at::IntArrayRef sizes) {
    return in_memory_format(torch::randn(sizes, type), format);
  };
  const auto x = random({number("batch"), number("in"), map, map});
  const auto w = random({number("out"), number("in"), kernel, kernel});
  const auto convolve = [&] {
    return at::native::convolution(
        x,
        w,
        {},
        stride,
        padding,
        ones,
        false,
        none,
        1);
  };
  const auto grad = torch::randn_like(convolve());
  const auto gradient = [&](bool of_input) {
    const auto [of_x, of_w, unused] = at::native::convolution_backward(
        grad,
        x,
        w,
        {},
        stride,
        padding,
        ones,
        false,
        none,
        1,
        {of_input, !of_input, false});
    return of_input ? of_x : of_w;
  };
  const Layer of{
      .x = x,
      .w = w,
      .steps = {.stride = stride, .padding = padding, .dilation = ones},
      .forward = convolve,
      .gradient = gradient,
      .grad_output = grad};
  nlohmann::json ways = nlohmann::json::object();
  add_way<WinogradConvolution>(ways, "winograd", of);
  add_way<DirectConvolution>(ways, "direct", of);
  add_way<ConvolutionProducts>(ways, "products", of);
  return ways;
}

} // namespace
} // namespace lockstep::bench

int main() {
  const torch::NoGradGuard no_grad;
  lockstep::bench::serve(nlohmann::json::object(), [](const std::string& line) {
    return lockstep::bench::measure(nlohmann::json::parse(line));
  });
  return 0;
}
