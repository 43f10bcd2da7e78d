// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/formats/safetensors/safetensors_plan.h"

#include <algorithm>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/flatten.h"
#include "lockstep/ckpt/core/save_error.h"
#include "lockstep/ckpt/core/tensor_bytes.h"
#include "lockstep/ckpt/core/value_walk.h"
#include "lockstep/ckpt/formats/safetensors/safetensors_reader.h"
#include "lockstep/ckpt/print.h"

namespace lockstep::ckpt::internal {
namespace {

Status check_text(const std::string& name, const std::string& text) {
  if (name != kSafetensorsMetadata && is_utf8(name) && is_utf8(text)) {
    return {};
  }
  return save_error(
      ErrorCode::kInvalidArgument,
      "E_NAME",
      format("'{}' cannot be a name in a safetensors file", escape(name)));
}

std::string metadata_text(const Value& value) {
  const std::string* text = value.as_string();
  return text != nullptr ? *text : to_text(value, {.max_text = ~0ULL});
}

// `__metadata__` of a safetensors file that was read before.
void add_old_metadata(const Value& root, SafetensorsMetadata& metadata) {
  const Dict* dict = root.as_dict();
  if (dict == nullptr) {
    return;
  }
  for (const auto& [key, value] : dict->attributes) {
    const Dict* old = value.as_dict();
    if (key_text(key) != kSafetensorsMetadata || old == nullptr) {
      continue;
    }
    for (const auto& [name, text] : old->items) {
      metadata.emplace_back(key_text(name), metadata_text(text));
    }
  }
}

Result<PlannedTensor> plan_tensor(FlatTensor& flat) {
  const Tensor& tensor = *flat.tensor;
  const SafetensorsDType* type = find_safetensors_dtype(tensor.dtype);
  const bool is_packed = type != nullptr && type->bits < 8;
  if (type == nullptr || (is_packed && tensor.sizes.empty())) {
    return save_error(
        ErrorCode::kUnsupported,
        "E_DTYPE",
        format(
            "'{}' is {}, which safetensors cannot hold",
            escape(flat.name),
            describe(tensor)));
  }
  LOCKSTEP_TRY(check_text(flat.name, ""));
  PlannedTensor planned{
      .name = std::move(flat.name),
      .tensor = flat.tensor,
      .type = type};
  planned.bytes = contiguous_bytes(tensor);
  return planned;
}

} // namespace

Result<SafetensorsPlan> plan_safetensors(
    const Value& root,
    const SaveOptions& options) {
  LOCKSTEP_ASSIGN(FlatState flat, flatten(root));
  if (!options.clone_views) {
    LOCKSTEP_TRY(check_not_shared(
        flat,
        "safetensors has no views; --clone-views (clone_views) writes each "
        "tensor"));
  }
  SafetensorsPlan plan;
  add_old_metadata(root, plan.metadata);
  for (const FlatScalar& scalar : flat.scalars) {
    std::string text = metadata_text(scalar.value);
    LOCKSTEP_TRY(check_text(scalar.name, text));
    const bool is_old = std::ranges::any_of(
        plan.metadata,
        [&scalar](const auto& entry) { return entry.first == scalar.name; });
    if (!is_old) {
      plan.metadata.emplace_back(scalar.name, std::move(text));
    }
  }
  const bool has_format = std::ranges::any_of(
      plan.metadata,
      [](const auto& entry) { return entry.first == "format"; });
  if (!has_format) {
    plan.metadata.insert(plan.metadata.begin(), {"format", "pt"});
  }
  plan.tensors.reserve(flat.tensors.size());
  for (FlatTensor& tensor : flat.tensors) {
    LOCKSTEP_ASSIGN(PlannedTensor planned, plan_tensor(tensor));
    plan.tensors.push_back(std::move(planned));
  }
  return plan;
}

} // namespace lockstep::ckpt::internal
