// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/parallel/internal/module_parts.h"

#include <algorithm>
#include <utility>

#include <torch/nn/module.h>

#include "lockstep/tensor/internal/module_children.h"

namespace lockstep::parallel {
namespace {

using Module = torch::nn::Module;
using TensorDict = torch::OrderedDict<std::string, at::Tensor>;

NamedTensors to_list(const TensorDict& dict) {
  NamedTensors list;
  list.reserve(dict.size());
  for (const auto& item : dict) {
    list.emplace_back(item.key(), item.value());
  }
  return list;
}

bool is_same(
    const std::weak_ptr<Module>& known,
    const std::shared_ptr<Module>& module) {
  return !known.owner_before(module) && !module.owner_before(known);
}

std::vector<std::weak_ptr<Module>> modules_of(const Module& root) {
  const auto all = root.modules();
  return {all.begin(), all.end()};
}

// Goes through a tree in the order of Module::modules().
class Comparison {
 public:
  Comparison(
      const std::vector<std::weak_ptr<Module>>& modules,
      const NamedTensors& parameters,
      std::size_t own_parameters)
      : modules_(modules),
        parameters_(parameters),
        own_parameters_(own_parameters) {
    changes_.modes.reserve(modules.size());
  }

  ModuleParts::Changes of(
      const std::shared_ptr<Module>& root,
      std::size_t buffers) {
    changes_.in_structure = !visit(root) || module_ != modules_.size() ||
                            parameter_ != own_parameters_;
    changes_.in_buffers = buffers_ != buffers;
    return std::move(changes_);
  }

 private:
  bool visit(const std::shared_ptr<Module>& module) {
    if (module_ == modules_.size() || !is_same(modules_[module_], module)) {
      return false;
    }
    ++module_;
    changes_.modes.push_back(module->is_training());
    for (const auto& item : own_parameters_of(*module)) {
      if (!item.value().defined()) {
        continue;
      }
      if (parameter_ == own_parameters_ ||
          !parameters_[parameter_].second.is_same(item.value())) {
        return false;
      }
      ++parameter_;
    }
    for (const auto& item : own_buffers_of(*module)) {
      buffers_ += item.value().defined() ? 1 : 0;
    }
    for (const auto& child : own_children_of(*module)) {
      changes_.has_lone_child |= child.value().use_count() == 1;
      if (!visit(child.value())) {
        return false;
      }
    }
    return true;
  }

  const std::vector<std::weak_ptr<Module>>& modules_;
  const NamedTensors& parameters_;
  std::size_t own_parameters_;
  std::size_t module_ = 0;
  std::size_t parameter_ = 0;
  std::size_t buffers_ = 0;
  ModuleParts::Changes changes_ = {};
};

// What forward may have registered: a walk that looks at no tensor.
struct TreeCount {
  const std::vector<std::weak_ptr<Module>>& modules;
  std::size_t module = 0;
  std::size_t parameters = 0;

  // False if `next` is not the module that was next.
  bool visit(const std::shared_ptr<Module>& next) {
    if (module == modules.size() || !is_same(modules[module], next)) {
      return false;
    }
    ++module;
    parameters += own_parameters_of(*next).size();
    return std::ranges::all_of(
        own_children_of(*next),
        [this](const auto& child) { return visit(child.value()); });
  }
};

} // namespace

ModuleParts::ModuleParts(
    const std::shared_ptr<Module>& root,
    const ModuleParts* master)
    : modules(modules_of(*root)),
      parameters(to_list(root->named_parameters())),
      all_buffers_(to_list(root->named_buffers())),
      own_parameters_(parameters.size()) {
  for (std::size_t i = 0; i < all_buffers_.size(); ++i) {
    const bool takes_gradient = master != nullptr && i < master->flags.size()
                                    ? master->flags[i]
                                    : all_buffers_[i].second.requires_grad();
    flags.push_back(takes_gradient);
    (takes_gradient ? parameters : buffers).push_back(all_buffers_[i]);
  }
  TreeCount all{.modules = modules};
  all.visit(root);
  registered_ = all.parameters;
}

ModuleParts::Changes ModuleParts::changes() const {
  for (std::size_t i = 0; i < all_buffers_.size(); ++i) {
    if (all_buffers_[i].second.requires_grad() != flags[i]) {
      return {.in_structure = true};
    }
  }
  const auto root = modules.front().lock();
  if (root == nullptr) {
    return {.in_structure = true};
  }
  return Comparison(modules, parameters, own_parameters_)
      .of(root, all_buffers_.size());
}

std::string ModuleParts::added() const {
  const auto root = modules.front().lock();
  TreeCount now{.modules = modules};
  if (root == nullptr || (now.visit(root) && now.module == modules.size() &&
                          now.parameters == registered_)) {
    return {};
  }
  for (const auto& item : root->named_modules("", /*include_self=*/false)) {
    const bool is_known = std::ranges::any_of(modules, [&](const auto& known) {
      return is_same(known, item.value());
    });
    if (!is_known) {
      return item.key();
    }
  }
  for (const auto& item : root->named_parameters()) {
    const bool is_known = std::ranges::any_of(
        parameters,
        [&](const auto& known) { return known.first == item.key(); });
    if (!is_known) {
      return item.key();
    }
  }
  return {};
}

} // namespace lockstep::parallel
