// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/pickle/old_variables.h"

#include <algorithm>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lockstep/ckpt/pickle/rebuild_tensor.h"
#include "lockstep/ckpt/walk.h"

namespace lockstep::ckpt {
namespace {

constexpr std::string_view kParameter = "torch.nn.parameter.Parameter";
constexpr std::string_view kVariable = "torch.autograd.variable.Variable";

bool is_old_class(std::string_view name) {
  return name == kParameter || name == kVariable;
}

const std::vector<Value>* tuple_of(const std::shared_ptr<Value>& value) {
  const Tuple* tuple = value == nullptr ? nullptr : value->as_tuple();
  return tuple == nullptr ? nullptr : &tuple->items;
}

// Made without arguments, with (data, grad, hooks, requires_grad, volatile) as
// state; or of (data,), with the last three as state, in another order.
std::shared_ptr<Tensor> variable_tensor(const Object& object) {
  constexpr std::size_t kWholeState = 5;
  const bool is_parameter = object.global == kParameter;
  const auto* args = tuple_of(object.args);
  if (!is_old_class(object.global) || args == nullptr) {
    return nullptr;
  }
  const auto* state = tuple_of(object.state);
  const bool is_whole = state != nullptr && state->size() == kWholeState;
  const Value* data = is_whole        ? state->data()
                      : args->empty() ? nullptr
                                      : args->data();
  const Tensor* tensor = data == nullptr ? nullptr : data->as_tensor();
  if (tensor == nullptr) {
    return nullptr;
  }
  auto modern = std::make_shared<Tensor>(*tensor);
  modern->is_parameter = is_parameter;
  modern->requires_grad = is_parameter;
  const std::size_t flag = is_whole ? 3 : 0;
  if (state != nullptr && state->size() > flag) {
    const bool* requires_grad = (*state)[flag].as_bool();
    modern->requires_grad =
        requires_grad == nullptr ? is_parameter : *requires_grad;
  }
  constexpr std::size_t kHooksAt = 2; // in both orders
  const bool are_kept = state == nullptr || state->size() <= kHooksAt ||
                        keep_hooks(*modern, (*state)[kHooksAt]);
  return are_kept ? modern : nullptr;
}

class Modernizer {
 public:
  void run(Value& root) {
    replace(root);
    NodeWalk().run(root, [this](Value& node) {
      for (std::size_t i = 0; i < child_count(node); ++i) {
        replace(child_at(node, i));
      }
      return true;
    });
  }

 private:
  void replace(Value& value) {
    const Object* object = value.as_object();
    if (object == nullptr) {
      return;
    }
    if (const auto known = made_.find(object); known != made_.end()) {
      value = known->second.tensor;
    } else if (auto tensor = variable_tensor(*object)) {
      // The old node stays alive, so that its address is not used again.
      made_.emplace(object, Made{.old = value, .tensor = tensor});
      value = std::move(tensor);
    }
  }

  struct Made {
    Value old = {};
    std::shared_ptr<Tensor> tensor = {};
  };
  std::unordered_map<const Object*, Made> made_;
};

} // namespace

void modernize_variables(Value& root, std::span<const GlobalUse> globals) {
  if (std::ranges::any_of(globals, is_old_class, &GlobalUse::name)) {
    Modernizer().run(root);
  }
}

} // namespace lockstep::ckpt
