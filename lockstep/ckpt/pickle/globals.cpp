// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/pickle/globals.h"

#include <algorithm>
#include <array>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/pickle/global_calls.h"
#include "lockstep/ckpt/pickle/pickle_decoder.h"
#include "lockstep/ckpt/pickle/rebuild_tensor.h"
#include "lockstep/ckpt/pickle/script_calls.h"

namespace lockstep::ckpt {
namespace {

struct Callable {
  std::string_view name = {};
  CallResult (*call)(const Tuple&) = nullptr;
  bool is_safe = true;
};

// Python 3 names; `modern_name` maps the older spellings to them.
constexpr std::array kCallables{
    Callable{"collections.OrderedDict", call_ordered_dict},
    Callable{"collections.Counter", call_counter},
    Callable{"builtins.set", call_set},
    Callable{"builtins.complex", call_complex},
    Callable{"builtins.bytes", call_bytes, false},
    Callable{"_codecs.encode", call_encode},
    Callable{"torch.Size", call_size},
    Callable{"torch.device", call_device},
    Callable{"torch.nn.parameter.Parameter", call_parameter},
    Callable{"torch._utils._rebuild_tensor", rebuild_tensor},
    Callable{"torch._utils._rebuild_tensor_v2", rebuild_tensor_v2},
    Callable{"torch._utils._rebuild_tensor_v3", rebuild_tensor_v3},
    Callable{"torch._utils._rebuild_parameter", rebuild_parameter},
    Callable{
        "torch._utils._rebuild_parameter_with_state",
        rebuild_parameter_with_state},
    Callable{"torch._tensor._rebuild_from_type_v2", rebuild_from_type},
    Callable{"torch._tensor._rebuild_from_type", rebuild_from_type, false},
    Callable{"torch._utils._rebuild_qtensor", rebuild_qtensor},
    Callable{"torch._utils._rebuild_sparse_tensor", rebuild_sparse},
    Callable{
        "torch.jit._pickle.restore_type_tag",
        call_restore_type_tag,
        false},
    Callable{"torch.jit._pickle.build_intlist", call_typed_list, false},
    Callable{"torch.jit._pickle.build_doublelist", call_typed_list, false},
    Callable{"torch.jit._pickle.build_boollist", call_typed_list, false},
    Callable{"torch.jit._pickle.build_tensorlist", call_typed_list, false},
};

// Accepted by Python's safe loader; kept as objects by us.
constexpr std::array<std::string_view, 17> kOpaqueNames{
    "builtins.bytearray",
    "torch.Tensor",
    "torch.serialization._get_layout",
    "torch.per_tensor_affine",
    "torch.per_tensor_symmetric",
    "torch.per_channel_affine",
    "torch.per_channel_symmetric",
    "torch.per_channel_affine_float_qparams",
    "torch.storage.TypedStorage",
    "torch._utils._rebuild_meta_tensor_no_storage",
    "torch._utils._rebuild_nested_tensor",
    "torch._utils._rebuild_device_tensor_from_cpu_tensor",
    "torch._utils._rebuild_device_tensor_from_numpy",
    "torch._utils._rebuild_wrapper_subclass",
    "torch.nested._internal.nested_tensor.NestedTensor",
    "torch.nested._internal.nested_tensor._rebuild_njt",
    "torch._dynamo.decorators._DimRange",
};

// Storage classes that LibTorch writes and Python does not have.
constexpr std::array<std::pair<std::string_view, DType>, 15> kLibtorchStorages{{
    {"UInt16", DType::kUInt16},
    {"UInt32", DType::kUInt32},
    {"UInt64", DType::kUInt64},
    {"Float8_e5m2", DType::kFloat8E5M2},
    {"Float8_e4m3fn", DType::kFloat8E4M3FN},
    {"Float8_e5m2fnuz", DType::kFloat8E5M2FNUZ},
    {"Float8_e4m3fnuz", DType::kFloat8E4M3FNUZ},
    {"Float8_e8m0fnu", DType::kFloat8E8M0FNU},
    {"Float4_e2m1fn_x2", DType::kFloat4E2M1FNX2},
    {"ComplexHalf", DType::kComplex32},
    {"Bits8", DType::kBits8},
    {"Bits16", DType::kBits16},
    {"Bits1x8", DType::kBits1x8},
    {"Bits2x4", DType::kBits2x4},
    {"Bits4x2", DType::kBits4x2},
}};

constexpr std::array<std::string_view, 10> kTensorClasses{
    "Float",
    "Double",
    "Half",
    "BFloat16",
    "Byte",
    "Char",
    "Short",
    "Int",
    "Long",
    "Bool"};

// Names that changed between versions of Python and PyTorch.
constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kMoved{{
    {"__builtin__.", "builtins."},
    {"copy_reg.", "copyreg."},
    {"torch.tensor.", "torch._tensor."},
}};
constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kRenamed{
    {
        {"__builtin__.long", "builtins.int"},
        {"__builtin__.unicode", "builtins.str"},
        {"__builtin__.xrange", "builtins.range"},
    }};

std::string modern_name(std::string_view name) {
  for (const auto& [old_name, renamed] : kRenamed) {
    if (name == old_name) {
      return std::string(renamed);
    }
  }
  for (const auto& [old_module, module] : kMoved) {
    if (name.starts_with(old_module)) {
      return std::string(module) + std::string(name.substr(old_module.size()));
    }
  }
  return std::string(name);
}

const Callable* find_callable(std::string_view name) {
  const auto* row = std::ranges::find(kCallables, name, &Callable::name);
  return row == kCallables.end() ? nullptr : row;
}

// "torch.cuda.FloatStorage" -> "Float" with suffix "Storage".
std::optional<std::string_view> class_stem(
    std::string_view name,
    std::string_view suffix) {
  if (!name.starts_with("torch.") || !name.ends_with(suffix)) {
    return std::nullopt;
  }
  name.remove_prefix(std::string_view("torch.").size());
  name.remove_suffix(suffix.size());
  if (name.starts_with("cuda.")) {
    name.remove_prefix(std::string_view("cuda.").size());
  }
  return name;
}

bool is_tensor_class(std::string_view name) {
  auto stem = class_stem(name, "Tensor");
  if (stem && stem->starts_with("sparse.")) {
    stem->remove_prefix(std::string_view("sparse.").size());
  }
  return stem &&
         std::ranges::find(kTensorClasses, *stem) != kTensorClasses.end();
}

std::optional<std::string_view> dtype_name(std::string_view name) {
  constexpr std::string_view kModule = "torch.";
  if (!name.starts_with(kModule)) {
    return std::nullopt;
  }
  return name.substr(kModule.size());
}

// int1 to int7 and uint1 to uint7: PyTorch has the names, nothing to save.
bool is_narrow_integer(std::string_view name) {
  auto dtype = dtype_name(name);
  if (!dtype) {
    return false;
  }
  if (dtype->starts_with('u')) {
    dtype->remove_prefix(1);
  }
  return dtype->size() == 4 && dtype->starts_with("int") &&
         dtype->back() >= '1' && dtype->back() <= '7';
}

bool is_untyped_storage(std::string_view name) {
  return name == "torch.storage.UntypedStorage" ||
         name == "torch.storage._UntypedStorage";
}

bool is_python_storage(std::string_view name) {
  const auto stem = class_stem(name, "Storage");
  return (stem && dtype_by_storage(*stem)) ||
         name == "torch.storage.UntypedStorage";
}

} // namespace

GlobalInfo find_global(std::string_view given) {
  const std::string name = modern_name(given);
  if (const Callable* row = find_callable(name)) {
    return {GlobalKind::kCallable, row->is_safe};
  }
  if (const auto dtype = dtype_name(name); dtype && dtype_by_name(*dtype)) {
    return {GlobalKind::kDType, true};
  }
  if (storage_class_dtype(name)) {
    return {GlobalKind::kStorageClass, is_python_storage(name)};
  }
  if (is_tensor_class(name)) {
    return {GlobalKind::kTensorClass, true};
  }
  const bool is_opaque =
      std::ranges::find(kOpaqueNames, name) != kOpaqueNames.end() ||
      is_narrow_integer(name);
  if (is_opaque) {
    return {GlobalKind::kOpaque, true};
  }
  return {};
}

std::optional<DType> storage_class_dtype(std::string_view name) {
  if (is_untyped_storage(name)) {
    return DType::kUInt8;
  }
  const auto stem = class_stem(name, "Storage");
  if (!stem) {
    return std::nullopt;
  }
  if (const auto dtype = dtype_by_storage(*stem)) {
    return dtype;
  }
  for (const auto& [libtorch_name, dtype] : kLibtorchStorages) {
    if (*stem == libtorch_name) {
      return dtype;
    }
  }
  return std::nullopt;
}

std::string_view native_storage(DType dtype) {
  for (const auto& [name, known] : kLibtorchStorages) {
    if (known == dtype) {
      return name;
    }
  }
  return dtype_info(dtype).storage;
}

Value global_value(std::string_view name) {
  if (const auto dtype = dtype_name(name)) {
    if (const auto known = dtype_by_name(*dtype)) {
      return DTypeValue{*known};
    }
  }
  return Object{.global = modern_name(name)};
}

Result<Value> call_global(std::string_view name, const Value& args) {
  if (const Callable* row = find_callable(name)) {
    LOCKSTEP_ASSIGN(auto value, row->call(*args.as_tuple()));
    if (value) {
      return *std::move(value);
    }
  }
  const GlobalKind kind = find_global(name).kind;
  if (kind == GlobalKind::kStorageClass || kind == GlobalKind::kTensorClass) {
    return corrupt_pickle(
        "E_PICKLE_TYPE",
        format("call of '{}' would give uninitialised memory", escape(name)));
  }
  return Value(Object{
      .global = std::string(name),
      .args = std::make_shared<Value>(args)});
}

bool is_bare_global(const Object& object) {
  return object.args == nullptr && object.state == nullptr &&
         object.items.empty();
}

Value storage_object(const std::shared_ptr<Storage>& storage) {
  const std::uint64_t size = dtype_info(storage->dtype).size;
  Tensor all{.dtype = storage->dtype, .strides = {1}, .storage = storage};
  all.sizes = {static_cast<std::int64_t>(storage->nbytes / size)};
  Tuple args;
  args.items.emplace_back(std::move(all));
  return Object{
      .global = storage->class_name,
      .args = std::make_shared<Value>(std::move(args))};
}

std::shared_ptr<Storage> storage_of(const Value& value) {
  if (auto storage = value.shared_storage()) {
    return storage;
  }
  const Object* object = value.as_object();
  if (object == nullptr || object->args == nullptr ||
      !storage_class_dtype(object->global)) {
    return nullptr;
  }
  const Tuple* args = object->args->as_tuple();
  if (args == nullptr || args->items.size() != 1) {
    return nullptr;
  }
  const Tensor* all = args->items[0].as_tensor();
  return all == nullptr ? nullptr : all->storage;
}

} // namespace lockstep::ckpt
