// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <string>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/quantizer.h"
#include "lockstep/ckpt/core/save_error.h"
#include "lockstep/ckpt/core/storage_class.h"
#include "lockstep/ckpt/pickle/rebuild_tensor.h"
#include "lockstep/ckpt/pickle/value_pickler.h"
#include "lockstep/ckpt/walk.h"

namespace lockstep::ckpt::internal {
namespace {

constexpr std::string_view kUntyped = "torch.storage.UntypedStorage";

std::string storage_class_of(const Tensor& tensor) {
  const std::string_view name = dtype_info(tensor.dtype).storage;
  return name.empty() ? std::string(kUntyped) : format("torch.{}Storage", name);
}

std::string_view rebuild_function(const Tensor& tensor) {
  if (tensor.quantizer != nullptr) {
    return "torch._utils._rebuild_qtensor";
  }
  return dtype_info(tensor.dtype).storage.empty()
             ? "torch._utils._rebuild_tensor_v3"
             : "torch._utils._rebuild_tensor_v2";
}

} // namespace

Status ValuePickler::check_tensor(const Tensor& tensor) const {
  if (tensor.storage == nullptr) {
    return invalid("a tensor without a storage");
  }
  if (is_quantized(tensor.dtype) != (tensor.quantizer != nullptr)) {
    return refuse("a quantized tensor without its quantizer");
  }
  if (!tensor.class_name.empty()) {
    return refuse(
        format("a tensor of the class '{}'", escape(tensor.class_name)),
        "clear its class_name to keep the data alone");
  }
  const Status fits = check_view(tensor);
  return fits ? Status() : Status(invalid(fits.error().message));
}

Status ValuePickler::check_location(const std::string& location) const {
  const std::size_t colon = location.find(':');
  const std::string type = location.substr(0, colon);
  const std::string index =
      colon == std::string::npos ? "" : location.substr(colon + 1);
  const bool is_number =
      !index.empty() &&
      std::ranges::all_of(index, [](char c) { return c >= '0' && c <= '9'; });
  const bool single = type == "cpu" || type == "mps" || type == "meta";
  const bool several =
      type == "cuda" || type == "xpu" || type == "hpu" || type == "mtia";
  if ((single && colon == std::string::npos) ||
      (several && (colon == std::string::npos || is_number))) {
    return {};
  }
  return refuse(
      format("PyTorch cannot restore the location '{}'", escape(location)),
      "save with the location 'cpu'");
}

Status ValuePickler::save(const Tensor& tensor) {
  LOCKSTEP_TRY(check_tensor(tensor));
  if (tensor.is_parameter) {
    LOCKSTEP_TRY(parameter(tensor));
  } else if (tensor.attributes != nullptr) {
    LOCKSTEP_TRY(tensor_with_attributes(tensor));
  } else {
    LOCKSTEP_TRY(plain_tensor(tensor, tensor.requires_grad));
  }
  out_.op(Op::kReduce);
  out_.put(&tensor);
  return {};
}

// Leaves function and arguments on the stack; the caller reduces them.
Status ValuePickler::plain_tensor(const Tensor& tensor, bool requires_grad) {
  out_.global(rebuild_function(tensor));
  return tensor_arguments(tensor, requires_grad);
}

Status ValuePickler::tensor_arguments(
    const Tensor& tensor,
    bool requires_grad) {
  const DTypeInfo& info = dtype_info(tensor.dtype);
  const bool untyped = info.storage.empty();
  out_.op(Op::kMark);
  LOCKSTEP_TRY(persistent_id(
      tensor.storage,
      storage_class_of(tensor),
      tensor.storage->nbytes / (untyped ? 1 : info.size)));
  out_.integer(tensor.offset);
  out_.integer_tuple(tensor.sizes);
  out_.integer_tuple(tensor.strides);
  if (tensor.quantizer != nullptr) {
    LOCKSTEP_TRY(write(*tensor.quantizer));
  }
  out_.boolean(requires_grad);
  empty_ordered_dict();
  if (untyped) {
    out_.global(format("torch.{}", info.name));
  }
  if (tensor.is_conj || tensor.is_neg) {
    out_.op(Op::kEmptyDict);
    out_.put();
    const bool both = tensor.is_conj && tensor.is_neg;
    if (both) {
      out_.op(Op::kMark);
    }
    if (tensor.is_neg) {
      out_.fresh_text("neg");
      out_.boolean(true);
    }
    if (tensor.is_conj) {
      out_.fresh_text("conj");
      out_.boolean(true);
    }
    out_.op(both ? Op::kSetItems : Op::kSetItem);
  }
  constexpr std::size_t kManyArguments = 6;
  out_.tuple(kManyArguments);
  return {};
}

Status ValuePickler::parameter(const Tensor& tensor) {
  const bool has_state = tensor.attributes != nullptr;
  out_.global(
      has_state ? "torch._utils._rebuild_parameter_with_state"
                : "torch._utils._rebuild_parameter");
  if (has_state) {
    out_.op(Op::kMark);
  }
  // The parameter asks for gradients, its data does not.
  LOCKSTEP_TRY(plain_tensor(tensor, false));
  out_.op(Op::kReduce);
  out_.put();
  out_.boolean(tensor.requires_grad);
  empty_ordered_dict();
  if (has_state) {
    LOCKSTEP_TRY(write(*tensor.attributes));
  }
  out_.tuple(has_state ? 4 : 3);
  return {};
}

Status ValuePickler::tensor_with_attributes(const Tensor& tensor) {
  out_.global("torch._tensor._rebuild_from_type_v2");
  out_.op(Op::kMark);
  out_.global(rebuild_function(tensor));
  out_.global("torch.Tensor");
  LOCKSTEP_TRY(tensor_arguments(tensor, tensor.requires_grad));
  LOCKSTEP_TRY(write(*tensor.attributes));
  out_.tuple(4);
  return {};
}

Status ValuePickler::persistent_id(
    const std::shared_ptr<Storage>& storage,
    std::string_view storage_class,
    std::uint64_t numel) {
  const bool is_legacy = options_.ids == StorageIds::kLegacy;
  if (is_legacy && storage_class == kUntyped) {
    return refuse(
        "PyTorch cannot read an untyped storage from the legacy format",
        "write the format 'pt', or convert the tensor to another dtype");
  }
  LOCKSTEP_TRY(check_location(storage->location));
  LOCKSTEP_ASSIGN(const auto key, storage_key(storage, storage_class));
  // Strings of the file the storage came from keep their identity, so that
  // others that were the same object stay so.
  const auto text = [this](const auto& known, std::string_view wanted) {
    if (known != nullptr && *known == wanted) {
      out_.shared_text(*known);
    } else {
      out_.literal(wanted);
    }
  };
  out_.op(Op::kMark);
  text(storage->tag_text, "storage");
  out_.global(storage_class);
  if (is_legacy) {
    out_.fresh_text(*key);
  } else {
    out_.shared_text(*key);
  }
  text(storage->location_text, storage->location);
  out_.integer(static_cast<std::int64_t>(numel));
  if (is_legacy) {
    out_.op(Op::kNone);
  }
  constexpr std::size_t kManyParts = 5;
  out_.tuple(kManyParts);
  out_.op(Op::kBinPersId);
  return {};
}

// A bare storage: an object of a storage class around a tensor that views it.
Status ValuePickler::storage_of(const Object& object) {
  const Tuple* args = object.args->as_tuple();
  const Tensor* tensor = args == nullptr || args->items.size() != 1
                             ? nullptr
                             : args->items[0].as_tensor();
  if (tensor == nullptr || tensor->storage == nullptr) {
    return refuse(format("'{}' without a tensor", escape(object.global)));
  }
  const std::size_t dot = object.global.rfind('.');
  const auto dtype = dtype_by_storage(object.global.substr(dot + 1));
  const std::size_t size = dtype ? dtype_info(*dtype).size : 1;
  if (!dtype && object.global != kUntyped) {
    return refuse(format("unknown storage class '{}'", escape(object.global)));
  }
  return persistent_id(
      tensor->storage,
      object.global,
      tensor->storage->nbytes / size);
}

Result<std::shared_ptr<const std::string>> ValuePickler::storage_key(
    const std::shared_ptr<Storage>& storage,
    std::string_view storage_class) {
  const auto found = known_.find(storage.get());
  if (found == known_.end()) {
    std::string key;
    do {
      key = std::to_string(next_key_++);
    } while (options_.taken_keys.contains(key));
    const bool keeps =
        storage->key_text != nullptr && *storage->key_text == key;
    Known known{
        .storage_class = std::string(storage_class),
        .key = keeps ? storage->key_text
                     : std::make_shared<const std::string>(key)};
    storages_.push_back(storage);
    keys_.push_back(std::move(key));
    const auto dtype = storage_class_dtype(storage_class);
    element_bytes_.push_back(dtype ? dtype_info(*dtype).size : 1);
    return known_.emplace(storage.get(), std::move(known)).first->second.key;
  }
  // Untyped storages count as bytes, so they agree with uint8 ones.
  const auto as_bytes = [](std::string_view name) {
    return name == kUntyped ? std::string_view("torch.ByteStorage") : name;
  };
  if (storage->nbytes != 0 &&
      as_bytes(found->second.storage_class) != as_bytes(storage_class)) {
    return refuse(
        format(
            "Cannot save multiple tensors or storages that view the same data "
            "as different types ({} and {})",
            found->second.storage_class,
            storage_class),
        "clone one of the views");
  }
  return found->second.key;
}

std::string ValuePickler::refusal_hint(const Object& object) {
  if (object.global.ends_with("Namespace")) {
    return "plain_namespaces() writes it as a dict; 'lockstep ckpt drop' "
           "takes "
           "it out";
  }
  if (const auto hint = class_hint(object.global); !hint.empty()) {
    return std::string(hint);
  }
  const bool is_module =
      object.state != nullptr && object.state->find("_modules") != nullptr;
  return is_module
             ? "it is a whole model: 'lockstep ckpt extract-model' writes "
               "its state_dict"
             : "'lockstep ckpt drop' takes it out; or replace it with "
               "plain data";
}

Status ValuePickler::noted(Status status, std::size_t depth) {
  constexpr std::size_t kKept = 8;
  path_.resize(depth);
  if (status || status.error().detail != "E_NOT_SAFE") {
    return status;
  }
  ++refusals_;
  if (refused_.size() < kKept) {
    refused_.push_back(std::move(status).error());
  }
  return {};
}

Status ValuePickler::problems() const {
  if (refused_.empty()) {
    return {};
  }
  Error all = refused_.front();
  for (std::size_t i = 1; i < refused_.size(); ++i) {
    all.message += "; " + refused_[i].message;
  }
  if (refusals_ > refused_.size()) {
    all.message += format("; {} more", refusals_ - refused_.size());
  }
  return all;
}

} // namespace lockstep::ckpt::internal
