// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/pickle/globals.h"

#include <algorithm>
#include <array>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/pickle/pickle_decoder.h"

namespace lockstep::ckpt {
namespace {

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
  if (const NameRow* row = find_name(name)) {
    return {
        row->call == nullptr ? GlobalKind::kOpaque : GlobalKind::kCallable,
        row->trust};
  }
  if (const auto dtype = dtype_name(name); dtype && dtype_by_name(*dtype)) {
    return {GlobalKind::kDType, Trust::kSafe};
  }
  if (storage_class_dtype(name)) {
    return {
        GlobalKind::kStorageClass,
        is_python_storage(name) ? Trust::kSafe : Trust::kUnknown};
  }
  if (is_tensor_class(name)) {
    return {GlobalKind::kTensorClass, Trust::kSafe};
  }
  if (is_narrow_integer(name)) {
    return {GlobalKind::kOpaque, Trust::kSafe};
  }
  const Trust trust =
      reaches_the_system(name) ? Trust::kRunsCode : Trust::kUnknown;
  return {GlobalKind::kUnknown, trust};
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
  const NameRow* const row = find_name(name);
  if (row != nullptr && row->call != nullptr) {
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
