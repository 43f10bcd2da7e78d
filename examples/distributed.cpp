// SPDX-License-Identifier: BSD-3-Clause
//
// PyTorch's DistributedDataParallel tutorial: every rank trains on its part of
// the data, rank 0 saves, and the file is loaded with and without "module.".
//   lockstep run --nproc-per-node 2 ./distributed     (or torchrun --no-python)
#include <iomanip>
#include <iostream>
#include <memory>

#include <torch/torch.h>

#include "lockstep/lockstep.h"

namespace ls = lockstep;
namespace dist = lockstep::dist;

void train(
    ls::DistributedDataParallel<torch::nn::LinearImpl>& model,
    torch::optim::SGD& sgd,
    const std::shared_ptr<ls::RandomDataset>& dataset) {
  ls::DistributedSampler sampler(dataset->size());
  ls::Loader loader(dataset, {.batch_size = 10});
  for (int epoch = 0; epoch < 3; ++epoch) {
    sampler.set_epoch(epoch);
    loader.start_epoch(sampler.indices(), epoch);
    torch::Tensor sum = torch::zeros({2}); // of the losses, and how many
    while (const auto batch = loader.next()) {
      const auto images = batch->images; // NOLINT: the condition checks it
      sgd.zero_grad();
      auto loss = model->forward(images).square().mean();
      loss.backward(); // averages the gradients over the ranks
      sgd.step();
      sum += torch::tensor({loss.item<float>(), 1.0F});
    }
    dist::all_reduce(sum);
    if (dist::get_rank() == 0) {
      const auto mean = (sum[0] / sum[1]).item<float>();
      std::cout << "epoch " << epoch << ": " << sampler.size()
                << " samples each, loss " << std::fixed << std::setprecision(3)
                << mean << "\n";
    }
  }
}

int main() {
  dist::init_process_group();
  torch::manual_seed(0);
  const auto dataset = std::make_shared<ls::RandomDataset>(5, 100);
  torch::manual_seed(dist::get_rank()); // DDP starts with rank 0's parameters
  torch::nn::Linear net(5, 2);
  ls::DistributedDataParallel model(net);
  torch::optim::SGD sgd(model->parameters(), 0.1);
  train(model, sgd, dataset);
  if (dist::get_rank() == 0) {
    ls::save(ls::state_dict(*model->module()), "weights.pth");
    ls::save(ls::state_dict(*model), "with_prefix.pth");
  }
  dist::barrier();
  torch::nn::Linear plain(5, 2);
  ls::load_weights(*plain, "weights.pth");
  ls::load_weights(*model->module(), "with_prefix.pth");
  const auto all = dist::all_gather(plain->weight);
  if (dist::get_rank() == 0) {
    std::cout << "equal on all " << all.size() << " ranks: " << std::boolalpha
              << (torch::equal(all.front(), all.back()) &&
                  torch::equal(all.front(), net->weight))
              << "\n";
  }
  dist::destroy_process_group();
}
