// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <set>
#include <unordered_map>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/save_error.h"
#include "lockstep/ckpt/core/tensor_layout.h"
#include "lockstep/ckpt/print.h"
#include "lockstep/ckpt/tensor.h"
#include "lockstep/ckpt/walk.h"

namespace lockstep::ckpt {
namespace {

bool is_gone_through(const Value& value) {
  return value.as_dict() != nullptr || value.elements() != nullptr ||
         is_module(value) || script_attributes(value) != nullptr;
}

class AttributeWalk final : public ValueWalk {
 public:
  AttributeWalk() : ValueWalk(kWriteBounds) {}

  Result<std::vector<FlatAttribute>> run(const Value& root) {
    LOCKSTEP_TRY(walk(root));
    return std::move(found_);
  }

 private:
  Status visit(const Value& value) override {
    if (const Dict* dict = value.as_dict()) {
      const std::uint64_t cost = 1 + name().size() / kVisitBytes;
      LOCKSTEP_TRY(count(dict->attributes.size() * cost));
      for (const Item& item : dict->attributes) {
        found_.push_back({.dict = name(), .owner = dict, .item = &item});
      }
    }
    return is_gone_through(value) ? enter(value) : Status();
  }

  std::vector<FlatAttribute> found_;
};

class Flattener final : public ValueWalk {
 public:
  Flattener() : ValueWalk(kWriteBounds) {}

  Result<FlatState> run(const Value& root) {
    LOCKSTEP_TRY(walk(root));
    // The names move, so that each is in memory once.
    for (std::size_t i = 0; i < flat_.tensors.size(); ++i) {
      flat_.tensors[i].name = std::move(names_.extract(tensors_[i]).value());
    }
    for (std::size_t i = 0; i < flat_.scalars.size(); ++i) {
      flat_.scalars[i].name = std::move(names_.extract(scalars_[i]).value());
    }
    flat_.visits = visits();
    return std::move(flat_);
  }

 private:
  using Name = std::set<std::string>::iterator;

  Status visit(const Value& value) override {
    if (value.as_tensor() != nullptr) {
      return tensor(value.shared_tensor());
    }
    if (const Dict* dict = value.as_dict()) {
      if (const Dict* metadata = state_metadata(*dict)) {
        flat_.metadata.push_back({.name = name(), .metadata = metadata});
      }
    }
    if (is_gone_through(value)) {
      return enter(value);
    }
    if (value.is_container()) {
      Error error = refuse(
          ErrorCode::kUnsupported,
          "E_NOT_TENSOR",
          format("is not a tensor but {}", escape(describe(value))));
      const auto layout = layout_tensor(value);
      if (layout && layout->layout.starts_with("sparse_")) {
        error.hint = internal::kSparseHint;
      }
      const std::string_view hint =
          value.as_object() == nullptr
              ? ""
              : internal::class_hint(value.as_object()->global);
      error.hint = hint.empty() ? error.hint : hint;
      return error;
    }
    return scalar(value);
  }

  Status tensor(const std::shared_ptr<Tensor>& tensor) {
    LOCKSTEP_TRY(add_name(tensors_));
    if (tensor->numel() != 0 &&
        (tensor->storage == nullptr || tensor->storage->source == nullptr)) {
      return refuse(
          ErrorCode::kUnsupported,
          "E_NOT_TENSOR",
          "is a tensor without bytes (of the device 'meta')");
    }
    if (tensor->numel() != 0) {
      if (const Status view = check_view(*tensor); !view) {
        return refuse(
            ErrorCode::kInvalidArgument,
            "E_VIEW_BOUNDS",
            "is a tensor that reaches past its storage");
      }
    }
    flat_.tensors.push_back({.tensor = tensor});
    return {};
  }

  Status scalar(const Value& value) {
    LOCKSTEP_TRY(add_name(scalars_));
    flat_.scalars.push_back({.value = value});
    return {};
  }

  Status add_name(std::vector<Name>& names) {
    const auto [entry, is_new] = names_.insert(name());
    if (!is_new) {
      return refuse(
          ErrorCode::kInvalidArgument,
          "E_SAME_NAME",
          "is the name of two values");
    }
    names.push_back(entry);
    return {};
  }

  [[nodiscard]] Error
  refuse(ErrorCode code, const char* detail, const std::string& why) const {
    return internal::save_error(
        code,
        detail,
        format(
            "{} {}",
            name().empty() ? "the root" : "'" + escape(name()) + "'",
            why));
  }

  FlatState flat_; // without names, until the end
  std::set<std::string> names_;
  // Names of the tensors and scalars.
  std::vector<Name> tensors_;
  std::vector<Name> scalars_;
};

// The bytes that a view touches, first to last.
struct Range {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  const FlatTensor* owner = nullptr;
};

Range range_of(const FlatTensor& flat) {
  const Tensor& tensor = *flat.tensor;
  const std::uint64_t element = dtype_info(tensor.dtype).size;
  const std::uint64_t begin =
      static_cast<std::uint64_t>(tensor.offset) * element;
  if (dtype_info(tensor.dtype).per_byte > 1) { // no strides, row after row
    return {
        .begin = begin,
        .end = begin + contiguous_bytes(tensor),
        .owner = &flat};
  }
  std::int64_t last = tensor.offset;
  for (std::size_t d = 0; d < tensor.sizes.size(); ++d) {
    last += (tensor.sizes[d] - 1) * tensor.strides[d];
  }
  return {
      .begin = begin,
      .end = static_cast<std::uint64_t>(last + 1) * element,
      .owner = &flat};
}

Error shared(
    const std::string& a,
    const std::string& b,
    const std::string& hint) {
  return internal::save_error(
      ErrorCode::kInvalidArgument,
      "E_SHARED_TENSOR",
      a == b
          ? format("tensor '{}' repeats its own bytes", escape(a))
          : format("tensors '{}' and '{}' share memory", escape(a), escape(b)),
      hint);
}

} // namespace

const Dict* state_metadata(const Dict& weights) {
  for (const auto& [key, value] : weights.attributes) {
    if (key.text() == kStateMetadata && value.as_dict() != nullptr) {
      return value.as_dict();
    }
  }
  return nullptr;
}

std::string attribute_name(const std::string& dict, const Value& key) {
  return dict + (dict.empty() ? "" : ".") + key_text(key);
}

Result<std::vector<FlatAttribute>> attributes_in(const Value& root) {
  return AttributeWalk().run(root);
}

Result<FlatState> flatten(const Value& root) {
  return Flattener().run(root);
}

Status check_not_shared(const FlatState& flat, const std::string& hint) {
  std::unordered_map<const Storage*, std::vector<Range>> ranges;
  std::vector<const Storage*> order; // so that the first clash is told
  for (const FlatTensor& entry : flat.tensors) {
    const Tensor& tensor = *entry.tensor;
    if (tensor.numel() == 0) {
      continue;
    }
    const Range range = range_of(entry);
    if (contiguous_bytes(tensor) > range.end - range.begin) {
      return shared(entry.name, entry.name, hint);
    }
    auto& row = ranges[tensor.storage.get()];
    if (row.empty()) {
      order.push_back(tensor.storage.get());
    }
    row.push_back(range);
  }
  for (const Storage* storage : order) {
    auto& row = ranges[storage];
    std::ranges::stable_sort(row, {}, &Range::begin);
    for (std::size_t i = 1; i < row.size(); ++i) {
      if (row[i].begin < row[i - 1].end) {
        return shared(row[i - 1].owner->name, row[i].owner->name, hint);
      }
    }
  }
  return {};
}

} // namespace lockstep::ckpt
