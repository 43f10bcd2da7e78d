// SPDX-License-Identifier: BSD-3-Clause
#include <cstddef>
#include <limits>
#include <memory>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "lockstep/ckpt/core/places.h"
#include "lockstep/ckpt/core/tensor_layout.h"
#include "lockstep/ckpt/walk.h"

namespace lockstep::ckpt {
namespace {

constexpr std::size_t kNoEntry = std::numeric_limits<std::size_t>::max();

// As a tensor; without parts, as on "meta", it has a storage without bytes.
Tensor whole_of(
    const LayoutTensor& tensor,
    const std::vector<std::int64_t>& sizes) {
  Tensor whole;
  whole.dtype = tensor.dtype.value_or(whole.dtype);
  whole.sizes = sizes;
  if (tensor.parts.empty()) {
    whole.strides = tensor.strides;
    whole.requires_grad = tensor.requires_grad;
    whole.storage = std::make_shared<Storage>();
    whole.storage->location = tensor.layout == kMetaLayout ? tensor.layout : "";
  }
  return whole;
}

class TensorWalk final : public ValueWalk {
 public:
  TensorWalk(const TensorVisitors& visitors, const WalkBounds& bounds)
      : ValueWalk(bounds), visitors_(visitors) {}

  Status run(const Value& root) {
    top_ = root.as_dict();
    LOCKSTEP_TRY(walk(root));
    is_named_ = false;
    LOCKSTEP_TRY(visit_all(placed_, visitors_.placed));
    // Last: what is in another place, too, counts as that.
    is_beside_ = true;
    return visit_all(beside_, visitors_.beside);
  }

 private:
  // A place that no name leads to.
  struct Pending {
    std::string name = {};
    const Value* value = nullptr;
    std::size_t entry = kNoEntry;
    // Tensors that were met have a name already.
    bool only_new = false;
  };

  struct Seen {
    bool is_module = false;
    std::optional<LayoutTensor> layout = {};
  };

  // By its place: what lies in an object may be visited under the same name.
  [[nodiscard]] bool is_next_entry(const Value& value) const {
    const std::size_t next = entry_ + 1;
    return top_ != nullptr && next < top_->items.size() &&
           &value == &top_->items[next].second;
  }

  // What is found on the way is put behind.
  Status visit_all(
      const std::vector<Pending>& pending,
      const TensorVisitor* found) {
    found_ = found;
    // It grows meanwhile: no iterator and no reference stays valid.
    // NOLINTNEXTLINE(modernize-loop-convert)
    for (std::size_t i = 0; i < pending.size(); ++i) {
      // NOLINTNEXTLINE(performance-unnecessary-copy-initialization)
      const Pending next = pending[i];
      entry_ = next.entry;
      only_new_ = next.only_new;
      LOCKSTEP_TRY(below(next.name, *next.value));
    }
    return {};
  }

  Status visit(const Value& value) override {
    if (is_named_ && is_next_entry(value)) {
      ++entry_;
    }
    const bool is_node = value.as_tensor() != nullptr || child_count(value) > 0;
    const bool is_new = is_node && met_.insert(value.address()).second;
    if (const Tensor* tensor = value.as_tensor()) {
      if (found_ != nullptr && (is_new || !only_new_)) {
        if (visitors_.entry != nullptr) {
          *visitors_.entry = entry_;
        }
        (*found_)(name(), *tensor);
      }
      return is_new ? put_off(value, only_new_) : Status();
    }
    if (!is_node || (!is_named_ && !is_new)) {
      return {};
    }
    if (value.as_object() != nullptr) {
      return object(value, is_new);
    }
    LOCKSTEP_TRY(is_new ? put_off(value, only_new_) : Status());
    return enter(value);
  }

  Status object(const Value& value, bool is_new) {
    // What an object is takes a look through its state: once for all names.
    Seen& seen = seen_[value.as_object()];
    if (is_new) {
      const auto& state = value.as_object()->state;
      LOCKSTEP_TRY(count(state ? child_count(*state) : 0));
      seen.is_module = is_module(value);
      seen.layout = seen.is_module ? std::nullopt : layout_tensor(value);
      const bool outer =
          std::exchange(is_beside_, is_beside_ || seen.is_module);
      LOCKSTEP_TRY(put_off(value, only_new_ || seen.is_module || seen.layout));
      if (seen.is_module) {
        LOCKSTEP_TRY(put_off(std::string(kStatePlace), *state, true));
      }
      is_beside_ = outer;
    }
    if (seen.layout) {
      return parts(*seen.layout);
    }
    // Other objects once: a second name says nothing new.
    return is_new || seen.is_module ? enter(value) : Status();
  }

  // A sparse tensor shows as `name.indices`, `name.values`.
  Status parts(const LayoutTensor& tensor) {
    // A parameter's own tensor lies among its arguments, too.
    if (visitors_.wholes != nullptr && tensor.sizes && !only_new_) {
      (*visitors_.wholes)(name(), whole_of(tensor, *tensor.sizes));
    }
    for (const auto& [part, value] : tensor.parts) {
      LOCKSTEP_TRY(part.empty() ? walk(*value) : below(part, *value));
    }
    return {};
  }

  // Notes the children that `enter` leaves out.
  Status put_off(const Value& value, bool only_new) {
    for (std::size_t i = 0; i < child_count(value); ++i) {
      const Child child = child_of(value, i);
      const bool may_hold =
          child.value->as_tensor() != nullptr || child_count(*child.value) != 0;
      const std::string step = may_hold ? place_step(value, child) : "";
      if (!step.empty()) {
        LOCKSTEP_TRY(put_off(step, *child.value, only_new));
      }
    }
    return {};
  }

  Status put_off(const std::string& step, const Value& value, bool only_new) {
    if (visitors_.placed == nullptr && visitors_.beside == nullptr) {
      return {};
    }
    LOCKSTEP_TRY(count(1 + (name().size() + step.size()) / kVisitBytes));
    (is_beside_ ? beside_ : placed_)
        .push_back(
            {.name = name() + (name().empty() ? "" : ".") + step,
             .value = &value,
             .entry = path_size() == 0 ? kNoEntry : entry_,
             .only_new = only_new});
    return {};
  }

  TensorVisitors visitors_;
  // Of the tensors that are visited now.
  const TensorVisitor* found_ = visitors_.named;
  const Dict* top_ = nullptr;
  // That of the root which is gone through; before the first, none.
  std::size_t entry_ = kNoEntry;
  bool is_named_ = true;
  bool only_new_ = false;
  bool is_beside_ = false;
  std::vector<Pending> placed_;
  std::vector<Pending> beside_;
  // Tensors and containers.
  std::unordered_set<const void*> met_;
  std::unordered_map<const Object*, Seen> seen_;
};

TensorVisitor adds_to(std::vector<std::string>& names) {
  return [&names](const std::string& name, const Tensor& /*tensor*/) {
    names.push_back(name);
  };
}

} // namespace

Status for_each_tensor(
    const Value& root,
    const TensorVisitors& visitors,
    const WalkBounds& bounds) {
  return TensorWalk(visitors, bounds).run(root);
}

Status for_each_tensor(
    const Value& root,
    const TensorVisitor& visit,
    const WalkBounds& bounds) {
  return for_each_tensor(
      root,
      TensorVisitors{.named = &visit, .placed = &visit, .beside = &visit},
      bounds);
}

Status for_each_named_tensor(const Value& root, const TensorVisitor& visit) {
  return for_each_tensor(root, TensorVisitors{.named = &visit});
}

Result<std::vector<std::string>> unnamed_tensors(const Value& root) {
  std::vector<std::string> names;
  const TensorVisitor add = adds_to(names);
  LOCKSTEP_TRY(
      for_each_tensor(root, TensorVisitors{.placed = &add, .beside = &add}));
  return names;
}

Result<std::vector<std::string>> tensors_beside_state(const Value& root) {
  std::vector<std::string> names;
  const TensorVisitor add = adds_to(names);
  LOCKSTEP_TRY(for_each_tensor(root, TensorVisitors{.beside = &add}));
  return names;
}

bool holds_tensor(const Value& root) {
  bool found = false;
  NodeWalk().run(root, [&found](const Value& node) {
    found |= node.as_tensor() != nullptr;
    return !found;
  });
  return found;
}

std::string first_tensor_of(const Value& root, const Storage* storage) {
  std::optional<std::string> found;
  const Status status =
      for_each_tensor(root, [&](const std::string& name, const Tensor& tensor) {
        if (!found && tensor.storage.get() == storage) {
          found = name;
        }
      });
  return status ? found.value_or("") : "";
}

} // namespace lockstep::ckpt
