// SPDX-License-Identifier: BSD-3-Clause
#include <unordered_map>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include "lockstep/program/internal/program_data.h"

namespace lockstep::program {
namespace {

at::Tensor fresh(const at::Tensor& tensor, c10::Device device) {
  return device == tensor.device() ? tensor.clone() : tensor.to(device);
}

// All bytes of a storage as a tensor, copied.
at::Tensor copy_of_storage(const c10::Storage& storage, c10::Device device) {
  at::Tensor bytes =
      at::empty({0}, at::TensorOptions(at::kByte).device(storage.device()));
  bytes.set_(storage, 0, {static_cast<std::int64_t>(storage.nbytes())}, {1});
  return fresh(bytes, device);
}

} // namespace

std::vector<at::Tensor> copy_tensors(
    const std::vector<at::Tensor>& tensors,
    const std::optional<c10::Device>& device) {
  const at::NoGradGuard no_grad;
  std::unordered_map<const c10::TensorImpl*, at::Tensor> copies;
  std::unordered_map<const c10::StorageImpl*, std::size_t> users;
  for (const at::Tensor& tensor : tensors) {
    if (tensor.defined() &&
        copies.try_emplace(tensor.unsafeGetTensorImpl()).second) {
      ++users[tensor.storage().unsafeGetStorageImpl()];
    }
  }
  std::unordered_map<const c10::StorageImpl*, at::Tensor> storages;
  std::vector<at::Tensor> result(tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const at::Tensor& tensor = tensors[i];
    if (!tensor.defined()) {
      continue;
    }
    at::Tensor& copy = copies[tensor.unsafeGetTensorImpl()];
    if (!copy.defined()) {
      const c10::Device to = device.value_or(tensor.device());
      const c10::Storage& storage = tensor.storage();
      if (users[storage.unsafeGetStorageImpl()] == 1) {
        copy = fresh(tensor.detach(), to);
      } else {
        at::Tensor& bytes = storages[storage.unsafeGetStorageImpl()];
        bytes = bytes.defined() ? bytes : copy_of_storage(storage, to);
        copy = at::empty({0}, tensor.options().device(to));
        copy.set_(
            bytes.storage(),
            tensor.storage_offset(),
            tensor.sizes(),
            tensor.strides());
      }
      copy.set_requires_grad(tensor.requires_grad());
    }
    result[i] = copy;
  }
  return result;
}

} // namespace lockstep::program
