// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/core/tensor_layout.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "lockstep/ckpt/core/dtensor.h"
#include "lockstep/ckpt/print.h"
#include "lockstep/ckpt/walk.h"

namespace lockstep::ckpt {
namespace {

using Layout = std::optional<LayoutTensor>;

// Layouts of `_rebuild_sparse_tensor` and the names of their parts.
struct SparseLayout {
  std::string_view name = {};
  std::array<std::string_view, 3> parts = {};
  std::size_t count = 3;
};
constexpr std::array kSparseLayouts{
    SparseLayout{"sparse_coo", {"indices", "values"}, 2},
    SparseLayout{"sparse_csr", {"crow_indices", "col_indices", "values"}},
    SparseLayout{"sparse_csc", {"ccol_indices", "row_indices", "values"}},
    SparseLayout{"sparse_bsr", {"crow_indices", "col_indices", "values"}},
    SparseLayout{"sparse_bsc", {"ccol_indices", "row_indices", "values"}},
};

const Object* called(const Value& value, std::string_view name) {
  const Object* object = value.as_object();
  const bool is_it = object != nullptr && object->global == name &&
                     object->args != nullptr && object->args->as_tuple();
  return is_it ? object : nullptr;
}

// The layout that `torch.serialization._get_layout('torch.sparse_coo')` names.
const SparseLayout* sparse_layout(const Value& value) {
  const Object* call = called(value, names::kGetLayout);
  if (call == nullptr || call->args->as_tuple()->items.size() != 1) {
    return nullptr;
  }
  const std::string* text = call->args->as_tuple()->items[0].as_string();
  constexpr std::string_view kModule = "torch.";
  if (text == nullptr || !text->starts_with(kModule)) {
    return nullptr;
  }
  const auto* row = std::ranges::find(
      kSparseLayouts,
      std::string_view(*text).substr(kModule.size()),
      &SparseLayout::name);
  return row == kSparseLayouts.end() ? nullptr : row;
}

// Sizes that a tensor can have; nothing for others.
std::optional<std::vector<std::int64_t>> shape_of(const Value& value) {
  auto sizes = integers_of(value, kMaxDimensions);
  if (!sizes) {
    return std::nullopt;
  }
  std::int64_t elements = 1;
  for (const std::int64_t size : *sizes) {
    if (size < 0 || __builtin_mul_overflow(
                        elements,
                        std::max<std::int64_t>(size, 1),
                        &elements)) {
      return std::nullopt;
    }
  }
  return sizes;
}

bool all_tensors(const std::vector<TensorPart>& parts) {
  return std::ranges::all_of(parts, [](const TensorPart& part) {
    return part.value->as_tensor() != nullptr;
  });
}

// (layout, (parts..., size[, is_coalesced]))
Layout sparse(const std::vector<Value>& args) {
  const SparseLayout* row = args.size() == 2 ? sparse_layout(args[0]) : nullptr;
  const Tuple* data = row == nullptr ? nullptr : args[1].as_tuple();
  if (data == nullptr || data->items.size() <= row->count) {
    return std::nullopt;
  }
  LayoutTensor tensor{.layout = row->name};
  for (std::size_t i = 0; i < row->count; ++i) {
    tensor.parts.push_back({row->parts.at(i), &data->items[i]});
  }
  tensor.sizes = shape_of(data->items[row->count]);
  if (!tensor.sizes || !all_tensors(tensor.parts)) {
    return std::nullopt;
  }
  tensor.dtype = tensor.part("values")->dtype;
  return tensor;
}

// (buffer, sizes, strides, offsets)
Layout nested(const std::vector<Value>& args) {
  constexpr std::array<std::string_view, 4> kNames{
      "values",
      "sizes",
      "strides",
      "offsets"};
  if (args.size() != kNames.size()) {
    return std::nullopt;
  }
  LayoutTensor tensor{.layout = "nested"};
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    tensor.parts.push_back({kNames.at(i), &args[i]});
  }
  if (!all_tensors(tensor.parts)) {
    return std::nullopt;
  }
  tensor.dtype = args[0].as_tensor()->dtype;
  return tensor;
}

// ({'values': ..., 'offsets': ..., 'lengths': ..., ...},)
Layout jagged(const std::vector<Value>& args) {
  LayoutTensor tensor{.layout = "jagged"};
  for (const std::string_view name : {"values", "offsets", "lengths"}) {
    const Value* part = args.size() == 1 ? short_field(args[0], name) : nullptr;
    if (part != nullptr && part->as_tensor() != nullptr) {
      tensor.parts.push_back({name, part});
    }
  }
  if (tensor.part("values") == nullptr) {
    return std::nullopt;
  }
  tensor.dtype = tensor.part("values")->dtype;
  return tensor;
}

// Dtype, size and stride from `dtype_at` on, and whether there is a gradient at
// `gradient_at`; no parts.
Layout shape_only(
    std::string_view layout,
    const std::vector<Value>& args,
    std::size_t dtype_at,
    std::size_t gradient_at) {
  if (args.size() <= gradient_at) {
    return std::nullopt;
  }
  const DTypeValue* dtype = args[dtype_at].as_dtype();
  auto sizes = shape_of(args[dtype_at + 1]);
  auto strides = integers_of(args[dtype_at + 2], kMaxDimensions);
  const auto has_gradient = args[gradient_at].as_bool();
  if (dtype == nullptr || !sizes || !strides ||
      strides->size() != sizes->size()) {
    return std::nullopt;
  }
  return LayoutTensor{
      .layout = layout,
      .dtype = dtype->dtype,
      .sizes = std::move(sizes),
      .strides = std::move(*strides),
      .requires_grad = has_gradient && *has_gradient};
}

// (dtype, size, stride, requires_grad)
Layout meta(const std::vector<Value>& args) {
  return shape_only(kMetaLayout, args, 0, 3);
}

// (class, dtype, size, stride, offset, layout, device, requires_grad)
Layout wrapper(const std::vector<Value>& args) {
  return shape_only("wrapper", args, 1, 7);
}

// (tensor on the CPU, dtype, device, requires_grad)
Layout device(const std::vector<Value>& args) {
  if (args.size() != 4 || args[0].as_tensor() == nullptr) {
    return std::nullopt;
  }
  return LayoutTensor{
      .layout = "device",
      .parts = {{"", args.data()}},
      .dtype = args[0].as_tensor()->dtype,
      .sizes = args[0].as_tensor()->sizes};
}

struct Function {
  std::string_view name = {};
  Layout (*read)(const std::vector<Value>&) = nullptr;
};
constexpr std::array kFunctions{
    Function{names::kRebuildSparse, sparse},
    Function{names::kRebuildSparseCsr, sparse},
    Function{names::kRebuildNested, nested},
    Function{names::kRebuildJagged, jagged},
    Function{names::kRebuildMeta, meta},
    Function{names::kRebuildWrapper, wrapper},
    Function{names::kRebuildDevice, device},
};

// The part of one rank; what is whole has the tensor's own name.
Layout distributed(const std::vector<Value>& parts) {
  auto tensor = read_dtensor(parts);
  if (!tensor) {
    return std::nullopt;
  }
  return LayoutTensor{
      .layout = kDTensorLayout,
      .parts = {{tensor->is_whole ? "" : "local", tensor->local}},
      .dtype = tensor->dtype,
      .sizes = std::move(tensor->sizes),
      .place = std::move(tensor->place)};
}

Layout read_call(std::string_view name, const Value& args) {
  const auto* row = std::ranges::find(kFunctions, name, &Function::name);
  const Tuple* tuple = args.as_tuple();
  return row == kFunctions.end() || tuple == nullptr ? std::nullopt
                                                     : row->read(tuple->items);
}

} // namespace

const Tensor* LayoutTensor::part(std::string_view name) const {
  const auto found = std::ranges::find(parts, name, &TensorPart::name);
  return found == parts.end() ? nullptr : found->value->as_tensor();
}

const Value* short_field(const Value& dict, std::string_view key) {
  constexpr std::size_t kMaxFields = 64;
  const Dict* items = dict.as_dict();
  return items == nullptr || items->items.size() > kMaxFields ? nullptr
                                                              : dict.find(key);
}

const Value* parameter_data(const Value& value) {
  for (const std::string_view wrapper :
       {names::kRebuildParameter, names::kRebuildParameterWithState}) {
    const Object* call = called(value, wrapper);
    if (call != nullptr && !call->args->as_tuple()->items.empty()) {
      return call->args->as_tuple()->items.data();
    }
  }
  return nullptr;
}

std::optional<LayoutTensor> layout_tensor(const Value& value) {
  const Value* inner = parameter_data(value);
  inner = inner == nullptr ? &value : inner;
  const Object* object = inner->as_object();
  if (object == nullptr || object->args == nullptr) {
    return std::nullopt;
  }
  // (function, class, arguments of the function, attributes)
  if (const Object* typed = called(*inner, names::kRebuildFromType)) {
    const auto& parts = typed->args->as_tuple()->items;
    if (auto whole = distributed(parts)) {
      return whole;
    }
    const Object* function = parts.size() == 4 ? parts[0].as_object() : nullptr;
    return function == nullptr ? std::nullopt
                               : read_call(function->global, parts[2]);
  }
  return read_call(object->global, *object->args);
}

std::string describe(const LayoutTensor& tensor) {
  std::string text(tensor.layout);
  if (tensor.dtype) {
    text += " " + std::string(dtype_info(*tensor.dtype).name);
  }
  if (tensor.sizes) {
    text += " " + shape_text(Tensor{.sizes = *tensor.sizes});
  }
  text += tensor.place.empty() ? "" : ", " + tensor.place;
  return text;
}

std::vector<LayoutTensor> layout_tensors(const Value& root) {
  std::vector<LayoutTensor> found;
  NodeWalk().run(root, [&found](const Value& node) {
    if (auto tensor = layout_tensor(node)) {
      found.push_back(*std::move(tensor));
    }
    return true;
  });
  return found;
}

} // namespace lockstep::ckpt
