// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/tensor/internal/held_parts.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <ranges>
#include <set>
#include <typeinfo>

#include <c10/util/Type.h>
#include <torch/nn/module.h>

#include "lockstep/tensor/internal/given_tensors.h"
#include "lockstep/tensor/internal/module_children.h"
#include "lockstep/tensor/internal/registrations.h"
#include "lockstep/tensor/make_module.h"

namespace lockstep {
namespace {

using torch::nn::Module;
using Owners = std::vector<std::shared_ptr<Module>>;

bool registers_nothing(const Module& module) {
  const auto tensors = Registered::tensors_of(module);
  return children_of(module).empty() && tensors[0]->is_empty() &&
         tensors[1]->is_empty();
}

bool is_libtorchs(const Module& module) {
  return c10::demangle(typeid(module).name()).starts_with("torch::nn::");
}

// Modules of classes that LibTorch does not know, and whose members may hold
// what is registered.
void collect_owners(const std::shared_ptr<Module>& module, Owners& owners) {
  const Module& mine = *module;
  if (!registers_nothing(mine) && !is_libtorchs(mine) &&
      is_cloneable(*module)) {
    owners.push_back(module);
  }
  for (const auto& [name, child] : children_of(mine)) {
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

HeldParts::Counts HeldParts::counts() const {
  Counts counts;
  counts.reserve(parts_.size());
  for (const Part& part : parts_) {
    counts.push_back(static_cast<std::int64_t>(part.count()));
  }
  return counts;
}

void HeldParts::begin() {
  begun_ = counts();
}

std::vector<bool> HeldParts::borrowed() const {
  std::vector<bool> borrowed;
  borrowed.reserve(parts_.size());
  const Counts now = counts();
  for (std::size_t i = 0; i < now.size(); ++i) {
    borrowed.push_back(now[i] > begun_.at(i));
  }
  return borrowed;
}

HeldParts::Differences HeldParts::differences_in(
    const Module& copy,
    const std::function<std::shared_ptr<Module>()>& make_spare) const {
  const std::vector<bool> is_borrowed = borrowed();
  const Owners owners = owners_of(root_);
  const HeldParts copies(copy);
  if (owners.empty() || copies.parts_.size() != parts_.size() ||
      (!is_held_more(copies) && std::ranges::count(is_borrowed, true) == 0)) {
    return {};
  }
  const Owners made = owners_of(copy);
  const auto spare = make_spare();
  const Owners spares = owners_of(*spare);
  if (made.size() != owners.size() || spares.size() != owners.size()) {
    return {};
  }
  std::set<std::string> displaced;
  std::set<std::string> doubled;
  for (std::size_t k = 0; k < owners.size(); ++k) {
    // A given child is one object everywhere.
    if (contains(*spares[k]) || copies.contains(*spares[k])) {
      continue;
    }
    assign_module(*spares[k], made[k]);
    Counts ours = counts();
    Counts theirs = copies.counts();
    assign_module(*spares[k], owners[k]);
    // What the module's members hold of each part beyond what the copy's hold
    // of it, and what the copy's hold of their own.
    std::ranges::transform(counts(), ours, ours.begin(), std::minus<>());
    std::ranges::transform(
        theirs,
        copies.counts(),
        theirs.begin(),
        std::minus<>());
    // A part may have several names, and the copy a part for each: those of a
    // layer of LibTorch share all it has (`tie_alike`), but a program's class
    // may have numbers of its own.
    std::map<const void*, std::map<const void*, std::int64_t>> held;
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      held[parts_[i].address()][copies.parts_[i].address()] = theirs[i];
    }
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      const Part& part = parts_[i];
      const auto by_copies = held[part.address()] | std::views::values;
      const std::int64_t most =
          part.module == nullptr || is_libtorchs(*part.module)
              ? std::reduce(by_copies.begin(), by_copies.end())
              : std::ranges::max(by_copies);
      if (ours[i] > most) {
        displaced.insert(part.name);
      } else if (is_borrowed[i] && theirs[i] > ours[i]) {
        doubled.insert(part.name);
      }
    }
  }
  return {
      .displaced = {displaced.begin(), displaced.end()},
      .doubled = {doubled.begin(), doubled.end()}};
}

} // namespace lockstep
