// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/tensor/held_parts.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <typeinfo>

#include <c10/util/Type.h>
#include <torch/nn/module.h>

#include "lockstep/tensor/given_tensors.h"
#include "lockstep/tensor/internal/registrations.h"
#include "lockstep/tensor/module_children.h"
#include "lockstep/tensor/module_owner.h"

namespace lockstep {
namespace {

using torch::nn::Module;
using Owners = std::vector<std::shared_ptr<Module>>;

// What a Cloneable assigns to itself when it is to become a copy of this.
struct Source : Module {
  explicit Source(std::shared_ptr<Module> source) : module(std::move(source)) {}
  std::shared_ptr<Module> clone(
      const std::optional<c10::Device>& /*device*/) const override {
    return module;
  }
  std::shared_ptr<Module> module;
};

void assign(Module& to, const std::shared_ptr<Module>& from) {
  Source source(from);
  Registered::assign_clone(to, source);
}

// Modules of classes that LibTorch does not know and that have children: others
// hold nothing below a child.
void collect_owners(const std::shared_ptr<Module>& module, Owners& owners) {
  const Module& mine = *module;
  const auto children = children_of(mine);
  if (!children.empty() &&
      !c10::demangle(typeid(mine).name()).starts_with("torch::nn::") &&
      is_cloneable(*module)) {
    owners.push_back(module);
  }
  for (const auto& [name, child] : children) {
    collect_owners(child, owners);
  }
}

Owners owners_of(const Module& root) {
  Owners owners;
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast): only copies change
  collect_owners(share_module(const_cast<Module&>(root)), owners);
  return owners;
}

} // namespace

std::size_t HeldParts::Part::count() const {
  return module == nullptr ? tensor.use_count()
                           : static_cast<std::size_t>(module.use_count());
}

const void* HeldParts::Part::address() const {
  return module == nullptr
             ? static_cast<const void*>(tensor.unsafeGetTensorImpl())
             : module.get();
}

HeldParts::HeldParts(const Module& root) : root_(root) {
  add(root, "");
  for (Part& part : parts_) {
    part.holders = part.count();
  }
}

void HeldParts::add(const Module& module, const std::string& prefix) {
  const bool is_root = &module == &root_;
  for (const auto* tensors : Registered::tensors_of(module)) {
    for (const auto& item : *tensors) {
      if (item.value().defined()) {
        parts_.push_back(
            {.name = prefix + item.key(),
             .tensor = item.value(),
             .is_of_root = is_root});
      }
    }
  }
  for (const auto& [name, child] : children_of(module)) {
    parts_.push_back(
        {.name = prefix + name, .module = child, .is_of_root = is_root});
    add(*child, prefix + name + ".");
  }
}

void HeldParts::each_held(
    const std::function<void(const std::string&, Module&)>& tell) const {
  for (const Part& part : parts_) {
    if (part.module != nullptr && part.count() > part.holders) {
      tell(part.name, *part.module);
    }
  }
}

bool HeldParts::contains(const Module& module) const {
  return &module == &root_ ||
         std::ranges::any_of(parts_, [&module](const Part& part) {
           return part.module.get() == &module;
         });
}

bool HeldParts::is_held_more(const HeldParts& copies) const {
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    if (!parts_[i].is_of_root && parts_[i].holders > copies.parts_[i].holders) {
      return true;
    }
  }
  return false;
}

// How many holders each part has more afterwards.
HeldParts::Counts HeldParts::gained_by(
    const std::function<void()>& assign) const {
  Counts counts;
  for (const Part& part : parts_) {
    counts.push_back(part.count());
  }
  assign();
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    counts[i] = std::max(parts_[i].count(), counts[i]) - counts[i];
  }
  return counts;
}

std::vector<std::string> HeldParts::displaced_in(
    const Module& copy,
    const std::function<std::shared_ptr<Module>()>& make_spare) const {
  const Owners owners = owners_of(root_);
  const HeldParts copies(copy);
  if (owners.empty() || copies.parts_.size() != parts_.size() ||
      !is_held_more(copies)) {
    return {};
  }
  const Owners made = owners_of(copy);
  const auto spare = make_spare();
  const Owners spares = owners_of(*spare);
  if (made.size() != owners.size() || spares.size() != owners.size()) {
    return {};
  }
  std::set<std::string> names;
  for (std::size_t k = 0; k < owners.size(); ++k) {
    // A given child is one object everywhere.
    if (contains(*spares[k]) || copies.contains(*spares[k])) {
      continue;
    }
    const Counts ours = gained_by([&] { assign(*spares[k], owners[k]); });
    const Counts theirs =
        copies.gained_by([&] { assign(*spares[k], made[k]); });
    // A part may have several names, and the copy a part for each.
    std::map<const void*, std::size_t> most;
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      std::size_t& known = most[parts_[i].address()];
      known = std::max(known, theirs[i]);
    }
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      if (ours[i] > most[parts_[i].address()]) {
        names.insert(parts_[i].name);
      }
    }
  }
  return {names.begin(), names.end()};
}

} // namespace lockstep
