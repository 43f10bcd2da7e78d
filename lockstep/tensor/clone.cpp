// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/tensor/clone.h"

#include <torch/nn/modules/container/sequential.h>

#include "lockstep/tensor/rng.h"

namespace lockstep {
namespace {

using torch::nn::Module;
using torch::nn::SequentialImpl;

std::shared_ptr<Module> clone_sequential(
    const SequentialImpl& sequential,
    const std::optional<c10::Device>& device) {
  auto copy = std::make_shared<SequentialImpl>();
  auto module = sequential.begin();
  for (const auto& child : sequential.named_children()) {
    copy->push_back(child.key(), module->clone(device));
    ++module;
  }
  return copy;
}

void copy_flags(const Module& from, Module& to) {
  to.train(from.is_training());
  auto parameters = to.named_parameters(/*recurse=*/false);
  for (const auto& item : from.named_parameters(/*recurse=*/false)) {
    parameters[item.key()].set_requires_grad(item.value().requires_grad());
  }
  const auto children = to.named_children();
  for (const auto& child : from.named_children()) {
    copy_flags(*child.value(), *children[child.key()]);
  }
}

} // namespace

std::shared_ptr<Module> clone_module(
    const Module& module,
    const std::optional<c10::Device>& device) {
  const RngStateGuard generator;
  const auto* sequential = dynamic_cast<const SequentialImpl*>(&module);
  std::shared_ptr<Module> copy = sequential == nullptr
                                     ? module.clone(device)
                                     : clone_sequential(*sequential, device);
  copy_flags(module, *copy);
  return copy;
}

} // namespace lockstep
