// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/core/storage_class.h"

#include <array>
#include <utility>

#include "lockstep/base/strings.h"

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

bool is_untyped_storage(std::string_view name) {
  return name == "torch.storage.UntypedStorage" ||
         name == "torch.storage._UntypedStorage";
}

} // namespace

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

std::string storage_class_of(std::string_view name, DType dtype) {
  return format(
      "{}{}Storage",
      name.substr(0, name.rfind('.') + 1),
      dtype_info(dtype).storage);
}

std::string_view native_storage(DType dtype) {
  for (const auto& [name, known] : kLibtorchStorages) {
    if (known == dtype) {
      return name;
    }
  }
  return dtype_info(dtype).storage;
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
