// SPDX-License-Identifier: BSD-3-Clause
#include <array>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/edit.h"
#include "lockstep/ckpt/model.h"

namespace lockstep::ckpt {
namespace {

// Keys under which training scripts keep the model's weights, likeliest first.
constexpr std::array<std::string_view, 7> kWeightKeys{
    "state_dict",
    "model_state_dict",
    "model",
    "net",
    "module",
    "weights",
    "model_state"};

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
  for (const std::string_view key : kWeightKeys) {
    const Value* value = root.find(key);
    if (value != nullptr &&
        (value->as_dict() != nullptr || module_in(*value) != nullptr)) {
      return {.key = std::string(key), .value = *value};
    }
  }
  return {.value = root};
}

Result<WeightsPlace> weights_to_edit(const Value& root, std::string_view key) {
  WeightsPlace place = locate_weights(root);
  if (!key.empty()) {
    const Value* value = root.find(key);
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
        "the file holds a whole model, not a dictionary of weights",
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
  Dict copy = *root.as_dict();
  for (auto& [key, value] : copy.items) {
    const std::string* text = key.as_string();
    if (text != nullptr && *text == place.key) {
      value = weights;
    }
  }
  return copy;
}

} // namespace lockstep::ckpt
