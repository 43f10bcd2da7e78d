// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/tensor/make_module.h"

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
