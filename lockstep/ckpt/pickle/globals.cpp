// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/pickle/globals.h"

#include <algorithm>
#include <array>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/read_error.h"
#include "lockstep/ckpt/core/storage_class.h"
#include "lockstep/ckpt/pickle/storage_id.h"

namespace lockstep::ckpt {
namespace {

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
constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kMoved{{
    {"__builtin__.", "builtins."},
    {"__builtin__:", "builtins:"},
    {"copy_reg.", "copyreg."},
    {"numpy.core.", "numpy._core."},
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

bool is_tensor_class(std::string_view name) {
  auto stem = class_stem(name, "Tensor");
  if (stem && stem->starts_with("sparse.")) {
    stem->remove_prefix(std::string_view("sparse.").size());
  }
  return stem &&
         std::ranges::find(kTensorClasses, *stem) != kTensorClasses.end();
}

// `torch.Tensor()` and `torch.FloatTensor()`, before BUILD sets what it views.
std::optional<Value> new_tensor(std::string_view name, const Tuple& args) {
  const std::string modern = modern_name(name);
  const auto stem = class_stem(modern, "Tensor");
  const auto dtype = stem && stem->empty() ? std::optional(DType::kFloat32)
                     : stem                ? dtype_by_storage(*stem)
                                           : std::nullopt;
  if (!dtype || !args.items.empty()) {
    return std::nullopt;
  }
  return Tensor{
      .dtype = *dtype,
      .sizes = {0},
      .strides = {1},
      .storage = empty_storage(*dtype)};
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

bool is_python_storage(std::string_view name) {
  const auto stem = class_stem(name, "Storage");
  return (stem && dtype_by_storage(*stem)) ||
         name == "torch.storage.UntypedStorage";
}

} // namespace

std::string dotted_name(std::string_view module, std::string_view name) {
  const bool is_dotted = name.find('.') != std::string_view::npos;
  return format("{}{}{}", module, is_dotted ? ":" : ".", name);
}

GlobalInfo find_global(std::string_view given) {
  const std::string name = modern_name(given);
  if (const NameRow* row = find_name(name)) {
    // What is read here as data may run code in Python all the same.
    const bool runs_code =
        row->trust == Trust::kUnknown && reaches_the_system(name);
    return {
        row->call == nullptr ? GlobalKind::kOpaque : GlobalKind::kCallable,
        runs_code ? Trust::kRunsCode : row->trust};
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
  if (auto tensor = new_tensor(name, *args.as_tuple())) {
    return *std::move(tensor);
  }
  const GlobalKind kind = find_global(name).kind;
  if (kind == GlobalKind::kStorageClass || kind == GlobalKind::kTensorClass) {
    return corrupt_file(
        "E_PICKLE_TYPE",
        format(
            "a call of '{}' would return uninitialised memory",
            escape(name)));
  }
  return Value(Object{
      .global = std::string(name),
      .args = std::make_shared<Value>(args)});
}

bool is_bare_global(const Object& object) {
  return object.args == nullptr && object.state == nullptr &&
         object.items.empty();
}

std::string class_name_of(const Object& type) {
  // _class_setstate(class, state) of _make_skeleton_class(type, name, ...).
  const Object* maker = &type;
  while (maker != nullptr && maker->args != nullptr) {
    const auto args = maker->args->elements();
    if (args != nullptr && args->size() > 1 && !(*args)[1].text().empty()) {
      return std::string((*args)[1].text());
    }
    maker = args == nullptr || args->empty() ? nullptr : (*args)[0].as_object();
  }
  return type.global;
}

} // namespace lockstep::ckpt
