// SPDX-License-Identifier: BSD-3-Clause
//
// One rank of a job, beside ranks of Python that run the original module:
//   RANK=0 WORLD_SIZE=2 MASTER_ADDR=... program_rank FOLDER NET
// tests/oracle/program_ddp.py starts it and compares FOLDER/NET.cpp.pt.
#include <cstdio>
#include <exception>
#include <string>

#include <ATen/Parallel.h>
#include <torch/nn/functional/loss.h>

#include "lockstep/ckpt/load.h"
#include "lockstep/distributed/distributed_data_parallel.h"
#include "lockstep/distributed/process_group.h"
#include "lockstep/optim/optimizers.h"
#include "lockstep/program/program.h"
#include "lockstep/tensor/checkpoint.h"
#include "lockstep/tensor/state_dict.h"

namespace {

namespace ls = lockstep;

constexpr std::size_t kSteps = 6;

void run(const std::string& front) {
  ls::Program net = ls::load_program(front + ".pt2");
  ls::DistributedDataParallel model(net);
  ls::SGD optimizer(
      *model,
      {.lr = 0.05, .momentum = 0.9, .weight_decay = 1e-4});
  const auto file = ls::ckpt::load(front + ".sgd.pt");
  const auto& batches = file->root.find("batches")->as_list()->items;
  const auto half = [](const ls::ckpt::Value& value) {
    return ls::to_tensor(*value.as_tensor()).chunk(2)[ls::dist::get_rank()];
  };
  for (std::size_t step = 0; step < kSteps; ++step) {
    const auto& parts = batches[step].as_tuple()->items;
    optimizer.zero_grad();
    torch::nn::functional::cross_entropy(
        model->forward(half(parts[0].as_tuple()->items[0])),
        half(parts[2]))
        .backward();
    optimizer.step();
  }
  ls::save({{"state", *net}}, front + ".cpp.pt");
}

} // namespace

int main(int argc, char** argv) try {
  if (argc != 3) {
    return 2;
  }
  at::set_num_threads(1);
  ls::dist::init_process_group({.backend = "gloo", .has_python_ranks = true});
  run(std::string(argv[1]) + "/" + argv[2]);
  ls::dist::destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
