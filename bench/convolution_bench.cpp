// SPDX-License-Identifier: BSD-3-Clause
//
// Convolutions in LibTorch's bits beside our other ways, one layer per round:
//   {"threads": 2, "batch": 256, "in": 512, "out": 512, "map": 1, "kernel": 3,
//    "stride": 1, "type": "float32", "layout": "nchw"}
// A round's result: the best times in ms of "forward", "input" and "weight"
// (gradient), each a list of {"way", "ms", "chosen"}; the first is "exact".
#include <array>
#include <string>

#include <ATen/Parallel.h>
#include <torch/torch.h>

#include "bench/serve.h"
#include "lockstep/kernels/internal/convolution_times.h"
#include "lockstep/tensor/internal/host_memory.h"
#include "lockstep/tensor/modules.h"

namespace lockstep::bench {
namespace {

constexpr int kRepeats = 15;
constexpr std::array kPassNames{"forward", "input", "weight"};

// A square layer with as much padding as keeps the map's size.
nlohmann::json measure(const nlohmann::json& layer) {
  const auto number = [&](const char* name) {
    return layer.at(name).get<std::int64_t>();
  };
  at::set_num_threads(layer.at("threads").get<int>());
  const auto type = layer.at("type") == "bfloat16" ? at::kBFloat16 : at::kFloat;
  const std::int64_t kernel = number("kernel");
  const std::int64_t map = number("map");
  const std::int64_t stride = number("stride");
  const std::int64_t padding = kernel / 2;
  const std::int64_t dilation = 1;
  const auto format = layer.at("layout") == "nhwc"
                          ? at::MemoryFormat::ChannelsLast
                          : at::MemoryFormat::Contiguous;
  const auto random = [&](at::IntArrayRef sizes) {
    return in_memory_format(torch::randn(sizes, type), format);
  };
  const auto times = kernels::time_convolution(
      random({number("batch"), number("in"), map, map}),
      random({number("out"), number("in"), kernel, kernel}),
      {.stride = stride, .padding = padding, .dilation = dilation},
      kRepeats);
  nlohmann::json passes = nlohmann::json::object();
  for (std::size_t i = 0; i < times.size(); ++i) {
    for (const auto& [way, seconds, is_chosen] : times[i]) {
      passes[kPassNames[i]].push_back(
          {{"way", way}, {"ms", seconds * 1e3}, {"chosen", is_chosen}});
    }
  }
  return passes;
}

} // namespace
} // namespace lockstep::bench

int main() {
  lockstep::keep_freed_host_memory();
  lockstep::bench::serve(nlohmann::json::object(), [](const std::string& line) {
    return lockstep::bench::measure(nlohmann::json::parse(line));
  });
  return 0;
}
