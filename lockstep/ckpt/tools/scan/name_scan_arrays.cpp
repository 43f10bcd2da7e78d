// SPDX-License-Identifier: BSD-3-Clause
//
// What the scan keeps of joblib's arrays, whose elements stand in the pickle.
// Whatever Python may know better than the scan makes an array unknown.
#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "lockstep/ckpt/core/read_error.h"
#include "lockstep/ckpt/tools/scan/name_scan.h"

namespace lockstep::ckpt::internal {

using Kind = Sketch::Kind;

// A tuple of numbers, or the state of a type: (version, order, None, names,
// fields, bytes, alignment, flags), and more in version 4.
Sketch NameScan::shape(std::span<const Sketch> parts) {
  constexpr std::size_t kStateParts = 8;
  constexpr std::uint32_t kOldestVersion = 3;
  if (parts.empty()) {
    return {.kind = Kind::kShape, .index = 0};
  }
  if (parts.size() >= kStateParts && parts[0].kind == Kind::kNumber &&
      parts[0].index >= kOldestVersion && parts[1].kind == Kind::kText &&
      parts[2].kind == Kind::kNone && parts[7].kind == Kind::kNumber) {
    WrappedTypeState state{
        .flags = parts[7].index,
        .has_fields =
            parts[3].kind != Kind::kNone || parts[4].kind != Kind::kNone};
    if (parts[5].kind == Kind::kNumber) {
      state.item_bytes = parts[5].index;
    }
    return Sketch::of_row(Kind::kTypeState, type_states_, state);
  }
  std::uint64_t count = 1;
  for (const Sketch& part : parts) {
    if (part.kind != Kind::kNumber ||
        __builtin_mul_overflow(count, part.index, &count)) {
      return {.kind = Kind::kNoText};
    }
  }
  return Sketch::of_row(Kind::kShape, counts_, count);
}

Sketch NameScan::instance_of(const Sketch& type) {
  const bool is_name = type.kind == Kind::kName;
  if (is_name ? !is_array_wrapper(text_of(type)) : !result_.has_changed_names) {
    return {};
  }
  if (is_name && wrapper_.empty()) {
    wrapper_ = text_of(type);
  }
  has_two_wrappers_ =
      has_two_wrappers_ || (is_name && wrapper_ != text_of(type));
  is_built_.push_back(false);
  return {
      .kind = Kind::kWrapper,
      .index = static_cast<std::uint32_t>(is_built_.size() - 1)};
}

Sketch NameScan::new_dict(std::span<const Sketch> items) {
  is_reused_.push_back(false);
  Sketch dict{
      .kind = Kind::kDict,
      .index = static_cast<std::uint32_t>(is_reused_.size() - 1)};
  for (std::size_t i = 0; i + 1 < items.size(); i += 2) {
    set_item(dict, items[i], items[i + 1]);
  }
  return dict;
}

void NameScan::set_item(Sketch& dict, const Sketch& key, const Sketch& value) {
  const bool may_be_state =
      dict.kind == Kind::kDict || dict.kind == Kind::kState;
  if (may_be_state &&
      !(key.kind == Kind::kText && set_part(dict, key, value))) {
    dict = {.kind = Kind::kNoText};
  }
}

// False for what does not belong to the state, or is not known: a key may also
// hide a method of the wrapper.
bool NameScan::set_part(Sketch& dict, const Sketch& key, const Sketch& value) {
  constexpr std::array<std::string_view, 3> kOthers{
      "subclass",
      "order",
      "allow_mmap"};
  const std::string_view word = text_of(key);
  const bool is_shape = word == "shape" && value.kind == Kind::kShape;
  const bool is_type = word == "dtype" && value.kind == Kind::kType;
  const bool is_aligned =
      word == "numpy_array_alignment_bytes" && value.kind == Kind::kNumber;
  if (!is_shape && !is_type && !is_aligned &&
      std::ranges::find(kOthers, word) == kOthers.end()) {
    return false;
  }
  if (dict.kind == Kind::kDict) {
    dict =
        Sketch::of_row(Kind::kState, states_, ArrayState{.dict = dict.index});
  }
  ArrayState& state = states_[dict.index];
  if (is_shape) {
    state.count = counts_[value.index];
  } else if (is_type) {
    state.type = value.index;
  } else if (is_aligned) {
    state.is_aligned = true;
  }
  return true;
}

Status NameScan::build(Sketch& target, const Sketch& state) {
  if (target.kind == Kind::kType) {
    std::optional<WrappedType>& type = types_[target.index];
    type = type && state.kind == Kind::kTypeState
               ? built_type(*type, type_states_[state.index])
               : std::nullopt;
    return {};
  }
  const bool is_wrapper = target.kind == Kind::kWrapper;
  const bool may_be_wrapper = result_.has_changed_names && names_wrapper_;
  if (decoder_ == nullptr || (!is_wrapper && !may_be_wrapper)) {
    return {};
  }
  const WrappedArray array = array_of(target, state);
  begins_with_objects_ =
      has_arrays_ ? begins_with_objects_ : array.type && array.type->is_object;
  has_arrays_ = true;
  if (is_wrapper) {
    is_built_[target.index] = true;
  }
  target = {.kind = Kind::kNoText}; // the array is in its place
  return skip_array(array);
}

WrappedArray NameScan::array_of(const Sketch& wrapper, const Sketch& state)
    const {
  if (result_.has_changed_names || has_two_wrappers_ ||
      is_built_[wrapper.index] || state.kind != Kind::kState) {
    return {};
  }
  const ArrayState& known = states_[state.index];
  // The copy of joblib in scikit-learn was older than alignment.
  const bool is_foreign = known.is_aligned && wrapper_.starts_with("sklearn.");
  return is_reused_[known.dict] || is_foreign
             ? WrappedArray{}
             : WrappedArray{
                   .count = known.count,
                   .type = known.type ? types_[*known.type] : std::nullopt,
                   .is_aligned = known.is_aligned};
}

// joblib reads the elements of an array as soon as its wrapper is complete,
// behind the frame.
Status NameScan::skip_array(const WrappedArray& array) {
  const bool is_known = array.count && !decoder_->is_in_frame();
  touches_end_ = touches_end_ || decoder_->position() == bytes_.size();
  if (is_known && array.type && array.type->is_object) {
    return scan_objects();
  }
  const auto bytes =
      is_known ? wrapped_bytes(array, bytes_.subspan(decoder_->position()))
               : std::nullopt;
  if (!bytes) {
    return corrupt_file(
        "E_PICKLE",
        "the elements of an array follow; nothing tells how many");
  }
  return decoder_->skip(*bytes);
}

// An array of objects is a pickle of its own, which joblib gives to pickle.
Status NameScan::scan_objects() {
  PickleScanOptions inner = options_;
  inner.has_joblib_arrays = false;
  inner.collect_texts = false;
  const std::uint64_t at = decoder_->position();
  const PickleScan scan = scan_pickle(bytes_.subspan(at), inner);
  for (const PickleName& found : scan.names) {
    note(found.name, at + found.offset, found.is_nested);
    names_wrapper_ = names_wrapper_ || is_array_wrapper(found.name);
  }
  result_.nested += scan.nested;
  result_.has_changed_names =
      result_.has_changed_names || scan.has_changed_names;
  touches_end_ = touches_end_ || scan.is_cut;
  if (scan.broken) {
    Error error = *scan.broken;
    error.offset = at + error.offset.value_or(0);
    return error;
  }
  return decoder_->skip(scan.consumed);
}

} // namespace lockstep::ckpt::internal
