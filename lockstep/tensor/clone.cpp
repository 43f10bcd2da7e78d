// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/tensor/clone.h"

#include <typeinfo>

#include <c10/util/Exception.h>
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

// clone() of a class that inherits it makes an object of the base class, and
// LibTorch's Sequential then holds nothing in its place.
void check_same_classes(const Module& made, const Module& master) {
  const auto children = made.children();
  const auto masters = master.children();
  bool is_same =
      typeid(made) == typeid(master) && children.size() == masters.size();
  for (std::size_t i = 0; is_same && i < masters.size(); ++i) {
    is_same = children[i] != nullptr;
    if (is_same) {
      check_same_classes(*children[i], *masters[i]);
    }
  }
  if (!is_same) {
    TORCH_CHECK(
        false,
        master.name(),
        " has no clone() of its own, and the one that it inherits makes ",
        typeid(made) == typeid(master) ? "no module in place of a child"
                                       : "a " + made.name());
  }
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
  check_same_classes(*copy, module);
  copy_flags(module, *copy);
  return copy;
}

} // namespace lockstep
