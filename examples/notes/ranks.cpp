// SPDX-License-Identifier: BSD-3-Clause
//
// Each process trains on its part: lockstep run --nproc-per-node 2 ranks
#include <cstdio>

#include <lockstep/lockstep.h>
#include <torch/torch.h>

namespace ls = lockstep;
namespace dist = lockstep::dist;

int main() {
  dist::init_process_group({.backend = "gloo"});
  torch::manual_seed(0);
  torch::set_num_threads(1);
  const auto rows = torch::randn({100, 5});
  const auto dataset = ls::make_dataset(rows, rows.slice(1, 0, 1));
  const ls::DistributedSampler sampler(100);
  ls::Loader loader(dataset, {.batch_size = 10, .sampler = sampler});
  ls::DistributedDataParallel model(torch::nn::Linear(5, 1));
  torch::optim::SGD optimizer(model->parameters(), 0.1);
  for (int epoch = 0; epoch < 3; ++epoch) {
    torch::Tensor loss;
    for (const auto& [input, target] : loader) {
      optimizer.zero_grad();
      loss = torch::mse_loss(model->forward(input), target);
      loss.backward();
      optimizer.step();
    }
    dist::all_reduce(loss = loss.detach());
    if (dist::get_rank() == 0) {
      std::printf("epoch %d samples %d", epoch, int(sampler.size()));
      std::printf(" loss %.3f\n", loss.item<double>());
    }
  }
  if (dist::get_rank() == 0) {
    ls::save(model, "with_prefix.pth");
    ls::save(model->module(), "weights.pth");
  }
  dist::barrier();
  torch::nn::Linear net(5, 1);
  ls::load_weights(*net, "weights.pth");
  ls::load_weights(*model, "with_prefix.pth");
  if (dist::get_rank() == 0) {
    std::puts(
        torch::equal(net->weight, model->module()->weight) ? "equal" : "");
  }
  dist::destroy_process_group();
}
