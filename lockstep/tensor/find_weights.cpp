// SPDX-License-Identifier: BSD-3-Clause
//
// Where things are in what a file holds.
#include <algorithm>
#include <array>
#include <string_view>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/ckpt/edit.h"
#include "lockstep/ckpt/model.h"
#include "lockstep/ckpt/print.h"
#include "lockstep/tensor/checkpoint.h"

namespace lockstep {
namespace {

std::vector<std::string> string_keys(const ckpt::Value& value) {
  std::vector<std::string> keys;
  if (const ckpt::Dict* dict = value.as_dict()) {
    for (const auto& [key, entry] : dict->items) {
      if (const std::string* name = key.as_string()) {
        keys.push_back(*name);
      }
    }
  }
  return keys;
}

// What the file has instead of what was asked for.
std::string contents(const ckpt::Value& value) {
  return value.as_dict() == nullptr
             ? format("it holds a {}, no dict", value.type_name())
             : ckpt::internal::some_keys(value.keys());
}

// True for a dict of which `share` or more are tensors.
bool is_state_dict(const ckpt::Value& value, double share) {
  const ckpt::Dict* dict = value.as_dict();
  if (dict == nullptr) {
    return false;
  }
  if (dict->items.empty()) {
    return dict->kind == ckpt::Dict::Kind::kOrderedDict;
  }
  const auto tensors =
      std::ranges::count_if(dict->items, [](const ckpt::Item& item) {
        return item.second.as_tensor() != nullptr ||
               !ckpt::describe_shard(item.second).empty();
      });
  return tensors > 0 && static_cast<double>(tensors) >=
                            share * static_cast<double>(dict->items.size());
}

// Of what was found under no usual key.
constexpr double kHalf = 0.5;

bool has_weights(const ckpt::Value& value, double share) {
  return ckpt::module_in(value) != nullptr || is_state_dict(value, share);
}

FoundWeights found_in(ckpt::ExtractedModel model, std::string key) {
  FoundWeights found{
      .weights = std::move(model.state_dict),
      .key = std::move(key),
      .is_uncalled = model.facts.is_uncalled};
  if (!model.unread.empty()) {
    const ckpt::UnreadModule& first = model.unread.front();
    found.note = format(
        "the weights of {} cannot be read: only the code of '{}' could make "
        "'{}'",
        counted(model.unread.size(), "module"),
        escape(first.class_name),
        escape(first.name));
  }
  return found;
}

FoundWeights found_at(ckpt::Value value, std::string key) {
  if (ckpt::module_in(value) == nullptr) {
    return {.weights = std::move(value), .key = std::move(key)};
  }
  auto model = ckpt::extract_model(value, {.unwrap = true}).value();
  return found_in(std::move(model), std::move(key));
}

// What optimizers keep of parameters, and gradients: by the parameters' names,
// it looks like weights.
bool is_of_training(std::string_view key) {
  constexpr std::array<std::string_view, 15> kNames{
      "optim",
      "exp_inf",
      "momentum_buffer",
      "momentum_buffers",
      "square_avg",
      "grad_avg",
      "acc_delta",
      "sum",
      "ax",
      "prev",
      "step",
      "step_size",
      "grad",
      "grads",
      "gradients"};
  return key.find("exp_avg") != std::string_view::npos ||
         key.starts_with("optim_") ||
         key.find("optimizer") != std::string_view::npos ||
         std::ranges::find(kNames, key) != kNames.end();
}

// The entries of the top level that are weights themselves.
std::vector<std::string> entries_with_weights(const ckpt::Value& root) {
  std::vector<std::string> keys;
  for (const std::string& key : string_keys(root)) {
    if (!is_of_training(key) && has_weights(*root.find(key), kHalf)) {
      keys.push_back(key);
    }
  }
  return keys;
}

} // namespace

FoundWeights find_state_dict(const ckpt::Value& root) {
  const ckpt::WeightsPlace place = ckpt::locate_weights(root);
  const double share = place.key.empty() ? kHalf : 0;
  if (place.is_usual && has_weights(place.value, share)) {
    return found_at(place.value, place.key);
  }
  const std::vector<std::string> keys = entries_with_weights(root);
  const auto named = [](FoundWeights found) {
    found.note = format(
        "the weights are those of '{}', the only ones in the file{}{}",
        escape(found.key),
        found.note.empty() ? "" : "; ",
        found.note);
    return found;
  };
  if (keys.size() == 1) {
    return named(found_at(*root.find(keys.front()), keys.front()));
  }
  if (keys.empty() && is_state_dict(root, 0)) {
    return {.weights = root};
  }
  if (keys.empty()) {
    if (auto model = ckpt::extract_model(root, {.unwrap = true})) {
      std::string key = model->key;
      return named(found_in(*std::move(model), std::move(key)));
    }
  }
  raise(
      {.code = ErrorCode::kNotFound,
       .op = "tensor.load",
       .message =
           keys.empty()
               ? "no weights found: expected a dict of tensors or a model, or "
                 "one under 'state_dict' or 'model'; " +
                     contents(root)
               : format(
                     "several entries hold weights: '{}'",
                     escape(join(keys, "', '"), 400)),
       .hint =
           keys.empty()
               ? std::string()
               : format(".key = \"{}\" takes these", escape(keys.front()))});
}

} // namespace lockstep
