// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/formats/torchscript/script_pickler.h"

#include <algorithm>
#include <array>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/quantizer.h"
#include "lockstep/ckpt/core/save_error.h"
#include "lockstep/ckpt/core/storage_class.h"

namespace lockstep::ckpt::internal {
namespace {

// c10::Layout, as LibTorch writes it; it reads no other sparse tensors.
struct NativeLayout {
  std::string_view name = {};
  std::int64_t number = 0;
};
constexpr std::array kNativeLayouts{
    NativeLayout{"sparse_coo", 1},
    NativeLayout{"sparse_csr", 2}};

// Lists with a function of their own; others carry their type as text.
struct ListFunction {
  std::string_view type = {};
  std::string_view name = {};
};
constexpr std::array kListFunctions{
    ListFunction{"List[int]", "torch.jit._pickle.build_intlist"},
    ListFunction{"List[float]", "torch.jit._pickle.build_doublelist"},
    ListFunction{"List[bool]", "torch.jit._pickle.build_boollist"},
    ListFunction{"List[Tensor]", "torch.jit._pickle.build_tensorlist"}};

} // namespace

Result<PickledTree> ScriptPickler::run() {
  LOCKSTEP_TRY(object(0));
  return PickledTree{
      .pickle = std::move(out_).finish(),
      .storages = std::move(storages_)};
}

Status ScriptPickler::object(std::size_t index) {
  const ScriptClass& object = classes_[index];
  out_.global(script_module(index) + "." + object.name);
  out_.op(Op::kEmptyTuple);
  out_.op(Op::kNewObj);
  out_.op(Op::kEmptyDict);
  out_.op(Op::kMark);
  for (const ScriptAttribute& attribute : object.attributes) {
    out_.literal(attribute.name);
    path_.push_back(attribute.name);
    LOCKSTEP_TRY(
        attribute.object ? this->object(*attribute.object)
                         : value(attribute, attribute.value));
    path_.pop_back();
  }
  out_.op(Op::kSetItems);
  out_.op(Op::kBuild);
  return {};
}

// Only values that `script_type` has a type for come here.
Status ScriptPickler::value(
    const ScriptAttribute& attribute,
    const Value& value) {
  if (const Tensor* dense = value.as_tensor()) {
    if (out_.get(value.address())) { // the same tensor, not an equal one
      return {};
    }
    LOCKSTEP_TRY(tensor(*dense));
    out_.put(value.address());
    return {};
  }
  if (const auto layout = layout_tensor(value)) {
    return sparse(*layout);
  }
  if (const List* items = value.as_list()) {
    return list(attribute, items->items);
  }
  if (const Tuple* items = value.as_tuple()) {
    return tuple(attribute, *items);
  }
  if (const bool* flag = value.as_bool()) {
    out_.boolean(*flag);
  } else if (const std::int64_t* number = value.as_int()) {
    integer(*number);
  } else if (value.type() == Value::Type::kFloat) {
    out_.real(*value.as_float());
  } else if (const Complex* pair = value.as_complex()) {
    out_.global("builtins.complex");
    out_.real(pair->real);
    out_.real(pair->imag);
    out_.op(Op::kTuple2);
    out_.op(Op::kReduce);
  } else if (const std::string* text = value.as_string()) {
    if (text->size() > kMaxPickledText) {
      return save_error(
          ErrorCode::kUnsupported,
          "E_NOT_SAFE",
          format("a text of {} bytes is too long", text->size()));
    }
    out_.literal(*text);
  } else if (const Size* size = value.as_size()) {
    const std::vector<Value> items(size->sizes.begin(), size->sizes.end());
    return list(attribute, items);
  } else if (const Device* device = value.as_device()) {
    out_.global("torch.device");
    out_.literal(
        device->index < 0 ? device->type
                          : format("{}:{}", device->type, device->index));
    out_.op(Op::kTuple1);
    out_.op(Op::kReduce);
  } else {
    out_.op(Op::kNone);
  }
  return {};
}

Status ScriptPickler::list(
    const ScriptAttribute& attribute,
    const std::vector<Value>& items) {
  const auto* row =
      std::ranges::find(kListFunctions, attribute.type, &ListFunction::type);
  const bool is_typed = row != kListFunctions.end();
  out_.global(is_typed ? row->name : "torch.jit._pickle.restore_type_tag");
  if (is_typed) {
    out_.op(Op::kMark);
  }
  out_.op(Op::kEmptyList);
  out_.op(Op::kMark);
  for (const Value& item : items) {
    LOCKSTEP_TRY(value(attribute, item));
  }
  out_.op(Op::kAppends);
  if (!is_typed) {
    out_.literal(attribute.type);
  }
  out_.op(is_typed ? Op::kTuple : Op::kTuple2);
  out_.op(Op::kReduce);
  return {};
}

Status ScriptPickler::tuple(
    const ScriptAttribute& attribute,
    const Tuple& tuple) {
  constexpr std::array kShort{Op::kTuple1, Op::kTuple2, Op::kTuple3};
  const std::size_t size = tuple.items.size();
  if (size > kShort.size()) {
    out_.op(Op::kMark);
  }
  for (const Value& item : tuple.items) {
    LOCKSTEP_TRY(value(attribute, item));
  }
  out_.op(size > kShort.size() ? Op::kTuple : kShort.at(size - 1));
  return {};
}

Status ScriptPickler::tensor(const Tensor& tensor) {
  const Status fits = tensor.storage == nullptr ? Status() : check_view(tensor);
  if (tensor.storage == nullptr || !fits) {
    return refuse(
        ErrorCode::kInvalidArgument,
        "E_TENSOR",
        fits ? "a tensor without a storage" : fits.error().message);
  }
  const bool is_plain = tensor.quantizer == nullptr;
  if (is_plain == is_quantized(tensor.dtype)) {
    return refuse(
        ErrorCode::kUnsupported,
        "E_NOT_SCRIPT",
        "a quantized tensor without its quantizer");
  }
  out_.global(
      is_plain ? "torch._utils._rebuild_tensor_v2"
               : "torch._utils._rebuild_qtensor");
  out_.op(Op::kMark);
  LOCKSTEP_TRY(storage(tensor));
  // LibTorch holds the offset of a tensor without elements against its storage.
  integer(tensor.numel() == 0 ? 0 : tensor.offset);
  integers(tensor.sizes);
  integers(tensor.strides);
  if (!is_plain) {
    LOCKSTEP_TRY(quantizer(tensor));
  }
  out_.boolean(tensor.requires_grad);
  hooks();
  flags(tensor);
  out_.op(Op::kTuple);
  out_.op(Op::kReduce);
  return {};
}

// (layout, size, requires_grad, parts..., hooks)
Status ScriptPickler::sparse(const LayoutTensor& tensor) {
  const auto* row =
      std::ranges::find(kNativeLayouts, tensor.layout, &NativeLayout::name);
  if (row == kNativeLayouts.end()) {
    Error error = refuse(
        ErrorCode::kUnsupported,
        "E_NOT_SCRIPT",
        format(
            "LibTorch reads sparse tensors of the layouts sparse_coo and "
            "sparse_csr; got {}",
            tensor.layout));
    error.hint = "call to_sparse() or to_sparse_csr() before saving";
    return error;
  }
  out_.global("torch._utils._rebuild_sparse_tensor");
  out_.op(Op::kMark);
  integer(row->number);
  // NOLINTNEXTLINE(bugprone-unchecked-optional-access): sparse ones have sizes
  integers(*tensor.sizes);
  out_.boolean(false);
  for (const TensorPart& part : tensor.parts) {
    LOCKSTEP_TRY(this->tensor(*part.value->as_tensor()));
  }
  hooks();
  out_.op(Op::kTuple);
  out_.op(Op::kReduce);
  return {};
}

Status ScriptPickler::storage(const Tensor& tensor) {
  const auto [known, is_new] =
      dtypes_.try_emplace(tensor.storage.get(), tensor.dtype);
  if (known->second != tensor.dtype) {
    return refuse(
        ErrorCode::kUnsupported,
        "E_NOT_SCRIPT",
        format(
            "its storage was written as {}, LibTorch cannot see it as {}",
            dtype_info(known->second).name,
            dtype_info(tensor.dtype).name));
  }
  if (out_.get(tensor.storage.get())) {
    return {};
  }
  out_.op(Op::kMark);
  out_.literal("storage");
  out_.global(format("torch.{}Storage", native_storage(tensor.dtype)));
  out_.literal(std::to_string(storages_.size()));
  out_.literal(tensor.storage->location);
  integer(static_cast<std::int64_t>(
      tensor.storage->nbytes / dtype_info(tensor.dtype).size));
  out_.op(Op::kTuple);
  out_.op(Op::kBinPersId);
  out_.put(tensor.storage.get());
  storages_.push_back(tensor.storage);
  return {};
}

Status ScriptPickler::quantizer(const Tensor& tensor) {
  const auto made = read_quantizer(tensor);
  const bool has_tensors = made && made->scales.as_tensor() != nullptr &&
                           made->zero_points.as_tensor() != nullptr;
  if (!made || (made->is_per_channel && !has_tensors)) {
    return refuse(
        ErrorCode::kUnsupported,
        "E_NOT_SCRIPT",
        made ? "scales in a list" : made.error().message);
  }
  out_.op(Op::kMark);
  if (made->is_per_channel) {
    const bool is_float =
        made->zero_points.as_tensor()->dtype == DType::kFloat32;
    out_.global(
        is_float ? "torch.per_channel_affine_float_qparams"
                 : "torch.per_channel_affine");
    LOCKSTEP_TRY(this->tensor(*made->scales.as_tensor()));
    LOCKSTEP_TRY(this->tensor(*made->zero_points.as_tensor()));
    integer(made->axis);
  } else {
    out_.global("torch.per_tensor_affine");
    out_.real(made->scale);
    integer(made->zero_point);
  }
  out_.op(Op::kTuple);
  return {};
}

// A typed dict after the hooks, only where a flag is set.
void ScriptPickler::flags(const Tensor& tensor) {
  if (!tensor.is_conj && !tensor.is_neg) {
    return;
  }
  out_.global("torch.jit._pickle.restore_type_tag");
  out_.op(Op::kEmptyDict);
  out_.op(Op::kMark);
  for (const auto& [name, is_set] :
       {std::pair{"conj", tensor.is_conj}, {"neg", tensor.is_neg}}) {
    if (is_set) {
      out_.literal(name);
      out_.boolean(true);
    }
  }
  out_.op(Op::kSetItems);
  out_.literal("Dict[str, bool]");
  out_.op(Op::kTuple2);
  out_.op(Op::kReduce);
}

// LibTorch reads long integers of 8 bytes only.
void ScriptPickler::integer(std::int64_t value) {
  if (std::in_range<std::int32_t>(value)) {
    out_.integer(value);
    return;
  }
  std::string bytes(sizeof value, '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] =
        static_cast<char>(static_cast<std::uint64_t>(value) >> (8 * i) & 0xFF);
  }
  out_.big_integer(bytes);
}

void ScriptPickler::integers(const std::vector<std::int64_t>& values) {
  out_.op(Op::kMark);
  for (const std::int64_t value : values) {
    integer(value);
  }
  out_.op(Op::kTuple);
}

Error ScriptPickler::refuse(
    ErrorCode code,
    std::string_view detail,
    std::string_view message) const {
  return save_error(
      code,
      std::string(detail),
      format("'{}': {}", escape(join(path_, ".")), message));
}

void ScriptPickler::hooks() {
  out_.global("collections.OrderedDict");
  out_.op(Op::kEmptyTuple);
  out_.op(Op::kReduce);
}

} // namespace lockstep::ckpt::internal
