// SPDX-License-Identifier: BSD-3-Clause
//
// What DataParallel itself costs: a ResNet18 that computes nothing. Its forward
// adds one parameter to the input, so that scatter, replicate, join, gather and
// the gradients' way back are all that is left. Beside peer_parallel.py.
// A round's line: "2", "4", "8" CPU replicas; "bare" the module alone; "one"
// the wrapper on one device.
#include <chrono>
#include <map>
#include <memory>
#include <string>

#include <torch/torch.h>

#include "bench/serve.h"
#include "lockstep/models/model.h"
#include "lockstep/parallel/data_parallel.h"

namespace lockstep::bench {
namespace {

constexpr int kSteps = 300;

// As many modules, parameters and buffers as ResNet18.
struct IdleNet : torch::nn::Module {
  IdleNet()
      : net(register_module("net", make_model("resnet18", {}))),
        shift(register_parameter("shift", torch::zeros({1}))) {}
  at::Tensor forward(const at::Tensor& x) {
    return x + shift;
  }
  std::shared_ptr<Model> net;
  at::Tensor shift;
};

double microseconds_per_step(
    const std::function<at::Tensor(const at::Tensor&)>& forward) {
  const at::Tensor x = torch::zeros({64, 1});
  const auto step = [&] { forward(x).sum().backward(); };
  for (int i = 0; i < 20; ++i) {
    step();
  }
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < kSteps; ++i) {
    step();
  }
  const std::chrono::duration<double, std::micro> took =
      std::chrono::steady_clock::now() - start;
  return took.count() / kSteps;
}

int run() {
  at::set_num_threads(1);
  const auto net = std::make_shared<IdleNet>();
  std::map<std::string, DataParallel<IdleNet>> models;
  for (const auto& [line, devices] : std::map<std::string, std::string>{
           {"one", "cpu"},
           {"2", "cpu*2"},
           {"4", "cpu*4"},
           {"8", "cpu*8"}}) {
    models.emplace(
        line,
        DataParallel(net, {.devices = devices, .factory = [] {
                             return std::make_shared<IdleNet>();
                           }}));
  }
  serve(nlohmann::json::object(), [&](const std::string& line) {
    const auto found = models.find(line);
    const double took = found == models.end()
                            ? microseconds_per_step([&](const at::Tensor& x) {
                                return net->forward(x);
                              })
                            : microseconds_per_step([&](const at::Tensor& x) {
                                return found->second->forward(x);
                              });
    return nlohmann::json{{"us_per_step", took}};
  });
  return 0;
}

} // namespace
} // namespace lockstep::bench

int main() {
  return lockstep::bench::run();
}
