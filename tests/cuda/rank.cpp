// SPDX-License-Identifier: BSD-3-Clause
#include "tests/cuda/rank.h"

#include <chrono>
#include <iostream>
#include <stdexcept>

#include "lockstep/distributed/distributed_data_parallel.h"
#include "tests/cuda/support.h"
#include "tests/parallel/nets.h"

namespace lockstep::test {
namespace {

constexpr int kRanks = 2;

/// Names what is wrong; the process ends with it.
void require(bool is_right, const std::string& what) {
  if (!is_right) {
    throw std::runtime_error(what);
  }
}

/// Of one rank and step: waves.
at::Tensor waves(int rank, int step) {
  return torch::arange(6.0 * 64)
      .add(50 * rank + 7 * step)
      .sin()
      .view({6, 1, 8, 8})
      .to(torch::kFloat)
      .to(kGpu);
}

at::Tensor loss_of(const at::Tensor& out) {
  return torch::cross_entropy_loss(out, torch::arange(6, kGpu));
}

void check_collectives(const dist::ProcessGroup& group) {
  const int rank = group.rank();
  at::Tensor sum = torch::full({1000, 77}, rank + 1.0, kGpu);
  group.all_reduce(sum);
  require(sum.device() == kGpu, "all_reduce moved the tensor");
  require(sum.eq(3).all().item<bool>(), "all_reduce");
  at::Tensor from_last = torch::full({5}, rank, kGpu);
  group.broadcast(from_last, 1);
  require(from_last.eq(1).all().item<bool>(), "broadcast");
  const auto all = group.all_gather(torch::full({3}, rank, kGpu));
  require(all.at(1).eq(1).all().item<bool>(), "all_gather");
  require(all.at(0).device() == kGpu, "all_gather went to another device");
  at::Tensor strided = torch::ones({4, 3}, kGpu).t();
  group.all_reduce(strided, dist::ReduceOp::kMax);
  require(strided.eq(1).all().item<bool>(), "all_reduce of a view");
  require(group.any(rank == 1), "any");
  group.barrier();
}

/// What each rank alone would have, averaged.
std::vector<at::Tensor> mean_gradients(
    const torch::nn::SequentialImpl& net,
    int step) {
  std::vector<at::Tensor> mean;
  for (int rank = 0; rank < kRanks; ++rank) {
    auto alone =
        std::dynamic_pointer_cast<torch::nn::SequentialImpl>(net.clone());
    alone->to(kGpu);
    copy_state(net, *alone);
    alone->zero_grad();
    loss_of(alone->forward(waves(rank, step))).backward();
    const auto gradients = gradients_of(*alone);
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      const at::Tensor part = gradients[i] / kRanks;
      rank == 0 ? mean.push_back(part) : void(mean[i] += part);
    }
  }
  return mean;
}

void check_training(const dist::ProcessGroup& group, bool views) {
  torch::manual_seed(group.rank()); // rank 0's weights go to all
  auto net = conv_net();
  net->to(kGpu);
  DistributedDataParallel model(
      net,
      {.process_group = group, .gradient_as_bucket_view = views});
  torch::optim::SGD sgd(
      net->parameters(),
      torch::optim::SGDOptions(0.05).momentum(0.9));
  for (int step = 0; step < 4; ++step) {
    const auto expected = mean_gradients(*net, step);
    sgd.zero_grad();
    loss_of(model->forward(waves(group.rank(), step))).backward();
    const auto gradients = gradients_of(*net);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      require(gradients[i].device() == kGpu, "a gradient left the device");
      require(
          torch::allclose(gradients[i], expected[i], 1e-4, 1e-6),
          "gradient " + std::to_string(i) + " of step " + std::to_string(step));
    }
    sgd.step();
  }
  for (const at::Tensor& parameter : net->parameters()) {
    const auto all = group.all_gather(parameter.detach());
    require(torch::equal(all.at(0), all.at(1)), "the ranks' weights differ");
  }
}

void meet(const std::string& backend, int rank, const std::string& folder) {
  const dist::ProcessGroup group = dist::init_process_group(
      {.backend = backend,
       .init_method = "file://" + folder + "/" + backend,
       .rank = rank,
       .world_size = kRanks,
       .timeout = std::chrono::seconds(30)});
  require(group.backend() == backend, "backend is " + group.backend());
  check_collectives(group);
  check_training(group, /*views=*/false);
  check_training(group, /*views=*/true);
  group.barrier();
  dist::destroy_process_group();
}

} // namespace

int run_rank(int rank, const std::string& folder) {
  use_deterministic_kernels();
  for (const char* backend : {"gloo", "shm"}) {
    try {
      meet(backend, rank, folder);
    } catch (const std::exception& error) {
      std::cout << backend << ", rank " << rank << ": " << error.what() << "\n";
      return 1;
    }
  }
  return 0;
}

} // namespace lockstep::test
