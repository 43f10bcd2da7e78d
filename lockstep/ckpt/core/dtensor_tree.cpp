// SPDX-License-Identifier: BSD-3-Clause
//
// DTensors in a tree.
#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/dtensor.h"
#include "lockstep/ckpt/core/tensor_layout.h"
#include "lockstep/ckpt/walk.h"

namespace lockstep::ckpt {
namespace {

constexpr std::size_t kMaxNamedShards = 20;

// Names of those that are kept.
class ShardWalk final : public ValueWalk {
 public:
  std::vector<Warning> warnings;

 private:
  Status visit(const Value& value) override {
    const auto layout = layout_tensor(value);
    if (!layout) {
      return value.as_tensor() != nullptr ? Status() : enter(value);
    }
    if (layout->layout == kDTensorLayout && layout->part("local") != nullptr &&
        warnings.size() < kMaxNamedShards) {
      warnings.push_back(
          {.name = "W_SHARD",
           .text = format(
               "'{}' is {}: this file holds the part of one rank",
               escape(name()),
               describe(*layout))});
    }
    return {};
  }
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
  void run(Value& root) {
    take(root);
    NodeWalk().run(root, [this](Value& node) {
      for (std::size_t i = 0; i < child_count(node); ++i) {
        take(child_at(node, i));
      }
      return true;
    });
  }

  [[nodiscard]] std::size_t whole() const {
    return made_.size();
  }
  std::size_t shards = 0;

 private:
  void take(Value& value) {
    const Object* object = value.as_object();
    if (object == nullptr) {
      return;
    }
    if (const auto known = made_.find(object); known != made_.end()) {
      value = known->second.tensor;
      return;
    }
    const bool is_parameter = is_plain_parameter(*object);
    const Value& inner =
        is_parameter ? object->args->as_tuple()->items[0] : value;
    const Object* call = inner.as_object();
    if (call == nullptr || call->global != names::kRebuildFromType ||
        call->args == nullptr || call->args->as_tuple() == nullptr) {
      return;
    }
    const auto tensor = read_dtensor(call->args->as_tuple()->items);
    if (!tensor || !tensor->is_whole || tensor->has_attributes) {
      const bool is_shard = tensor && !tensor->is_whole;
      shards += is_shard && seen_.insert(call).second ? 1 : 0;
      return;
    }
    auto plain = std::make_shared<Tensor>(*tensor->local->as_tensor());
    plain->is_parameter = is_parameter || tensor->is_parameter;
    plain->requires_grad = is_parameter
                               ? *object->args->as_tuple()->items[1].as_bool()
                               : tensor->requires_grad;
    // The old node stays alive, so that its address is not used again.
    made_.emplace(object, Made{.old = value, .tensor = plain});
    value = std::move(plain);
  }

  struct Made {
    Value old = {};
    std::shared_ptr<Tensor> tensor = {};
  };
  std::unordered_map<const Object*, Made> made_;
  std::unordered_set<const Object*> seen_;
};

} // namespace

std::vector<Warning> take_whole_dtensors(Value& root) {
  DTensorTaker taker;
  taker.run(root);
  ShardWalk walk;
  [[maybe_unused]] const Status status = walk.walk(root);
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
