// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/formats/safetensors/safetensors_plan.h"

#include <unordered_set>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/quantizer.h"
#include "lockstep/ckpt/core/save_error.h"
#include "lockstep/ckpt/formats/safetensors/safetensors.h"
#include "lockstep/ckpt/formats/safetensors/state_metadata.h"
#include "lockstep/ckpt/print.h"
#include "lockstep/ckpt/tensor.h"
#include "lockstep/ckpt/walk.h"

namespace lockstep::ckpt::internal {
namespace {

Error bad_name(const std::string& name) {
  return save_error(
      ErrorCode::kInvalidArgument,
      "E_NAME",
      format("'{}' cannot be a name in a safetensors file", escape(name)));
}

std::string metadata_text(const Value& value) {
  const std::string* text = value.as_string();
  return text != nullptr ? *text : to_text(value, {.max_text = ~0ULL});
}

// Entries of `__metadata__`; of two with one name the first stays.
class MetadataPlan {
 public:
  Status add(std::string name, std::string text) {
    if (!is_utf8(name) || !is_utf8(text)) {
      return bad_name(name);
    }
    if (names_.insert(name).second) {
      entries_.emplace_back(std::move(name), std::move(text));
    }
    return {};
  }

  // What a safetensors file had before.
  Status add_attributes(const Dict& root) {
    for (const auto& [key, value] : root.attributes) {
      const Dict* dict = value.as_dict();
      if (dict == nullptr || key_text(key) != kSafetensorsMetadata) {
        continue;
      }
      for (const auto& [name, text] : dict->items) {
        LOCKSTEP_TRY(add(key_text(name), metadata_text(text)));
      }
    }
    return {};
  }

  Status add_scalar(FlatScalar& scalar) {
    if (scalar.name == kVersionsText) { // would come back as `_metadata`
      return bad_name(scalar.name);
    }
    return add(std::move(scalar.name), metadata_text(scalar.value));
  }

  // The package's readers ask for a format.
  SafetensorsMetadata take() {
    if (!names_.contains("format")) {
      entries_.insert(entries_.begin(), {"format", "pt"});
    }
    return std::move(entries_);
  }

 private:
  SafetensorsMetadata entries_;
  std::unordered_set<std::string> names_;
};

Result<PlannedTensor> plan_tensor(FlatTensor& flat) {
  const Tensor& tensor = *flat.tensor;
  const SafetensorsDType* type = find_safetensors_dtype(tensor.dtype);
  const bool is_packed = type != nullptr && type->bits < 8;
  if (type == nullptr || (is_packed && tensor.sizes.empty())) {
    Error error = save_error(
        ErrorCode::kUnsupported,
        "E_DTYPE",
        format(
            "'{}' is {}, which safetensors cannot hold",
            escape(flat.name),
            describe(tensor)));
    if (is_quantized(tensor.dtype)) {
      error.hint = kQuantizedHint;
    }
    return error;
  }
  if (!is_utf8(flat.name) || flat.name == kSafetensorsMetadata) {
    return bad_name(flat.name);
  }
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
        "safetensors has no views; SaveOptions::clone_views writes each "
        "tensor"));
  }
  MetadataPlan metadata;
  LOCKSTEP_ASSIGN(Versions versions, plan_versions(flat.metadata));
  if (versions.text) {
    LOCKSTEP_TRY(
        metadata.add(std::string(kVersionsText), *std::move(versions.text)));
  }
  if (const Dict* dict = root.as_dict()) {
    LOCKSTEP_TRY(metadata.add_attributes(*dict));
  }
  for (FlatScalar& scalar : flat.scalars) {
    LOCKSTEP_TRY(metadata.add_scalar(scalar));
  }
  SafetensorsPlan plan{.metadata = metadata.take()};
  plan.tensors.reserve(flat.tensors.size());
  for (FlatTensor& tensor : flat.tensors) {
    LOCKSTEP_ASSIGN(PlannedTensor planned, plan_tensor(tensor));
    plan.tensors.push_back(std::move(planned));
  }
  return plan;
}

} // namespace lockstep::ckpt::internal
