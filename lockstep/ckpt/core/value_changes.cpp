// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/core/value_changes.h"

#include <algorithm>
#include <array>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/walk.h"

namespace lockstep::ckpt {
namespace {

struct ChangeRow {
  ChangeKind kind = ChangeKind::kKey;
  std::string_view one = {};
  std::string_view many = {};
};

constexpr std::array kChangeRows{
    ChangeRow{
        ChangeKind::kTensorAttributes,
        "tensor loses its attributes",
        "tensors lose their attributes"},
    ChangeRow{
        ChangeKind::kTensorClass,
        "tensor loses its class",
        "tensors lose their classes"},
    ChangeRow{
        ChangeKind::kTuple,
        "tuple becomes a list",
        "tuples become lists"},
    ChangeRow{
        ChangeKind::kKey,
        "key that is not text becomes text",
        "keys that are not text become text"},
    ChangeRow{
        ChangeKind::kEmpty,
        "empty dict, list or tuple is left out",
        "empty dicts, lists or tuples are left out"},
    ChangeRow{
        ChangeKind::kEmptyInPython,
        "empty dict is not there for PyTorch's reader",
        "empty dicts are not there for PyTorch's reader"},
    ChangeRow{
        ChangeKind::kText,
        "value that is no tensor becomes text",
        "values that are no tensors become text"},
};

class FlatChanges final : public ValueWalk {
 public:
  FlatChanges() : ValueWalk(kWriteBounds) {}

  Result<std::vector<ValueChange>> run(const Value& root) {
    LOCKSTEP_TRY(walk(root));
    return changes_.take();
  }

 private:
  Status visit(const Value& value) override {
    if (const Tensor* tensor = value.as_tensor()) {
      changes_.add_tensor(*tensor, [this] { return name(); });
    } else if (!value.is_container() && !name().empty()) {
      changes_.add(ChangeKind::kText, [this] { return name(); });
    }
    const bool is_empty =
        (value.as_dict() != nullptr || value.elements() != nullptr) &&
        child_count(value) == 0;
    if (is_empty && !name().empty()) {
      changes_.add(ChangeKind::kEmpty, [this] { return name(); });
    }
    // Below the outer dict, keys are parts of names.
    const Dict* dict = value.as_dict();
    if (dict != nullptr && name().empty()) {
      for (const auto& [key, entry] : dict->items) {
        if (key.as_string() == nullptr) {
          changes_.add(ChangeKind::kKey, [&key] { return key_text(key); });
        }
      }
    }
    return enter(value);
  }

  ValueChanges changes_;
};

} // namespace

std::string to_text(const ValueChange& change) {
  const auto* row =
      std::ranges::find(kChangeRows, change.kind, &ChangeRow::kind);
  return format(
      "{}{}{}",
      counted(change.count, row->one, row->many),
      change.first.empty() ? "" : format(": '{}'", escape(change.first)),
      change.count == 1 ? "" : format(" and {} more", change.count - 1));
}

void ValueChanges::add(ChangeKind kind, const Name& name) {
  const auto known = std::ranges::find(changes_, kind, &ValueChange::kind);
  if (known == changes_.end()) {
    changes_.push_back({.kind = kind, .count = 1, .first = name()});
  } else {
    ++known->count;
  }
}

void ValueChanges::add_tensor(const Tensor& tensor, const Name& name) {
  if (tensor.attributes != nullptr && child_count(*tensor.attributes) != 0) {
    add(ChangeKind::kTensorAttributes, name);
  }
  if (!tensor.class_name.empty()) {
    add(ChangeKind::kTensorClass, name);
  }
}

Result<std::vector<ValueChange>> flat_changes(const Value& root) {
  return FlatChanges().run(root);
}

} // namespace lockstep::ckpt
