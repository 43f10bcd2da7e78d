// SPDX-License-Identifier: BSD-3-Clause
//
// What a small step costs: two layers, 64-64-10, a batch of 8; forward, loss,
// backward and SGD. Beside peer_small.py.
// A round's line: "bare" the module alone, or the devices of a DataParallel:
// "cpu", "cpu*2", "sim*2".
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include <torch/torch.h>

#include "bench/serve.h"
#include "lockstep/optim/optimizers.h"
#include "lockstep/parallel/data_parallel.h"

namespace lockstep::bench {
namespace {

constexpr int kSteps = 300;

struct SmallNet : torch::nn::Module {
  at::Tensor forward(const at::Tensor& x) {
    return second->forward(at::relu(first->forward(x)));
  }
  torch::nn::Linear first = register_module("first", torch::nn::Linear(64, 64));
  torch::nn::Linear second =
      register_module("second", torch::nn::Linear(64, 10));
};

// A net, its optimizer and one batch.
class Job {
 public:
  explicit Job(const std::string& devices) : net_(make_net()) {
    if (devices == "bare") {
      return;
    }
    const DeviceSpec spec(devices);
    net_->to(spec.resolve().front());
    model_.emplace(net_, DataParallelOptions{.devices = spec});
    sharing_.emplace((*model_)->share_threads(sgd_));
    targets_ = targets_.to((*model_)->devices().front());
  }

  // Returns the last loss, which waits for the device.
  double run(int steps) {
    at::Tensor loss;
    for (int i = 0; i < steps; ++i) {
      sgd_.zero_grad();
      loss = at::cross_entropy_loss(
          model_ ? (*model_)->forward(images_) : net_->forward(images_),
          targets_);
      loss.backward();
      sgd_.step();
    }
    return loss.item<double>();
  }

 private:
  static std::shared_ptr<SmallNet> make_net() {
    torch::manual_seed(0);
    return make_module<SmallNet>();
  }

  std::shared_ptr<SmallNet> net_;
  SGD sgd_{net_->parameters(), {.lr = 0.01}};
  std::optional<DataParallel<SmallNet>> model_ = {};
  std::optional<ThreadLoan> sharing_ = {};
  at::Tensor images_ = at::arange(512, at::kFloat).div(512).view({8, 64});
  at::Tensor targets_ = at::arange(8, at::kLong);
};

int run() {
  constexpr int kWarmUps = 20;
  at::set_num_threads(1);
  // The simulated devices start before the first backward pass.
  std::map<std::string, Job> jobs;
  for (const char* const devices : {"sim*2", "cpu*2", "cpu", "bare"}) {
    jobs.try_emplace(devices, devices);
  }
  nlohmann::json first;
  for (auto& [devices, job] : jobs) {
    first[devices] = job.run(1);
  }
  serve({{"first_loss", first}}, [&](const std::string& line) {
    Job& job = jobs.at(line);
    job.run(kWarmUps);
    const auto start = std::chrono::steady_clock::now();
    job.run(kSteps);
    const std::chrono::duration<double, std::micro> took =
        std::chrono::steady_clock::now() - start;
    return nlohmann::json{{"us_per_step", took.count() / kSteps}};
  });
  return 0;
}

} // namespace
} // namespace lockstep::bench

int main() {
  return lockstep::bench::run();
}
