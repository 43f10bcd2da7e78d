// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/tensor/internal/given_tensors.h"

#include <algorithm>
#include <typeinfo>
#include <utility>

#include <c10/util/Type.h>
#include <torch/nn/modules/container/functional.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/loss.h>
#include <torch/nn/modules/pooling.h>

#include "lockstep/base/strings.h"
#include "lockstep/tensor/internal/functional_target.h"
#include "lockstep/tensor/internal/module_children.h"
#include "lockstep/tensor/internal/registrations.h"
#include "lockstep/tensor/modules.h"

namespace lockstep {
namespace {

namespace nn = torch::nn;
using torch::nn::Module;
using Exchange = std::function<void(at::Tensor&)>;

template <class M, class F>
void with(Module& module, const F& use) {
  if (auto* typed = dynamic_cast<M*>(&module)) {
    use(*typed);
  }
}

// The members of LibTorch's modules that are tensors they were given.
void exchange_members(Module& module, const Exchange& exchange) {
  const auto both = [&exchange](auto& m) {
    exchange(m.weight);
    exchange(m.options.weight());
  };
  const auto option = [&exchange](auto& m) { exchange(m.options.weight()); };
  const auto table = [&exchange](auto& m) {
    exchange(m.weight);
    exchange(m.options._weight());
  };
  const auto samples = [&exchange](auto& m) {
    exchange(m._random_samples);
    exchange(m.options._random_samples());
  };
  with<nn::EmbeddingImpl>(module, table);
  with<nn::EmbeddingBagImpl>(module, table);
  with<nn::BCELossImpl>(module, option);
  with<nn::MultiMarginLossImpl>(module, option);
  with<nn::MultiLabelSoftMarginLossImpl>(module, option);
  with<nn::NLLLossImpl>(module, both);
  with<nn::CrossEntropyLossImpl>(module, both);
  with<nn::BCEWithLogitsLossImpl>(module, both);
  with<nn::BCEWithLogitsLossImpl>(module, [&exchange](auto& m) {
    exchange(m.pos_weight);
    exchange(m.options.pos_weight());
  });
  with<nn::FractionalMaxPool2dImpl>(module, samples);
  with<nn::FractionalMaxPool3dImpl>(module, samples);
}

// Code of the user's in a tree: other classes than LibTorch's and ours, and
// functions that are objects.
bool has_own_code(Module& module) {
  const std::string name = c10::demangle(typeid(module).name());
  if (auto* const functional = dynamic_cast<nn::FunctionalImpl*>(&module)) {
    const std::string target = function_of(*functional).target_type().name();
    return !target.starts_with("PF") && !target.starts_with("St5_BindIFPF");
  }
  const bool is_known =
      name.starts_with("torch::nn::") || name.starts_with("lockstep::");
  return !is_known ||
         std::ranges::any_of(children_of(module), [](const auto& child) {
           return has_own_code(*child.second);
         });
}

bool is_assignable(Module& to, const Module& from) {
  return typeid(to) == typeid(from) && is_cloneable(to);
}

bool same_type_and_sizes(const at::Tensor& a, const at::Tensor& b) {
  return a.dtype() == b.dtype() && a.sizes() == b.sizes();
}

} // namespace

std::vector<std::pair<std::string, std::shared_ptr<Module>>> children_of(
    const Module& module) {
  std::vector<std::pair<std::string, std::shared_ptr<Module>>> children;
  for (const auto& child : module.named_children()) {
    const auto* stand_in =
        dynamic_cast<const ChildStandIn*>(child.value().get());
    if (child.value() != nullptr) {
      children.emplace_back(
          child.key(),
          stand_in == nullptr ? child.value() : stand_in->child());
    }
  }
  return children;
}

void each_tensor(
    const Module& module,
    const std::string& prefix,
    const std::function<void(const std::string&, const at::Tensor&)>& tell) {
  for (const auto& tensors :
       {module.named_parameters(/*recurse=*/false),
        module.named_buffers(/*recurse=*/false)}) {
    for (const auto& item : tensors) {
      tell(prefix + item.key(), item.value());
    }
  }
  for (const auto& [name, child] : children_of(module)) {
    each_tensor(*child, prefix + name + ".", tell);
  }
}

bool each_pair(
    const Module& from,
    const Module& to,
    const std::function<
        void(const std::string&, const at::Tensor&, const at::Tensor&)>& tell,
    const std::string& prefix) {
  const auto pairs = [&](const auto& ours, const auto& theirs) {
    if (ours.size() != theirs.size()) {
      return false;
    }
    for (std::size_t i = 0; i < ours.size(); ++i) {
      tell(prefix + ours[i].key(), ours[i].value(), theirs[i].value());
    }
    return true;
  };
  const auto children = children_of(from);
  const auto others = children_of(to);
  bool is_alike =
      pairs(from.named_parameters(false), to.named_parameters(false)) &&
      pairs(from.named_buffers(false), to.named_buffers(false)) &&
      children.size() == others.size();
  for (std::size_t i = 0; is_alike && i < children.size(); ++i) {
    is_alike = each_pair(
        *children[i].second,
        *others[i].second,
        tell,
        prefix + children[i].first + ".");
  }
  return is_alike;
}

OwnParts::OwnParts(
    const KeptParts& kept,
    const std::optional<c10::Device>& device,
    Children children,
    CopyChild copy_child)
    : kept_(kept),
      device_(device),
      clones_(std::move(children)),
      copy_child_(std::move(copy_child)) {}

void OwnParts::give(const Module& from, ModuleCopy& result) {
  result_ = &result;
  visit(from, *result.module, "");
}

at::Tensor OwnParts::own(const at::Tensor& tensor) {
  at::Tensor& mine = own_[tensor.unsafeGetTensorImpl()];
  if (!mine.defined()) {
    mine = tensor.detach().to(
        device_.value_or(tensor.device()),
        tensor.scalar_type(),
        /*non_blocking=*/false,
        /*copy=*/true);
    mine.set_requires_grad(tensor.requires_grad());
  }
  return mine;
}

std::shared_ptr<Module> OwnParts::own_child(const Module& child) {
  std::shared_ptr<Module>& mine = children_[&child];
  if (mine == nullptr) {
    for (const auto& module : child.modules(/*include_self=*/false)) {
      below_children_.insert(module.get());
    }
    try {
      mine = copy_child_(child).module;
    } catch (const c10::Error&) {
      mine = outline(child);
    }
  }
  return mine;
}

// The members that forward calls hold the child itself. A child that cannot be
// cloned needs no more than tensors under its names.
std::shared_ptr<Module> OwnParts::outline(const Module& child) {
  auto copy = std::make_shared<Module>(child.name());
  copy->train(child.is_training());
  for (const auto& item : child.named_parameters(/*recurse=*/false)) {
    copy->register_parameter(
        item.key(),
        own(item.value()),
        item.value().requires_grad());
  }
  for (const auto& item : child.named_buffers(/*recurse=*/false)) {
    copy->register_buffer(item.key(), own(item.value()));
  }
  for (const auto& [name, grandchild] : children_of(child)) {
    copy->register_module(name, outline(*grandchild));
  }
  return copy;
}

void copy_values(
    const Module& from,
    const Module& to,
    const std::optional<c10::Device>& to_device) {
  each_pair(
      from,
      to,
      [&to_device](
          const std::string&,
          const at::Tensor& ours,
          const at::Tensor& theirs) {
        const auto device = to_device.value_or(ours.device());
        if (theirs.device() == device && same_type_and_sizes(ours, theirs)) {
          theirs.copy_(ours);
        } else {
          theirs.set_data(ours.detach().to(
              device,
              ours.scalar_type(),
              /*non_blocking=*/false,
              /*copy=*/true));
        }
      });
}

// Names are compared: what the user exchanged since may hold something else.
void OwnParts::visit(
    const Module& from,
    Module& to,
    const std::string& prefix) {
  if (!seen_.insert(&to).second) {
    return;
  }
  const auto masters = Registered::tensors_of(from);
  const auto copies = Registered::tensors_of(to);
  for (std::size_t kind = 0; kind < copies.size(); ++kind) {
    for (auto& item : *copies[kind]) {
      const at::Tensor* master = masters[kind]->find(item.key());
      if (item.value().defined() && kept_.contains(item.value()) &&
          master != nullptr && master->defined()) {
        item.value() = own(*master);
      }
    }
  }
  exchange_members(to, [this](at::Tensor& member) {
    if (member.defined() && kept_.contains(member)) {
      member = own(member);
    }
  });
  visit_children(from, to, prefix);
}

void OwnParts::visit_children(
    const Module& from,
    Module& to,
    const std::string& prefix) {
  const auto children = children_of(from);
  std::size_t place = 0;
  for (const auto& item : to.named_children()) {
    const auto& copy = item.value();
    if (copy == nullptr || place == children.size()) {
      continue;
    }
    const auto& [name, child] = children[place++];
    const bool is_given =
        copy == child || clones_.held.contains(child.get()) ||
        dynamic_cast<const ChildStandIn*>(copy.get()) != nullptr;
    if (!is_given) {
      visit(*child, *copy, prefix + name + ".");
      if (clones_.cloned && !clones_.cloned->contains(child.get()) &&
          !clones_another_list(from)) {
        copy_values(*child, *copy, device_); // as clone() does for others
      }
      continue;
    }
    const auto own = own_child(*child);
    if (copy != child && is_assignable(*copy, *own)) {
      assign_module(*copy, own); // members of the copy may hold this, too
    } else {
      to.replace_module(item.key(), own);
    }
    note(prefix + name, *child);
  }
}

void OwnParts::note(const std::string& name, Module& child) {
  result_->borrowed.push_back(name);
  if (has_own_code(child)) {
    result_->shared.push_back(
        format("'{}' ({})", name, c10::demangle(typeid(child).name())));
  }
}

void OwnParts::note_held(const HeldParts& parts) {
  parts.each_held([this](const std::string& name, Module& child) {
    // What a given child has it has in the copy, too.
    const auto& known = result_->borrowed;
    if (!below_children_.contains(&child) &&
        std::ranges::find(known, name) == known.end()) {
      note(name, child);
    }
  });
}

} // namespace lockstep
