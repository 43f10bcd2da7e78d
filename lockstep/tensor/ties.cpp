// SPDX-License-Identifier: BSD-3-Clause
//
// What a module holds in several places, in its copies.
#include <map>
#include <set>
#include <string>
#include <typeinfo>
#include <unordered_map>
#include <utility>
#include <vector>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <torch/nn/modules/container/moduledict.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/container/parameterdict.h>
#include <torch/nn/modules/container/parameterlist.h>
#include <torch/nn/modules/container/sequential.h>

#include "lockstep/tensor/internal/given_tensors.h"
#include "lockstep/tensor/internal/module_children.h"
#include "lockstep/tensor/internal/registrations.h"
#include "lockstep/tensor/modules.h"

namespace lockstep {
namespace {

namespace nn = torch::nn;
using torch::nn::Module;

at::Tensor own_tensor(
    const at::Tensor& tensor,
    const std::optional<c10::Device>& device) {
  at::Tensor own = tensor.detach().to(
      device.value_or(tensor.device()),
      tensor.scalar_type(),
      /*non_blocking=*/false,
      /*copy=*/true);
  own.set_requires_grad(tensor.requires_grad());
  return own;
}

/// Gives all places of a child the same copy.
class TiedChildren {
 public:
  void tie(const Module& module, Module& copy) {
    note(module, copy);
    seen_.clear();
    put(module, copy);
  }

 private:
  struct Copy {
    std::shared_ptr<Module> module = {};
    /// The same as a Sequential holds it: only its class can make another.
    nn::AnyModule any = {};
  };

  /// Calls `tell(place, name, child, its copy)` for the children of one module,
  /// once.
  template <class Tell>
  void each_child(const Module& from, const Module& to, const Tell& tell) {
    const auto children = children_of(from);
    const auto copies = children_of(to);
    if (!seen_.insert(&to).second || children.size() != copies.size()) {
      return;
    }
    for (std::size_t i = 0; i < children.size(); ++i) {
      const Module& child = *children[i].second;
      const Module& other = *copies[i].second;
      if (typeid(child) == typeid(other)) {
        tell(i, copies[i].first, child, copies[i].second);
      }
    }
  }

  void note(const Module& from, Module& to) {
    auto* const sequential = dynamic_cast<nn::SequentialImpl*>(&to);
    each_child(
        from,
        to,
        [&](std::size_t place,
            const std::string&,
            const Module& child,
            const std::shared_ptr<Module>& copy) {
          Copy& known = copies_[&child];
          if (sequential != nullptr && known.any.is_empty() &&
              holds(*sequential, place, *copy)) {
            known = {copy, *(sequential->begin() + std::ptrdiff_t(place))};
          } else if (known.module == nullptr) {
            known.module = copy;
          }
          note(child, *copy);
        });
  }

  void put(const Module& from, Module& to) {
    each_child(
        from,
        to,
        [&](std::size_t place,
            const std::string& name,
            const Module& child,
            const std::shared_ptr<Module>& copy) {
          const auto found = copies_.find(&child);
          if (found != copies_.end()) {
            const Copy& known = found->second;
            put(child, *known.module);
            if (known.module != copy &&
                !put_into(to, place, name, known, *copy)) {
              put(child, *copy); // what is below it
            }
          }
        });
  }

  // A class that inherits a container may register more than the container
  // holds; a container that holds another child than it registers was given
  // that one: Note [What a module was given] in modules.h.
  template <class Container>
  static bool
  holds(const Container& container, std::size_t place, const Module& child) {
    return place < container.size() && container.ptr(place).get() == &child;
  }

  static bool put_into(
      Module& parent,
      std::size_t place,
      const std::string& name,
      const Copy& known,
      Module& copy) {
    const auto offset = std::ptrdiff_t(place);
    if (auto* dict = dynamic_cast<nn::ModuleDictImpl*>(&parent)) {
      if (dict->contains(name) && (*dict)[name].get() == &copy) {
        dict->update(std::vector{std::pair(name, known.module)});
        return true;
      }
    } else if (auto* list = dynamic_cast<nn::ModuleListImpl*>(&parent)) {
      if (holds(*list, place, copy)) {
        *(list->begin() + offset) = known.module;
        parent.replace_module(name, known.module);
        return true;
      }
    } else if (auto* layers = dynamic_cast<nn::SequentialImpl*>(&parent)) {
      if (holds(*layers, place, copy) && !known.any.is_empty()) {
        *(layers->begin() + offset) = known.any;
        parent.replace_module(name, known.module);
        return true;
      }
    } else if (is_cloneable(copy)) { // a member holds it
      assign_module(copy, known.module);
      return true;
    }
    return false;
  }

  std::unordered_map<const Module*, Copy> copies_ = {};
  std::set<const Module*> seen_ = {};
};

/// The same for tensors, and for the memory of several.
class TiedTensors {
 public:
  void tie(const Module& module, Module& copy) {
    note(module, copy);
    tie_lists();
    for (const auto& [storage, places] : by_storage()) {
      share_memory(places);
    }
  }

 private:
  struct Place {
    const at::Tensor* master = nullptr;
    at::Tensor* copy = nullptr;
    /// Nothing but the list's registration holds it.
    bool is_in_list = false;
  };
  using Places = std::vector<Place>;

  void note(const Module& from, Module& to) {
    const auto children = children_of(from);
    const auto copies = children_of(to);
    if (!seen_.insert(&to).second || children.size() != copies.size()) {
      return;
    }
    const bool is_list =
        dynamic_cast<const nn::ParameterListImpl*>(&to) != nullptr ||
        dynamic_cast<const nn::ParameterDictImpl*>(&to) != nullptr;
    const auto masters = Registered::tensors_of(from);
    const auto tensors = Registered::tensors_of(to);
    for (std::size_t kind = 0; kind < tensors.size(); ++kind) {
      for (auto& item : *tensors.at(kind)) {
        const at::Tensor* const master = masters.at(kind)->find(item.key());
        if (master != nullptr && master->defined() && item.value().defined()) {
          places_.push_back({master, &item.value(), is_list});
        }
      }
    }
    for (std::size_t i = 0; i < children.size(); ++i) {
      note(*children[i].second, *copies[i].second);
    }
  }

  // Members hold the tensors of other modules: lists follow them.
  void tie_lists() {
    std::unordered_map<const c10::TensorImpl*, at::Tensor> known;
    for (const bool is_in_list : {false, true}) {
      for (const Place& place : places_) {
        if (place.is_in_list == is_in_list) {
          const at::Tensor first =
              known
                  .try_emplace(place.master->unsafeGetTensorImpl(), *place.copy)
                  .first->second;
          if (is_in_list) {
            *place.copy = first;
          }
        }
      }
    }
  }

  [[nodiscard]] std::map<const c10::StorageImpl*, Places> by_storage() const {
    std::map<const c10::StorageImpl*, Places> found;
    for (const Place& place : places_) {
      const at::Tensor& master = *place.master;
      if (master.layout() == at::kStrided && master.has_storage() &&
          !master.is_meta() && !master.is_quantized()) {
        found[master.storage().unsafeGetStorageImpl()].push_back(place);
      }
    }
    return found;
  }

  // One object, or tensors whose copies share already, are left alone.
  static void share_memory(const Places& places) {
    const Place& first = places.front();
    const at::Tensor& master = *first.master;
    bool is_one_object = true;
    bool is_shared = true;
    bool is_one_type = true;
    for (const Place& place : places) {
      is_one_object = is_one_object && place.master->is_same(master);
      is_shared = is_shared && place.copy->is_alias_of(*first.copy);
      is_one_type = is_one_type &&
                    place.master->scalar_type() == master.scalar_type() &&
                    place.copy->scalar_type() == master.scalar_type();
    }
    if (is_one_object || is_shared || !is_one_type) {
      return;
    }
    const at::Tensor whole =
        at::empty({0}, master.options()).set_(master.storage());
    const at::Tensor own = own_tensor(whole, first.copy->device());
    for (const Place& place : places) {
      place.copy->set_data(own.as_strided(
          place.master->sizes(),
          place.master->strides(),
          place.master->storage_offset()));
    }
  }

  Places places_ = {};
  std::set<const Module*> seen_ = {};
};

} // namespace

OwnRegistrations::OwnRegistrations(
    Module& copy,
    const std::optional<c10::Device>& device)
    : device_(device) {
  std::unordered_map<const c10::TensorImpl*, at::Tensor> known;
  for (auto* const tensors : Registered::tensors_of(copy)) {
    for (auto& item : *tensors) {
      if (item.value().defined()) {
        at::Tensor& own = known[item.value().unsafeGetTensorImpl()];
        item.value() =
            own.defined() ? own : own = own_tensor(item.value(), device);
      }
    }
  }
  for (auto& child : Registered::children_of(copy)) {
    if (child.value() != nullptr) {
      child.value() = of(*child.value());
    }
  }
}

std::shared_ptr<Module> OwnRegistrations::of(const Module& child) {
  std::shared_ptr<Module>& own = children_[&child];
  if (own == nullptr) {
    own = clone_module(child, device_);
  }
  return own;
}

void tie_alike(const Module& module, Module& copy) {
  const at::NoGradGuard no_grad;
  TiedChildren().tie(module, copy);
  TiedTensors().tie(module, copy);
}

} // namespace lockstep
