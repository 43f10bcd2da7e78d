// SPDX-License-Identifier: BSD-3-Clause
//
// DTensors in a tree. Each object is looked at once: what one is takes a look
// through its state.
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/budget.h"
#include "lockstep/ckpt/core/dtensor.h"
#include "lockstep/ckpt/core/tensor_layout.h"
#include "lockstep/ckpt/walk.h"

namespace lockstep::ckpt {
namespace {

constexpr std::size_t kMaxNamedShards = 20;

// Names of those that are kept.
class ShardWalk final : public ValueWalk {
 public:
  explicit ShardWalk(const WalkBounds& bounds) : ValueWalk(bounds) {}

  std::vector<Warning> warnings;

 private:
  Status visit(const Value& value) override {
    if (warnings.size() == kMaxNamedShards || !value.is_container()) {
      return {};
    }
    const auto [row, is_new] = shards_.try_emplace(value.address());
    std::string& shard = row->second;
    if (is_new) {
      const auto layout = layout_tensor(value);
      if (!layout) {
        return enter(value);
      }
      if (layout->layout == kDTensorLayout &&
          layout->part("local") != nullptr) {
        shard = describe(*layout);
      }
    }
    if (!shard.empty()) {
      warnings.push_back(
          {.name = "W_SHARD",
           .text = format(
               "'{}' is {}: this file holds the part of one rank",
               escape(name()),
               shard)});
    }
    return {};
  }

  // What is said of each object; empty for what is no shard.
  std::unordered_map<const void*, std::string> shards_;
};

// True if the object is a parameter of what a plain tensor can stand for.
bool is_plain_parameter(const Object& object) {
  const Tuple* args =
      object.args == nullptr ? nullptr : object.args->as_tuple();
  return object.global == names::kRebuildParameter && args != nullptr &&
         args->items.size() == 3 && args->items[1].as_bool() != nullptr &&
         child_count(args->items[2]) == 0;
}

class DTensorTaker {
 public:
  explicit DTensorTaker(Budget& budget) : budget_(budget) {}

  Status run(Value& root) {
    Status status = take(root);
    NodeWalk().run(root, [&](Value& node) {
      for (std::size_t i = 0; status && i < child_count(node); ++i) {
        status = take(child_at(node, i));
      }
      return status.has_value();
    });
    return status;
  }

  [[nodiscard]] std::size_t whole() const {
    return made_.size();
  }
  std::size_t shards = 0;

 private:
  Status take(Value& value) {
    LOCKSTEP_TRY(budget_.step());
    const Object* object = value.as_object();
    if (object == nullptr) {
      return {};
    }
    if (const auto known = made_.find(object); known != made_.end()) {
      value = known->second.tensor;
      return {};
    }
    const bool is_parameter = is_plain_parameter(*object);
    const Value& inner =
        is_parameter ? object->args->as_tuple()->items[0] : value;
    const Object* call = inner.as_object();
    if (call == nullptr || call->global != names::kRebuildFromType ||
        call->args == nullptr || call->args->as_tuple() == nullptr) {
      return {};
    }
    const std::optional<DTensor>& tensor = read(*call);
    if (!tensor || !tensor->is_whole || tensor->has_attributes) {
      return {};
    }
    const Tensor& local = *tensor->local->as_tensor();
    LOCKSTEP_TRY(budget_.make(
        sizeof(Made) + sizeof(Tensor) +
        sizeof(std::int64_t) * (local.sizes.size() + local.strides.size())));
    auto plain = std::make_shared<Tensor>(local);
    plain->is_parameter = is_parameter || tensor->is_parameter;
    plain->requires_grad = is_parameter
                               ? *object->args->as_tuple()->items[1].as_bool()
                               : tensor->requires_grad;
    // The old node stays alive, so that its address is not used again.
    made_.emplace(object, Made{.old = value, .tensor = plain});
    value = std::move(plain);
    return {};
  }

  // Several parameters may be of one.
  const std::optional<DTensor>& read(const Object& call) {
    const auto [row, is_new] = read_.try_emplace(&call);
    if (is_new) {
      row->second = read_dtensor(call.args->as_tuple()->items);
      shards += row->second && !row->second->is_whole ? 1 : 0;
    }
    return row->second;
  }

  struct Made {
    Value old = {};
    std::shared_ptr<Tensor> tensor = {};
  };
  Budget& budget_;
  std::unordered_map<const Object*, Made> made_;
  std::unordered_map<const Object*, std::optional<DTensor>> read_;
};

} // namespace

Result<std::vector<Warning>> take_whole_dtensors(
    Value& root,
    const WalkBounds& bounds) {
  DTensorTaker taker(*bounds.budget);
  LOCKSTEP_TRY(taker.run(root));
  ShardWalk walk(bounds);
  LOCKSTEP_TRY(walk.walk(root));
  std::vector<Warning> warnings = std::move(walk.warnings);
  if (taker.shards > warnings.size()) {
    warnings.push_back(
        {.name = "W_SHARD",
         .text = format(
             "{} parts of one rank, too",
             counted(
                 taker.shards - warnings.size(),
                 "more DTensor holds",
                 "more DTensors hold"))});
  }
  if (taker.whole() != 0) {
    warnings.push_back(
        {.name = "W_DTENSOR",
         .text = format(
             "{} read as plain tensors, for the file holds all of each: their "
             "meshes and placements are left out",
             counted(taker.whole(), "DTensor is", "DTensors are"))});
  }
  return warnings;
}

} // namespace lockstep::ckpt
