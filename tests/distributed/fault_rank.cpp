// SPDX-License-Identifier: BSD-3-Clause
//
// One rank of a small job, and what befalls it. faults_test.py starts it.
//   fault_rank STEPS TIMEOUT_SECONDS [FAULT RANK STEP PLACE [BACKEND]]
// The fault strikes in the first attempt only, if a launcher makes several.
// Prints "done" when all steps were made, else the error, with status 1.
#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>

#include <torch/torch.h>

#include "lockstep/distributed/distributed_data_parallel.h"
#include "lockstep/distributed/process_group.h"
#include "lockstep/launch/error_file.h"

namespace {

namespace ls = lockstep;
namespace dist = lockstep::dist;

struct Fault {
  std::string_view name = {};
  void (*strike)() = nullptr;
};

// NOLINTBEGIN(concurrency-mt-unsafe): what a rank may do
const std::array kFaults{
    Fault{"kill", [] { std::raise(SIGKILL); }},
    Fault{"stop", [] { std::raise(SIGSTOP); }},
    Fault{"throw", [] { throw std::runtime_error("no such file"); }},
    Fault{"exit", [] { std::exit(0); }},
    Fault{"quit", [] { ::_exit(0); }},
    Fault{"hang", [] { std::this_thread::sleep_for(std::chrono::hours(1)); }},
    Fault{
        "other",
        [] {
          at::Tensor tensor = torch::ones({3});
          dist::all_reduce(tensor);
        }},
    Fault{"leave", [] { dist::destroy_process_group(); }},
};
// NOLINTEND(concurrency-mt-unsafe)

/// What is to happen, where and when.
struct Plan {
  std::string fault = {};
  int rank = -1;
  int step = -1;
  std::string place = {};

  void pass(std::string_view here, int now) const {
    if (here != place || now != step || dist::get_rank() != rank) {
      return;
    }
    for (const Fault& known : kFaults) {
      if (known.name == fault) {
        known.strike();
      }
    }
  }
};

/// Buffers, so that forward has collectives, too.
struct NetImpl : torch::nn::Module {
  at::Tensor forward(const at::Tensor& x) {
    return last->forward(norm->forward(first->forward(x)).relu());
  }
  torch::nn::Linear first =
      register_module("first", torch::nn::Linear(20, 100));
  torch::nn::BatchNorm1d norm =
      register_module("norm", torch::nn::BatchNorm1d(100));
  torch::nn::Linear last = register_module("last", torch::nn::Linear(100, 10));
};
TORCH_MODULE(Net);

void train(int steps, const Plan& plan) {
  Net net;
  int step = -1;
  // In the middle of the backward pass: some gradients are on their way.
  net->first->weight.register_hook([&](const at::Tensor& gradient) {
    plan.pass("backward", step);
    return gradient;
  });
  plan.pass("wrap", step);
  ls::DistributedDataParallel model(net, {.bucket_cap_mb = 0.001});
  torch::optim::SGD sgd(model->parameters(), 0.01);
  for (step = 0; step < steps; ++step) {
    plan.pass("forward", step);
    model->zero_grad();
    at::Tensor loss = model->forward(torch::randn({8, 20})).square().mean();
    loss.backward();
    plan.pass("update", step);
    sgd.step();
    at::Tensor total = loss.detach();
    dist::all_reduce(total);
    if (step % 20 == 0 && dist::get_rank() == 0) {
      std::printf("step %d\n", step);
      std::fflush(stdout);
    }
  }
}

int run(int argc, char** argv) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): one thread
  const char* const attempt = std::getenv("TORCHELASTIC_RESTART_COUNT");
  const bool is_again = attempt != nullptr && *attempt != '0';
  const Plan plan = argc < 7 || is_again ? Plan()
                                         : Plan{
                                               .fault = argv[3],
                                               .rank = std::stoi(argv[4]),
                                               .step = std::stoi(argv[5]),
                                               .place = argv[6]};
  torch::set_num_threads(1);
  dist::init_process_group(
      {.backend = argc > 7 ? argv[7] : "",
       .timeout = std::chrono::milliseconds(
           static_cast<std::int64_t>(std::stod(argv[2]) * 1000))});
  train(std::stoi(argv[1]), plan);
  dist::barrier();
  std::puts("done");
  dist::destroy_process_group();
  return 0;
}

} // namespace

int main(int argc, char** argv) try {
  return run(argc, argv);
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  lockstep::launch::write_error_file(error);
  return 1;
}
