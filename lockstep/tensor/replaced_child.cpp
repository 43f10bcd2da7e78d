// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <memory>
#include <mutex>
#include <set>
#include <string_view>

#include <c10/util/Exception.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/container/parameterdict.h>
#include <torch/nn/modules/container/parameterlist.h>

#include "lockstep/base/strings.h"
#include "lockstep/tensor/modules.h"
#include "lockstep/tensor/state_dict.h"

namespace lockstep {
namespace {

using torch::nn::Module;

struct Found {
  std::string path = {};
  std::string name = {};
  std::string parent_class = {};
  bool is_nested = false;
  std::shared_ptr<Module> child = {};
};

void collect_replaced(
    const Module& module,
    const std::string& prefix,
    std::vector<Found>& found) {
  // The registration refers to a child, and this copy of it does.
  constexpr long kOurs = 2;
  const auto children = module.named_children();
  const auto is_held = [](const auto& child) {
    return child.value().use_count() > kOurs;
  };
  // A module of several children none of which a member holds keeps them in
  // its registry alone: nothing was replaced.
  const bool is_registry =
      children.size() > 1 &&
      std::none_of(children.begin(), children.end(), is_held);
  for (const auto& child : children) {
    if (!is_registry && !is_held(child)) {
      found.push_back(
          {.path = prefix + child.key(),
           .name = child.key(),
           .parent_class = class_name(module),
           .is_nested = !prefix.empty(),
           .child = child.value()});
    }
    collect_replaced(*child.value(), prefix + child.key() + ".", found);
  }
}

bool is_list_of_parameters(const Module& module) {
  return module.as<torch::nn::ParameterListImpl>() != nullptr ||
         module.as<torch::nn::ParameterDictImpl>() != nullptr;
}

void collect_tensors(
    const Module& module,
    const std::string& prefix,
    std::vector<std::string>& names) {
  // The registration refers to a tensor, and this copy of it does.
  constexpr std::size_t kOurs = 2;
  const bool is_list = is_list_of_parameters(module);
  for (const auto& tensors :
       {module.named_parameters(/*recurse=*/false),
        module.named_buffers(/*recurse=*/false)}) {
    for (const auto& item : tensors) {
      if (item.value().use_count() == kOurs && !is_list) {
        names.push_back(prefix + item.key());
      }
    }
  }
  for (const auto& child : module.named_children()) {
    collect_tensors(*child.value(), prefix + child.key() + ".", names);
  }
}

std::vector<Found> find_replaced(const Module& module) {
  std::vector<Found> found;
  collect_replaced(module, "", found);
  return found;
}

// How a new layer of this kind is made: LibTorch's holders have no "Impl".
std::string constructor_of(const Module& child) {
  constexpr std::string_view kImpl = "Impl";
  std::string name = child.name();
  if (!name.ends_with(kImpl)) {
    return format("std::make_shared<{}>(...)", name);
  }
  name.resize(name.size() - kImpl.size());
  return name + "(...)";
}

std::string hint_of(const std::vector<Found>& found) {
  if (found.empty()) {
    return {};
  }
  const Found& first = found.front();
  const std::string others =
      found.size() == 1
          ? std::string()
          : format(" (nor {} other registered ones)", found.size() - 1);
  const char* parent = first.is_nested ? "block" : "net";
  return format(
      "no member of {} holds the registered '{}'{}. If it was replaced with "
      "'=', forward uses the new layer, but state_dict, optimizers and "
      "replicas keep the old one; write {}->{} = {}->replace_module(\"{}\", "
      "{}); If nothing was replaced, keep the layer's shared_ptr in a member "
      "to silence this",
      first.parent_class,
      first.path,
      others,
      parent,
      first.name,
      parent,
      first.name,
      constructor_of(*first.child));
}

// Children that were warned of. A weak reference keeps an address from being
// used again.
class Warned {
 public:
  bool insert(const std::shared_ptr<Module>& child) {
    const std::lock_guard lock(mutex_);
    std::erase_if(known_, [](const auto& entry) { return entry.expired(); });
    return known_.insert(child).second;
  }

 private:
  std::mutex mutex_;
  std::set<std::weak_ptr<const Module>, std::owner_less<>> known_;
};

} // namespace

std::vector<std::string> replaced_children(const Module& module) {
  std::vector<std::string> names;
  for (const Found& found : find_replaced(module)) {
    names.push_back(found.path);
  }
  return names;
}

std::vector<std::string> replaced_tensors(const Module& module) {
  std::vector<std::string> names;
  collect_tensors(module, "", names);
  return names;
}

std::string replaced_children_hint(const Module& module) {
  return hint_of(find_replaced(module));
}

void warn_of_replaced_children(const Module& module) {
  static Warned warned;
  std::vector<Found> found = find_replaced(module);
  std::erase_if(found, [](const Found& entry) {
    return !warned.insert(entry.child);
  });
  if (!found.empty()) {
    TORCH_WARN(hint_of(found));
  }
}

} // namespace lockstep
