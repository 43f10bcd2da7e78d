// SPDX-License-Identifier: BSD-3-Clause
//
// What the scan keeps of joblib's arrays, whose elements stand in the pickle.
#include <optional>
#include <utility>

#include "lockstep/ckpt/core/read_error.h"
#include "lockstep/ckpt/tools/scan/name_scan.h"

namespace lockstep::ckpt::internal {

using Kind = Sketch::Kind;

Sketch NameScan::shape(std::span<const Sketch> parts) {
  if (parts.empty()) {
    return {.kind = Kind::kShape, .index = 0};
  }
  std::uint64_t count = 1;
  for (const Sketch& part : parts) {
    if (part.kind != Kind::kNumber ||
        __builtin_mul_overflow(count, part.index, &count)) {
      return {};
    }
  }
  return Sketch::of_row(Kind::kShape, counts_, count);
}

void NameScan::set_item(
    Sketch& target,
    const Sketch& key,
    const Sketch& value) {
  if (key.kind != Kind::kText) {
    return;
  }
  const std::string_view word = text_of(key);
  const bool is_shape = word == "shape" && value.kind == Kind::kShape;
  const bool is_type = word == "dtype" && value.kind == Kind::kType;
  const bool is_aligned =
      word == "numpy_array_alignment_bytes" && value.kind == Kind::kNumber;
  if (!is_shape && !is_type && !is_aligned) {
    return;
  }
  if (target.kind != Kind::kState) {
    target = Sketch::of_row(Kind::kState, arrays_, WrappedArray{});
  }
  WrappedArray& array = arrays_[target.index];
  if (is_shape) {
    array.count = counts_[value.index];
  } else if (is_type) {
    array.type = types_[value.index];
  } else {
    array.is_aligned = true;
  }
}

// joblib reads the elements of an array as soon as its wrapper is complete.
Status NameScan::skip_array(const Sketch& target, const Sketch& state) {
  if (target.kind != Kind::kWrapper || decoder_ == nullptr) {
    return {};
  }
  has_arrays_ = true;
  const WrappedArray array =
      state.kind == Kind::kState ? arrays_[state.index] : WrappedArray{};
  const auto bytes = wrapped_bytes(array, bytes_.subspan(decoder_->position()));
  if (!bytes && array.type &&
      (array.type->is_object || array.type->is_structure)) {
    return scan_objects();
  }
  if (!bytes) {
    return corrupt_file(
        "E_PICKLE",
        "the elements of an array follow; nothing tells how many");
  }
  return decoder_->skip(*bytes);
}

// An array of objects is a pickle of its own.
Status NameScan::scan_objects() {
  if (options_.nesting == 0) {
    return read_error(
        ErrorCode::kUnsafe,
        "E_LIMIT",
        "arrays of objects are nested too deeply");
  }
  PickleScanOptions inner = options_;
  --inner.nesting;
  inner.collect_texts = false;
  const std::uint64_t at = decoder_->position();
  const PickleScan scan = scan_pickle(bytes_.subspan(at), inner);
  for (const PickleName& found : scan.names) {
    note(found.name, at + found.offset, found.is_nested);
  }
  result_.nested += scan.nested;
  if (scan.broken) {
    Error error = *scan.broken;
    error.offset = at + error.offset.value_or(0);
    return error;
  }
  return decoder_->skip(scan.consumed);
}

} // namespace lockstep::ckpt::internal
