// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/tensor/make_module.h"

#include <algorithm>
#include <typeinfo>

#include "lockstep/tensor/internal/given_tensors.h"

namespace lockstep::internal {
namespace {

using torch::nn::Module;

const std::byte* bytes_of(const void* object) {
  return static_cast<const std::byte*>(object);
}

// Where a class may place its first member: Module's own end with a bool.
std::size_t end_of_module() {
  struct Derived : Module {
    std::byte first = {};
  };
  const Derived derived;
  const Module* const base = &derived;
  return static_cast<std::size_t>(&derived.first - bytes_of(base));
}

// What the class and its bases but Module have, as bytes.
std::vector<std::byte> members_of(const Module& module, std::size_t size) {
  const std::byte* const whole = bytes_of(dynamic_cast<const void*>(&module));
  const std::byte* const base = bytes_of(&module);
  static const std::size_t end = end_of_module();
  std::vector<std::byte> members(whole, base);
  members.insert(members.end(), base + end, whole + size);
  return members;
}

} // namespace

void Copies::add(const Module& module, const std::shared_ptr<Module>& copy) {
  add_modules(module, copy);
  each_pair(
      module,
      *copy,
      [this](const std::string&, const at::Tensor& ours, const at::Tensor& of) {
        tensors_[ours.unsafeGetTensorImpl()] = of;
      });
}

void Copies::add_modules(
    const Module& module,
    const std::shared_ptr<Module>& copy) {
  modules_[&module] = copy;
  const auto children = children_of(module);
  const auto copies = children_of(*copy);
  const std::size_t count = std::min(children.size(), copies.size());
  for (std::size_t i = 0; i < count; ++i) {
    const auto& [name, child] = children[i];
    const auto& other = copies[i].second;
    if (name == copies[i].first && typeid(*child) == typeid(*other)) {
      add_modules(*child, other);
    }
  }
}

std::shared_ptr<Module> Copies::find(const Module& module) const {
  const auto found = modules_.find(&module);
  return found == modules_.end() ? nullptr : found->second;
}

at::Tensor Copies::find(const at::Tensor& tensor) const {
  const auto found = tensors_.find(tensor.unsafeGetTensorImpl());
  return found == tensors_.end() ? at::Tensor() : found->second;
}

void make_again(const Module* argument, Copies& copies) {
  const ModuleMaker* const maker =
      argument == nullptr ? nullptr : maker_of(*argument);
  if (maker != nullptr && copies.find(*argument) == nullptr) {
    copies.add(*argument, maker->make(copies));
  }
}

void ModuleMaker::remember_members(const Module& module, std::size_t size) {
  members_ = members_of(module, size);
  size_ = size;
}

bool ModuleMaker::has_changed_members(const Module& module) const {
  return members_of(module, size_) != members_;
}

const ModuleMaker* maker_of(const Module& module) {
  return std::get_deleter<ModuleMaker>(module.weak_from_this().lock());
}

} // namespace lockstep::internal
