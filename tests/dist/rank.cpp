// SPDX-License-Identifier: BSD-3-Clause
//
// One rank of a job, with parts that users have: LibTorch's layers, loss and
// SGD. tests/oracle/dist_rank.py is the same program in Python; ranks_test.py
// starts both, mixed in every way, and compares what they save.
//   RANK=0 WORLD_SIZE=2 MASTER_ADDR=... dist_rank SCENARIO FOLDER [mixed]
#include <cstdio>
#include <memory>
#include <string>

#include <torch/torch.h>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/dist/distributed_data_parallel.h"
#include "lockstep/dist/process_group.h"
#include "lockstep/optim/adam.h"
#include "lockstep/tensor/checkpoint.h"
#include "lockstep/tensor/state_dict.h"

namespace {

namespace ls = lockstep;
namespace dist = lockstep::dist;

/// Two convolutions with BatchNorm, and two heads of which one may stay unused.
struct NetImpl : torch::nn::Module {
  NetImpl() {
    conv1 = register_module(
        "conv1",
        torch::nn::Conv2d(torch::nn::Conv2dOptions(1, 4, 3).padding(1)));
    bn1 = register_module("bn1", torch::nn::BatchNorm2d(4));
    conv2 = register_module(
        "conv2",
        torch::nn::Conv2d(torch::nn::Conv2dOptions(4, 8, 3).padding(1)));
    bn2 = register_module("bn2", torch::nn::BatchNorm2d(8));
    head1 = register_module("head1", torch::nn::Linear(8, 10));
    head2 = register_module("head2", torch::nn::Linear(8, 10));
  }

  at::Tensor forward(const at::Tensor& images, bool both_heads) {
    at::Tensor x = torch::relu(bn1->forward(conv1->forward(images)));
    x = torch::relu(bn2->forward(conv2->forward(x)));
    x = x.mean({2, 3});
    // In Python's order: the order of gradients decides what buckets hold.
    const at::Tensor first = head1->forward(x);
    return both_heads ? first + head2->forward(x) : first;
  }

  torch::nn::Conv2d conv1{nullptr};
  torch::nn::BatchNorm2d bn1{nullptr};
  torch::nn::Conv2d conv2{nullptr};
  torch::nn::BatchNorm2d bn2{nullptr};
  torch::nn::Linear head1{nullptr};
  torch::nn::Linear head2{nullptr};
};
TORCH_MODULE(Net);

ls::DistributedDataParallelOptions options_of(const std::string& scenario) {
  ls::DistributedDataParallelOptions options;
  options.gradient_as_bucket_view = scenario == "views";
  options.find_unused_parameters = scenario == "unused";
  options.static_graph = scenario == "static";
  if (scenario == "small_buckets") {
    options.bucket_cap_mb = 0.0005;
  }
  return options;
}

/// One step of `model` on this rank's next batch.
template <class Model>
void backward(Model& model, const std::string& scenario, int step) {
  const at::Tensor images = torch::randn({6, 1, 8, 8});
  const at::Tensor targets = torch::randint(10, {6});
  const bool both_heads = scenario != "unused" || step % 2 == 0;
  const at::Tensor outputs = model->forward(images, both_heads);
  torch::nn::functional::cross_entropy(outputs, targets).backward();
}

template <class Model>
void train(Model& model, const std::string& scenario) {
  torch::optim::SGD sgd(
      model->parameters(),
      torch::optim::SGDOptions(0.1).momentum(0.9));
  ls::AdamW adamw(model->parameters(), {.lr = 0.01});
  torch::manual_seed(100 + dist::get_rank());
  for (int step = 0; step < 20; ++step) {
    model->zero_grad();
    if (scenario == "no_sync") {
      const auto no_sync = model->no_sync();
      backward(model, scenario, step);
    }
    backward(model, scenario, step);
    if (scenario == "evaluation" && step % 5 == 4) {
      const torch::NoGradGuard no_grad;
      model->forward(torch::randn({6, 1, 8, 8}), true);
    }
    scenario == "adamw" ? adamw.step() : static_cast<void>(sgd.step());
  }
}

int run(const std::string& scenario, const std::string& folder, bool mixed) {
  torch::set_num_threads(1);
  dist::init_process_group({.has_python_ranks = mixed});
  torch::manual_seed(dist::get_rank()); // rank 0's weights are all ranks'
  Net net;
  ls::DistributedDataParallel model(net, options_of(scenario));
  train(model, scenario);
  const std::string file = ls::format("{}/rank{}.pt", folder, dist::get_rank());
  ls::save(ls::state_dict(*model), file);
  dist::destroy_process_group();
  return 0;
}

} // namespace

int main(int argc, char** argv) try {
  return run(argv[1], argv[2], argc > 3);
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
