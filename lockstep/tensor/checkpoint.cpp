// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/tensor/checkpoint.h"

#include <algorithm>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/ckpt/edit.h"
#include "lockstep/ckpt/load.h"
#include "lockstep/ckpt/model.h"
#include "lockstep/tensor/bridge.h"
#include "lockstep/tensor/compat.h"

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
  constexpr std::size_t kShown = 8;
  if (value.as_dict() == nullptr) {
    return format("it holds a {}, no dict", value.type_name());
  }
  std::vector<std::string> keys = string_keys(value);
  const bool is_long = keys.size() > kShown;
  keys.resize(std::min(keys.size(), kShown));
  return "its keys are " + escape(join(keys, ", "), 400) +
         (is_long ? ", ..." : "");
}

bool is_state_dict(const ckpt::Value& value) {
  const ckpt::Dict* dict = value.as_dict();
  if (dict == nullptr) {
    return false;
  }
  if (dict->items.empty()) {
    return dict->kind == ckpt::Dict::Kind::kOrderedDict;
  }
  return std::ranges::any_of(dict->items, [](const ckpt::Item& item) {
    return item.second.as_tensor() != nullptr;
  });
}

struct Convert {
  ValueBuilder& builder;

  ckpt::Value operator()(const ckpt::Value& value) const {
    return value;
  }
  ckpt::Value operator()(const StateDict& weights) const {
    return builder.state_dict(weights);
  }
  ckpt::Value operator()(const at::Tensor& tensor) const {
    return builder.tensor(tensor);
  }
};

} // namespace

ckpt::Value Checkpoint::operator[](std::string_view key) && {
  const Checkpoint& self = *this;
  return self[key];
}

const ckpt::Value& Checkpoint::operator[](std::string_view key) const& {
  if (const ckpt::Value* value = root_.find(key)) {
    return *value;
  }
  const std::string near = nearest(key, string_keys(root_));
  raise(
      {.code = ErrorCode::kNotFound,
       .op = "tensor.load",
       .message = format("the file has no key '{}'", escape(key)),
       .hint = near.empty() ? contents(root_)
                            : "did you mean '" + escape(near) + "'?",
       .path = path_});
}

Checkpoint
load(const std::string& path, const LoadOptions& options, FileSystem& fs) {
  check_torch_version();
  ckpt::Checkpoint file = ckpt::load(
                              path,
                              {.use_mmap = options.use_mmap,
                               .check_crc = options.check_crc,
                               .byteorder = options.byteorder},
                              fs)
                              .value();
  map_locations(file.root, options.map_location);
  return {std::move(file.root), path};
}

ckpt::Value checkpoint(
    std::initializer_list<std::pair<std::string, CheckpointEntry>> entries) {
  ValueBuilder builder;
  ckpt::Dict dict;
  for (const auto& [key, entry] : entries) {
    dict.items.emplace_back(key, std::visit(Convert{builder}, entry.data()));
  }
  return dict;
}

void save(
    const CheckpointEntry& content,
    const std::string& path,
    FileSystem& fs) {
  check_torch_version();
  ValueBuilder builder;
  ckpt::save(path, std::visit(Convert{builder}, content.data()), {}, fs)
      .value();
}

FoundWeights find_state_dict(const ckpt::Value& root) {
  ckpt::WeightsPlace place = ckpt::locate_weights(root);
  if (ckpt::module_in(place.value) != nullptr) {
    auto model = ckpt::extract_model(place.value, {.unwrap = true}).value();
    return {
        .weights = std::move(model.state_dict),
        .key = place.key,
        .is_uncalled = model.facts.is_uncalled};
  }
  if (!is_state_dict(place.value)) {
    raise(
        {.code = ErrorCode::kNotFound,
         .op = "tensor.load",
         .message = "no weights found: expected a dict of tensors or a model, "
                    "or one under 'state_dict' or 'model'; " +
                    contents(root)});
  }
  return {.weights = std::move(place.value), .key = std::move(place.key)};
}

} // namespace lockstep
