// SPDX-License-Identifier: BSD-3-Clause
//
// A task of one's own: the net finds a bright square in a picture, and says
// which of two kinds it is. Its results and the targets are structs of tensors,
// the loss is made of both parts, and the accuracy of one chooses the best
// epoch. Trains on two replicas.
#include <iostream>
#include <tuple>

#include <torch/torch.h>

#include "lockstep/data/made_dataset.h"
#include "lockstep/train/trainer.h"

namespace ls = lockstep;
namespace nn = torch::nn;

struct Square {
  torch::Tensor corner, kind; // [2] in pixels, [] 0 or 1
};
struct Found {
  torch::Tensor corner, scores; // [N, 2], [N, 2]
};
template <>
struct ls::Structure<Square> : ls::Fields<&Square::corner, &Square::kind> {};
template <>
struct ls::Structure<Found> : ls::Fields<&Found::corner, &Found::scores> {};

struct Net : nn::Module {
  Found forward(const torch::Tensor& pictures) {
    const auto seen = torch::relu(body(pictures.flatten(1)));
    return {.corner = place(seen), .scores = kind(seen)};
  }
  nn::Linear body = register_module("body", nn::Linear(12 * 12, 64));
  nn::Linear place = register_module("place", nn::Linear(64, 2));
  nn::Linear kind = register_module("kind", nn::Linear(64, 2));
};

std::tuple<torch::Tensor, Square> sample(std::int64_t i) {
  const std::int64_t x = i * 7 % 8;
  const std::int64_t y = i * 5 % 11 % 8;
  auto picture = torch::zeros({1, 12, 12});
  picture.slice(1, y, y + 4).slice(2, x, x + 4).fill_(i % 2 == 0 ? 1 : -1);
  return {
      picture,
      {torch::tensor({x, y}, torch::kFloat), torch::tensor(i % 2)}};
}

int main() {
  torch::manual_seed(0);
  const ls::train::Task finding{
      .name = "finding",
      .loss =
          [](const Found& found, const Square& square) {
            return torch::cross_entropy_loss(found.scores, square.kind) +
                   torch::mse_loss(found.corner, square.corner) / 64;
          },
      .metrics = {ls::accuracy({1})},
      .measured =
          [](const Found& found, const Square& square) {
            return std::pair{found.scores, square.kind};
          }};
  ls::train::Trainer trainer(
      {.batch_size = 16,
       .devices = "cpu*2",
       .threads = 2,
       .epochs = 4,
       .lr = 0.05,
       .output = "squares"},
      {.own = {
           .model = std::make_shared<Net>(),
           .train_data = ls::as_dataset(ls::make_dataset(320, sample)),
           .test_data = ls::as_dataset(ls::make_dataset(80, sample)),
           .task = finding}});
  const auto result = trainer.run();
  const bool is_found = result.test && result.test->loss < 0.2;
  std::cout << result.best_by.column << " " << result.best.value_or(0) << " %\n"
            << (is_found ? "found\n" : "not found\n");
}
