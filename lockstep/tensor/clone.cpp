// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <sstream>
#include <string>
#include <typeinfo>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <c10/util/Exception.h>
#include <torch/nn/module.h>

#include "lockstep/base/strings.h"
#include "lockstep/tensor/internal/given_tensors.h"
#include "lockstep/tensor/internal/held_parts.h"
#include "lockstep/tensor/internal/layer_options.h"
#include "lockstep/tensor/internal/made_tensors.h"
#include "lockstep/tensor/internal/module_children.h"
#include "lockstep/tensor/make_module.h"
#include "lockstep/tensor/modules.h"
#include "lockstep/tensor/rng.h"

namespace lockstep {
namespace {

using torch::nn::Module;

// clone() of a class that inherits it makes an object of the base class, and
// LibTorch's Sequential then holds nothing in its place.
void check_same_classes(const Module& made, const Module& master) {
  const auto children = children_of(made);
  const auto masters = children_of(master);
  bool is_same =
      typeid(made) == typeid(master) && children.size() == masters.size();
  for (std::size_t i = 0; is_same && i < masters.size(); ++i) {
    check_same_classes(*children[i].second, *masters[i].second);
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
  if (to.is_training() != from.is_training()) {
    to.train(from.is_training());
  }
  const auto children = children_of(from);
  const auto copies = children_of(to);
  for (std::size_t i = 0; i < children.size(); ++i) {
    copy_flags(*children[i].second, *copies[i].second);
  }
}

void copy_all_flags(const Module& from, Module& to) {
  copy_flags(from, to);
  each_pair(
      from,
      to,
      [](const std::string&, const at::Tensor& ours, const at::Tensor& theirs) {
        if (ours.requires_grad() != theirs.requires_grad()) {
          theirs.set_requires_grad(ours.requires_grad());
        }
      });
}

// Equal names and shapes, in the same order.
template <class Dict>
bool same_entries(const Dict& a, const Dict& b) {
  return std::ranges::equal(a, b, [](const auto& x, const auto& y) {
    return x.key() == y.key() && x.value().sizes() == y.value().sizes();
  });
}

// With most options of LibTorch's layers.
std::string text_of(const Module& module) {
  std::ostringstream text;
  text << module;
  return text.str();
}

// Of modules whose texts are equal.
bool may_call_same_functions(const Module& made, const Module& master) {
  const auto copies = children_of(made);
  const auto children = children_of(master);
  bool may = may_call_same(made, master) && copies.size() == children.size();
  for (std::size_t i = 0; may && i < children.size(); ++i) {
    may = may_call_same_functions(*copies[i].second, *children[i].second);
  }
  return may;
}

bool is_built_like(const Module& made, const Module& master) {
  return text_of(made) == text_of(master) &&
         same_entries(made.named_parameters(), master.named_parameters()) &&
         same_entries(made.named_buffers(), master.named_buffers()) &&
         may_call_same_functions(made, master);
}

// Those that texts do not show.
void copy_all_options(const Module& from, Module& to) {
  copy_options(from, to);
  const auto children = children_of(from);
  const auto copies = children_of(to);
  for (std::size_t i = 0; i < children.size(); ++i) {
    copy_all_options(*children[i].second, *copies[i].second);
  }
}

// A clone() may copy its children by `clone_module`; the outermost copy tells.
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables)
thread_local int copies_begun = 0;

struct CopyBegun {
  CopyBegun() {
    ++copies_begun;
  }
  ~CopyBegun() {
    --copies_begun;
  }
  CopyBegun(const CopyBegun&) = delete;
  CopyBegun& operator=(const CopyBegun&) = delete;
};

using MakeModule = std::function<std::shared_ptr<Module>()>;

// Note [Displaced parts] in held_parts.h.
void check_members(
    const Module& module,
    const HeldParts& parts,
    const Module& copy,
    const MakeModule& make_spare) {
  const auto found = parts.differences_in(copy, make_spare);
  TORCH_CHECK(
      found.doubled.empty(),
      "members of a copy of ",
      module.name(),
      " hold '",
      join(found.doubled, "', '"),
      "' of the module beside its own: reset() appends to a list, which has "
      "that of the module already. Let it clear the list first");
  TORCH_CHECK(
      found.displaced.empty(),
      "members of ",
      module.name(),
      " hold '",
      join(found.displaced, "', '"),
      "', which a child registers; clone() assigns copies to the children that "
      "reset() makes, and members of the copy would keep what it displaces, "
      "with random values. Register each in reset() under a name of its own, "
      "too, as register_module(\"a\", a) or register_parameter(\"w\", w)");
}

// What members of the copy hold, and what they are to compute with.
void find_stand_ins(
    const Module& module,
    const KeptParts& kept,
    ModuleCopy& copy) {
  kept.each_held([&](const std::string& name, const at::Tensor&) {
    copy.borrowed.push_back(name);
  });
  if (copy.borrowed.empty()) {
    return;
  }
  install_stand_ins();
  each_pair(
      module,
      *copy.module,
      [&copy](
          const std::string&,
          const at::Tensor& ours,
          const at::Tensor& theirs) {
        copy.stand_ins.try_emplace(
            ours.unsafeGetTensorImpl(),
            StandIn{.original = ours, .own = theirs});
      });
}

// By the module's own clone().
ModuleCopy copy_cloned(
    const Module& module,
    const std::optional<c10::Device>& device) {
  HeldParts parts(module);
  const KeptParts kept(module);
  parts.begin();
  ModuleCopy result;
  OwnParts::Children clones;
  const MadeTensors made;
  {
    const ChildrenGuard children(module);
    result.module = clone_tree(module, device);
    clones = {
        .held = children.those_that(&ChildStandIn::is_held),
        .cloned = children.those_that(&ChildStandIn::is_cloned)};
  }
  kept.restore();
  const MakeModule make_spare = [&] {
    const ChildrenGuard children(module);
    return clone_tree(module, device);
  };
  check_same_classes(*result.module, module);
  check_members(module, parts, *result.module, make_spare);
  kept.restore();
  result.unlike = unlike_members(made, *result.module, make_spare);
  kept.restore();
  OwnParts own(kept, device, std::move(clones), [&device](const Module& child) {
    return copy_of(child, device);
  });
  own.give(module, result);
  own.note_held(parts);
  tie_alike(module, *result.module);
  copy_all_flags(module, *result.module);
  find_stand_ins(module, kept, result);
  return result;
}

// Of the module or of what is below, so far as make_module made it.
bool has_changed_members(const Module& module) {
  const internal::ModuleMaker* const maker = internal::maker_of(module);
  return (maker != nullptr && maker->has_changed_members(module)) ||
         std::ranges::any_of(children_of(module), [](const auto& child) {
           return has_changed_members(*child.second);
         });
}

std::optional<ModuleCopy> copy_made_again(
    const internal::ModuleMaker& maker,
    const Module& module,
    const std::optional<c10::Device>& device) {
  auto made = copy_constructed_by([&maker] { return maker.make(); }, module);
  if (made) {
    copy_values(module, *made->module, device);
    copy_all_flags(module, *made->module);
  }
  return made;
}

} // namespace

ModuleCopy copy_of(
    const Module& module,
    const std::optional<c10::Device>& device) {
  const at::NoGradGuard no_grad;
  const RngStateGuard generator;
  const CopyBegun inside;
  const internal::ModuleMaker* const maker = internal::maker_of(module);
  const bool is_changed = maker != nullptr && has_changed_members(module);
  if (maker != nullptr && !is_changed) {
    if (auto made = copy_made_again(*maker, module, device)) {
      return std::move(*made);
    }
  }
  try {
    return copy_cloned(module, device);
  } catch (const c10::Error&) {
    auto made = is_changed ? copy_made_again(*maker, module, device)
                           : std::optional<ModuleCopy>();
    if (!made) {
      throw;
    }
    made->lacks_changes = true;
    return std::move(*made);
  }
}

ModuleCopy copy_made_by(
    const std::function<std::shared_ptr<Module>()>& make,
    const Module& module) {
  const at::NoGradGuard no_grad;
  const CopyBegun inside;
  const HeldParts parts(module);
  const KeptParts kept(module);
  ModuleCopy result{.module = make()};
  kept.restore();
  OwnParts own(kept, std::nullopt, {}, [](const Module& child) {
    return copy_of(child);
  });
  own.give(module, result);
  own.note_held(parts);
  tie_alike(module, *result.module);
  find_stand_ins(module, kept, result);
  return result;
}

std::optional<ModuleCopy> copy_constructed_by(
    const std::function<std::shared_ptr<Module>()>& make,
    const Module& module) {
  const MadeTensors tensors;
  ModuleCopy made = copy_made_by(make, module);
  if (!is_built_like(*made.module, module)) {
    return std::nullopt;
  }
  copy_all_options(module, *made.module);
  made.unlike = unlike_members(tensors, *made.module, make);
  return made;
}

std::shared_ptr<Module> clone_module(
    const Module& module,
    const std::optional<c10::Device>& device) {
  const bool is_nested = copies_begun > 0;
  ModuleCopy copy = copy_of(module, device);
  TORCH_CHECK(
      is_nested || copy.borrowed.empty(),
      module.name(),
      " was given '",
      join(copy.borrowed, "', '"),
      "', and members of its copy would share it: copy it in reset(), "
      "w = register_buffer(\"w\", w.clone())");
  if (!is_nested && !copy.unlike.empty()) {
    TORCH_WARN(
        "members of the copy of ",
        module.name(),
        " hold tensors that are not registered, with other values than its "
        "own: ",
        join(copy.unlike, ", "));
  }
  if (!is_nested && copy.lacks_changes) {
    TORCH_WARN(
        "members of ",
        module.name(),
        " were changed after make_module made it, and its copy does not have "
        "the change");
  }
  return std::move(copy.module);
}

} // namespace lockstep
