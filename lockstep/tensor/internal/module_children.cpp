// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/tensor/internal/module_children.h"

#include <utility>

#include <torch/nn/modules/container/moduledict.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/container/parameterdict.h>
#include <torch/nn/modules/container/parameterlist.h>
#include <torch/nn/modules/container/sequential.h>

#include "lockstep/tensor/internal/registrations.h"
#include "lockstep/tensor/state_dict.h"

namespace lockstep {
namespace {

// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables)
thread_local const ChildrenGuard* children_here = nullptr;

using torch::nn::Module;
using torch::nn::ModuleDictImpl;
using torch::nn::ModuleListImpl;
using torch::nn::ParameterDictImpl;
using torch::nn::ParameterListImpl;
using torch::nn::SequentialImpl;
using Device = std::optional<c10::Device>;

template <class M>
const M* as(const Module& module) {
  return dynamic_cast<const M*>(&module);
}

std::shared_ptr<Module> clone_sequential(
    const SequentialImpl& sequential,
    const Device& device) {
  auto copy = std::make_shared<SequentialImpl>();
  auto module = sequential.begin();
  for (const auto& child : Registered::children_of(sequential)) {
    copy->push_back(
        child.key(),
        ChildrenGuard::is_in_container(*child.value()) ? *module
                                                       : module->clone(device));
    ++module;
  }
  return copy;
}

std::shared_ptr<Module> clone_listed(
    const std::shared_ptr<Module>& child,
    const Device& device) {
  return ChildrenGuard::is_in_container(*child) ? child
                                                : clone_tree(*child, device);
}

std::shared_ptr<Module> clone_list(
    const ModuleListImpl& list,
    const Device& device) {
  auto copy = std::make_shared<ModuleListImpl>();
  for (const auto& child : list) {
    copy->push_back(clone_listed(child, device));
  }
  return copy;
}

std::shared_ptr<Module> clone_dict(
    const ModuleDictImpl& dict,
    const Device& device) {
  std::vector<std::pair<std::string, std::shared_ptr<Module>>> children;
  for (const auto& child : dict) {
    children.emplace_back(child.key(), clone_listed(child.value(), device));
  }
  return std::make_shared<ModuleDictImpl>(children);
}

// Their reset() makes no parameters, so that LibTorch's clone() fails.
template <class List>
std::shared_ptr<Module> clone_parameters(
    const Module& list,
    const Device& device) {
  auto copy = std::make_shared<List>();
  for (const auto& item : list.named_parameters(/*recurse=*/false)) {
    const at::Tensor& from = item.value();
    const at::Tensor to = from.detach().to(
        device.value_or(from.device()),
        from.scalar_type(),
        /*non_blocking=*/false,
        /*copy=*/true);
    copy->register_parameter(item.key(), to, from.requires_grad());
  }
  return copy;
}

// What Cloneable<M>, if the module is one, asks for the copy to assign.
struct CloneAsked {};
struct CloneProbe : Module {
  std::shared_ptr<Module> clone(const Device& /*device*/) const override {
    throw CloneAsked();
  }
};

// Gives Cloneable, which assigns a clone, the module itself.
struct Source : Module {
  explicit Source(std::shared_ptr<Module> source) : module(std::move(source)) {}
  std::shared_ptr<Module> clone(const Device& /*device*/) const override {
    return module;
  }
  std::shared_ptr<Module> module;
};

} // namespace

const torch::OrderedDict<std::string, at::Tensor>& own_parameters_of(
    const Module& module) {
  return *Registered::tensors_of(module)[0];
}

const torch::OrderedDict<std::string, at::Tensor>& own_buffers_of(
    const Module& module) {
  return *Registered::tensors_of(module)[1];
}

const torch::OrderedDict<std::string, std::shared_ptr<Module>>& own_children_of(
    const Module& module) {
  return Registered::children_of(module);
}

std::vector<std::pair<std::string, at::Tensor>> saved_buffers_of(
    const Module& module) {
  const auto* partly = dynamic_cast<const UnsavedBuffers*>(&module);
  std::vector<std::pair<std::string, at::Tensor>> saved;
  for (const auto& item : own_buffers_of(module)) {
    if (item.value().defined() &&
        (partly == nullptr || !partly->is_unsaved(item.key()))) {
      saved.emplace_back(item.key(), item.value());
    }
  }
  return saved;
}

void assign_module(Module& to, const std::shared_ptr<Module>& from) {
  Source source(from);
  Registered::assign_clone(to, source);
}

bool is_cloneable(Module& module) {
  CloneProbe probe;
  try {
    Registered::assign_clone(module, probe);
  } catch (const CloneAsked&) {
    return true;
  }
  return false;
}

bool clones_another_list(const Module& module) {
  return as<SequentialImpl>(module) != nullptr ||
         as<ModuleListImpl>(module) != nullptr ||
         as<ModuleDictImpl>(module) != nullptr;
}

std::shared_ptr<Module> clone_tree(const Module& module, const Device& device) {
  if (const auto* sequential = as<SequentialImpl>(module)) {
    return clone_sequential(*sequential, device);
  }
  if (const auto* list = as<ModuleListImpl>(module)) {
    return clone_list(*list, device);
  }
  if (const auto* dict = as<ModuleDictImpl>(module)) {
    return clone_dict(*dict, device);
  }
  if (as<ParameterListImpl>(module) != nullptr) {
    return clone_parameters<ParameterListImpl>(module, device);
  }
  if (as<ParameterDictImpl>(module) != nullptr) {
    return clone_parameters<ParameterDictImpl>(module, device);
  }
  return module.clone(device);
}

ChildStandIn::ChildStandIn(std::shared_ptr<Module> child)
    : Module(child->name()), child_(std::move(child)) {
  train(child_->is_training());
  const auto mine = Registered::tensors_of(*this);
  const auto tensors = Registered::tensors_of(*child_);
  *mine[0] = *tensors[0];
  *mine[1] = *tensors[1];
  Registered::children_of(*this) = Registered::children_of(*child_);
}

std::shared_ptr<Module> ChildStandIn::clone(const Device& device) const {
  is_cloned_ = true;
  if (child_.use_count() > holders_) {
    is_held_ = true;
    return child_;
  }
  return clone_tree(*child_, device);
}

void ChildStandIn::restore() const {
  if (!is_held_) {
    return;
  }
  const auto mine = Registered::tensors_of(*this);
  const auto tensors = Registered::tensors_of(*child_);
  *tensors[0] = *mine[0];
  *tensors[1] = *mine[1];
  const auto& my_children = Registered::children_of(*this);
  auto& children = Registered::children_of(*child_);
  auto* const dict = dynamic_cast<ModuleDictImpl*>(child_.get());
  if (dict != nullptr && children.is_empty()) {
    dict->update(my_children.pairs()); // its own list is empty, too
  } else {
    children = my_children;
  }
}

ChildrenGuard::ChildrenGuard(const Module& root) {
  exchange_children(root);
  for (const Place& place : places_) {
    place.stand_in->count_holders();
  }
  for (const Module* module : seen_) {
    holders_[module] = module->weak_from_this().use_count();
  }
  outer_ = std::exchange(children_here, this);
}

ChildrenGuard::~ChildrenGuard() {
  children_here = outer_;
  for (const Place& place : places_) {
    place.stand_in->restore();
  }
  for (const Place& place : places_) {
    place.parent->replace_module(place.name, place.stand_in->child());
  }
}

std::set<const Module*> ChildrenGuard::those_that(bool (ChildStandIn::*is)()
                                                      const) const {
  std::set<const Module*> children;
  for (const Place& place : places_) {
    if ((*place.stand_in.*is)()) {
      children.insert(place.stand_in->child().get());
    }
  }
  return children;
}

// The container holds it as a child and in its list; a member brought it there.
bool ChildrenGuard::is_in_container(const Module& child) {
  constexpr long kByContainerAndMember = 3;
  for (const auto* guard = children_here; guard != nullptr;
       guard = guard->outer_) {
    const auto known = guard->holders_.find(&child);
    if (known != guard->holders_.end()) {
      return child.weak_from_this().use_count() >=
             known->second + kByContainerAndMember;
    }
  }
  return false;
}

void ChildrenGuard::exchange_children(const Module& parent) {
  if (!seen_.insert(&parent).second) {
    return;
  }
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast): put back
  auto* const mine = const_cast<Module*>(&parent);
  const bool keeps = clones_another_list(parent) || !is_cloneable(*mine);
  for (const auto& child : parent.named_children()) {
    if (child.value() == nullptr ||
        dynamic_cast<const ChildStandIn*>(child.value().get()) != nullptr) {
      continue;
    }
    exchange_children(*child.value());
    if (!keeps) {
      auto& stand_in = stand_ins_[child.value().get()];
      if (stand_in == nullptr) {
        stand_in = std::make_shared<ChildStandIn>(child.value());
      }
      mine->replace_module(child.key(), std::shared_ptr<Module>(stand_in));
      places_.push_back(
          {.parent = mine, .name = child.key(), .stand_in = stand_in});
    }
  }
}

} // namespace lockstep
