// SPDX-License-Identifier: BSD-3-Clause
#include <array>
#include <set>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/edit.h"
#include "lockstep/ckpt/model.h"
#include "lockstep/ckpt/walk.h"

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

// Below dicts, lists and tuples; what is reached twice is looked at once.
class LostMetadata {
 public:
  explicit LostMetadata(const FormatWriter& writer) : writer_(writer) {}

  std::vector<std::string> run(const Value& root) {
    look(root, "");
    return std::move(places_);
  }

 private:
  void look(const Value& value, const std::string& path) {
    const Dict* dict = value.as_dict();
    const std::vector<Value>* elements = value.elements();
    if ((dict == nullptr && elements == nullptr) ||
        !seen_.insert(value.address()).second) {
      return;
    }
    for (std::size_t i = 0; elements != nullptr && i < elements->size(); ++i) {
      look((*elements)[i], path + std::to_string(i) + ".");
    }
    if (dict == nullptr) {
      return;
    }
    const Dict* metadata = state_metadata(*dict);
    if (metadata != nullptr && !writer_.keeps_metadata(*metadata)) {
      places_.push_back(path + std::string(kStateMetadata));
    }
    for (const auto& [key, child] : dict->items) {
      if (child.is_container()) {
        look(child, path + key_text(key) + ".");
      }
    }
  }

  const FormatWriter& writer_;
  std::set<const void*> seen_;
  std::vector<std::string> places_;
};

} // namespace

std::vector<std::string> lost_metadata(
    const Value& root,
    const FormatWriter& writer) {
  return writer.keeps_metadata == nullptr ? std::vector<std::string>()
                                          : LostMetadata(writer).run(root);
}

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
        "--key names the entry that holds the weights");
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
