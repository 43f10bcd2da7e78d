// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/edit.h"
#include "lockstep/ckpt/model.h"
#include "lockstep/ckpt/tools/model/find_model.h"
#include "lockstep/ckpt/walk.h"

namespace lockstep::ckpt {
namespace {

// Entries in which training scripts keep the model's weights, likeliest first.
constexpr std::array<std::string_view, 8> kWeightKeys{
    "state_dict",
    "model_state_dict",
    "model",
    "net",
    "module",
    "weights",
    "model_state",
    "state.model"}; // Composer

// The same of single libraries, and of averages of the weights: only tensors
// tell them from other things of these names.
constexpr std::array<std::string_view, 6> kOtherKeys{
    "params_ema", // BasicSR
    "params",
    "ema",
    "model_ema",
    "state_dict_ema",
    "ema_state_dict"};

// The entry of a dotted name: a key of the top level, or one below it.
const Value* find_entry(const Value& root, std::string_view name) {
  const std::size_t dot = name.find('.');
  const Value* found = root.find(name);
  if (found != nullptr || dot == std::string_view::npos) {
    return found;
  }
  const Value* outer = root.find(name.substr(0, dot));
  return outer == nullptr ? nullptr : outer->find(name.substr(dot + 1));
}

// A dict with tensors at any depth, or a whole model.
bool holds_weights(const Value& value) {
  return module_in(value) != nullptr ||
         (value.as_dict() != nullptr && holds_tensor(value));
}

// A dict with `value` in the place of an entry.
Value with_entry(const Value& root, std::string_view key, const Value& value) {
  Dict copy = *root.as_dict();
  for (auto& [name, old] : copy.items) {
    const std::string* text = name.as_string();
    if (text != nullptr && *text == key) {
      old = value;
    }
  }
  return copy;
}

Error no_weights(std::string message, std::string hint) {
  return {
      .code = ErrorCode::kUnsupported,
      .op = "ckpt.edit",
      .message = std::move(message),
      .hint = std::move(hint),
      .detail = "E_NO_WEIGHTS"};
}

} // namespace

WeightsPlace locate_weights(const Value& root) {
  WeightsPlace place{.value = root};
  for (const std::string_view key : kWeightKeys) {
    const Value* value = find_entry(root, key);
    if (value != nullptr && holds_weights(*value)) {
      return {.key = std::string(key), .value = *value};
    }
    // What holds something else stands back: the configuration of a net.
    if (value != nullptr && value->as_dict() != nullptr && place.key.empty()) {
      place = {.key = std::string(key), .value = *value};
    }
  }
  // Weights themselves, one of which may have such a name.
  if (has_tensor_entry(root)) {
    return {.value = root};
  }
  for (const std::string_view key : kOtherKeys) {
    const Value* value = find_entry(root, key);
    if (value != nullptr && holds_weights(*value)) {
      return {.key = std::string(key), .value = *value, .is_usual = false};
    }
  }
  return place;
}

Result<WeightsPlace> weights_to_edit(const Value& root, std::string_view key) {
  WeightsPlace place = locate_weights(root);
  if (!key.empty()) {
    LOCKSTEP_TRY(check_unambiguous(root, key));
    const Value* value = find_entry(root, key);
    if (value == nullptr) {
      return Error{
          .code = ErrorCode::kNotFound,
          .op = "ckpt.edit",
          .message = format("no key '{}' at the top level", escape(key)),
          .hint = "'lockstep ckpt FILE' lists the keys",
          .detail = "E_NO_KEY"};
    }
    place = {.key = std::string(key), .value = *value};
  }
  if (module_in(place.value) != nullptr) {
    return no_weights(
        place.key.empty()
            ? "the file holds a whole model, not a dictionary of weights"
            : format(
                  "'{}' holds a whole model, not a dictionary of weights",
                  escape(place.key)),
        "'lockstep ckpt extract-model' makes a state_dict of it");
  }
  if (place.value.as_dict() == nullptr) {
    return no_weights(
        format(
            "expected a dictionary of weights, got {}",
            place.value.type_name()),
        script_class(place.value).empty()
            ? "'lockstep ckpt FILE' shows what is in it"
            : "'lockstep ckpt convert IN OUT --to pt' makes one of a "
              "TorchScript program");
  }
  return place;
}

Value with_weights(
    const Value& root,
    const WeightsPlace& place,
    Value weights) {
  if (place.key.empty()) {
    return weights;
  }
  const std::string_view key = place.key;
  const std::size_t dot = key.find('.');
  if (root.find(key) != nullptr || dot == std::string_view::npos) {
    return with_entry(root, key, weights);
  }
  const std::string_view outer = key.substr(0, dot);
  return with_entry(
      root,
      outer,
      with_entry(*root.find(outer), key.substr(dot + 1), weights));
}

} // namespace lockstep::ckpt
