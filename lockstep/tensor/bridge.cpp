// SPDX-License-Identifier: BSD-3-Clause
#include <unordered_map>

#include <ATen/ops/empty.h>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/ckpt/tensor.h"
#include "lockstep/tensor/checkpoint.h"
#include "lockstep/tensor/internal/dtype_map.h"
#include "lockstep/tensor/internal/storage_bridge.h"
#include "lockstep/tensor/state_dict.h"

namespace lockstep {
namespace {

[[noreturn]] void unsupported(std::string_view op, std::string message) {
  raise(
      {.code = ErrorCode::kUnsupported,
       .op = std::string(op),
       .message = std::move(message)});
}

// All bytes of a storage of any device, as a CPU storage.
c10::Storage on_cpu(const at::Tensor& tensor) {
  const c10::Storage& storage = tensor.storage();
  if (tensor.device().is_cpu()) {
    return storage;
  }
  const at::Tensor bytes =
      at::empty({0}, tensor.options().dtype(at::kByte))
          .set_(storage, 0, {static_cast<std::int64_t>(storage.nbytes())}, {1});
  return bytes.cpu().storage();
}

void check_bounds(const ckpt::Tensor& tensor) {
  if (!ckpt::check_view(tensor)) {
    raise(
        {.code = ErrorCode::kCorrupt,
         .op = "tensor.read",
         .message = format(
             "a tensor reaches outside its storage '{}' of {} bytes",
             escape(tensor.storage->key),
             tensor.storage->nbytes)});
  }
}

} // namespace

struct ValueBuilder::Impl {
  struct Known {
    c10::Storage live = {}; // keeps the address from being used again
    std::shared_ptr<ckpt::Storage> file = {};
  };
  std::unordered_map<const c10::StorageImpl*, Known> storages = {};
};

ValueBuilder::ValueBuilder() : impl_(std::make_unique<Impl>()) {}
ValueBuilder::~ValueBuilder() = default;

ckpt::Value ValueBuilder::tensor(const at::Tensor& tensor) {
  const auto dtype = tensor.defined() && tensor.layout() == at::kStrided
                         ? to_dtype(tensor.scalar_type())
                         : std::nullopt;
  if (!dtype || tensor.is_meta()) {
    unsupported(
        "tensor.to_value",
        "expected a dense tensor of a plain dtype, got " +
            (tensor.defined() ? tensor.toString() : "an undefined tensor"));
  }
  auto& known = impl_->storages[tensor.storage().unsafeGetStorageImpl()];
  if (!known.file) {
    known.live = tensor.storage();
    known.file = to_file_storage(on_cpu(tensor), *dtype);
  }
  return ckpt::Tensor{
      .dtype = *dtype,
      .sizes = tensor.sizes().vec(),
      .strides = tensor.strides().vec(),
      .offset = tensor.storage_offset(),
      .storage = known.file,
      .is_conj = tensor.is_conj(),
      .is_neg = tensor.is_neg()};
}

ckpt::Value ValueBuilder::state_dict(const StateDict& weights) {
  ckpt::Dict dict{.kind = ckpt::Dict::Kind::kOrderedDict};
  for (const auto& [key, value] : weights.entries) {
    dict.items.emplace_back(key, tensor(value));
  }
  if (!weights.versions.empty()) {
    ckpt::Dict metadata{.kind = ckpt::Dict::Kind::kOrderedDict};
    for (const auto& [path, version] : weights.versions) {
      metadata.items.emplace_back(
          path,
          ckpt::Value::dict({{"version", version}}));
    }
    dict.attributes.emplace_back("_metadata", std::move(metadata));
  }
  return dict;
}

ckpt::Value to_value(const at::Tensor& tensor) {
  return ValueBuilder().tensor(tensor);
}

ckpt::Value to_value(const StateDict& weights) {
  return ValueBuilder().state_dict(weights);
}

struct TensorReader::Impl {
  struct Known {
    std::shared_ptr<ckpt::Storage> file = {};
    c10::Storage live = {};
  };
  std::unordered_map<const ckpt::Storage*, Known> storages = {};

  const c10::Storage& storage(const std::shared_ptr<ckpt::Storage>& file) {
    Known& known = storages[file.get()];
    if (!known.file) {
      known.live = on_device(to_torch_storage(*file), file->location);
      known.file = file;
    }
    return known.live;
  }

  static c10::Storage on_device(
      c10::Storage storage,
      const std::string& location) {
    const c10::Device device = location_device(location);
    if (device.is_cpu()) {
      return storage;
    }
    const auto size = static_cast<std::int64_t>(storage.nbytes());
    return at::empty({0}, at::kByte)
        .set_(std::move(storage), 0, {size}, {1})
        .to(device)
        .storage();
  }
};

TensorReader::TensorReader() : impl_(std::make_unique<Impl>()) {}
TensorReader::~TensorReader() = default;

at::Tensor TensorReader::tensor(const ckpt::Tensor& tensor) {
  const auto type = to_scalar_type(tensor.dtype);
  if (!type || !tensor.storage) {
    unsupported(
        "tensor.read",
        format(
            "LibTorch has no plain tensors of dtype {}",
            ckpt::dtype_info(tensor.dtype).name));
  }
  check_bounds(tensor);
  const c10::Storage& storage = impl_->storage(tensor.storage);
  at::Tensor out =
      at::empty({0}, at::TensorOptions(storage.device()).dtype(type));
  out.set_(storage, tensor.offset, tensor.sizes, tensor.strides);
  if (tensor.is_conj) {
    out._set_conj(true);
  }
  if (tensor.is_neg) {
    out._set_neg(true);
  }
  return out.set_requires_grad(tensor.requires_grad);
}

std::optional<double> number_in(const ckpt::Value& value) {
  const ckpt::Tensor* tensor = value.as_tensor();
  if (tensor == nullptr || tensor->numel() != 1) {
    const auto number = value.number();
    return number ? std::optional(*number) : std::nullopt;
  }
  const at::Tensor number = to_tensor(*tensor);
  return number.is_complex() ? std::nullopt
                             : std::optional(number.item().toDouble());
}

at::Tensor to_tensor(const ckpt::Tensor& tensor) {
  return TensorReader().tensor(tensor);
}

} // namespace lockstep
