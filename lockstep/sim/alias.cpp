// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/sim/alias.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>

#include <ATen/core/List.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/op_registration/adaption.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/util/SmallVector.h>

#include "lockstep/sim/allocator.h"
#include "lockstep/sim/devices.h"
#include "lockstep/sim/generator.h"
#include "lockstep/sim/guard.h"
#include "lockstep/sim/stream_order.h"

namespace lockstep::sim {
namespace {

using at::Tensor;
using c10::IValue;

// As on CUDA: these take indices that are still on the CPU.
constexpr std::array<std::string_view, 4> kTakesCpuIndices{
    "aten::index",
    "aten::index_put_",
    "aten::_index_put_impl_",
    "aten::_unsafe_index"};

bool is_sim(const Tensor& tensor) {
  return tensor.defined() && tensor.device().is_privateuseone();
}

c10::Storage alias_storage(const c10::Storage& storage) {
  return c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t(),
      storage.nbytes(),
      c10::DataPtr(
          storage.unsafeGetStorageImpl()->mutable_data(),
          c10::Device(c10::DeviceType::CPU)),
      c10::GetCPUAllocator(),
      /*resizable=*/true);
}

// A tensor with the form of `like` over other storage.
Tensor
same_form(const Tensor& like, c10::Storage storage, c10::DispatchKey key) {
  Tensor result = at::detail::make_tensor<c10::TensorImpl>(
      std::move(storage),
      c10::DispatchKeySet(key),
      like.dtype());
  c10::TensorImpl* impl = result.unsafeGetTensorImpl();
  impl->set_sizes_and_strides(
      like.sizes(),
      like.strides(),
      like.storage_offset());
  if (like.dim() == 0 && like.unsafeGetTensorImpl()->is_wrapped_number()) {
    impl->set_wrapped_number(true);
  }
  if (like.is_conj()) {
    impl->_set_conj(true);
  }
  if (like.is_neg()) {
    impl->_set_neg(true);
  }
  return result;
}

void check_dense(const Tensor& tensor) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      tensor.layout() == at::kStrided && tensor.has_storage(),
      "simulated devices have dense tensors only, got ",
      tensor.toString());
}

// One operation on its way through the CPU kernel.
class AliasCall {
 public:
  AliasCall(const c10::OperatorHandle& op, torch::jit::Stack& stack)
      : op_(op), stack_(stack) {}

  void run();

 private:
  // A tensor of a device and its stand-in.
  struct Pair {
    Tensor original = {};
    Tensor alias = {};
  };
  // The same bytes as memory of the device and of the CPU.
  struct Bytes {
    c10::Storage sim = {};
    c10::Storage cpu = {};
  };

  template <class F>
  void for_each_tensor(const IValue& value, F&& visit) const;
  void find_device();
  void check_tensor(const Tensor& tensor, const std::string& argument);
  void check_order(const IValue& value, const c10::Argument& argument) const;
  [[nodiscard]] bool takes_cpu_tensors() const;
  void replace_argument(IValue& value, const c10::Argument& argument);
  Tensor to_alias(const Tensor& tensor);
  void take_over_resized();
  void replace_result(IValue& value);
  Tensor to_sim(const Tensor& result);

  const c10::OperatorHandle& op_;
  torch::jit::Stack& stack_;
  // Of the first tensor that has a say, as LibTorch counts it.
  std::optional<c10::Device> common_ = {};
  std::optional<c10::DeviceIndex> found_ = {};
  c10::DeviceIndex device_ = 0;
  c10::SmallVector<Pair, 8> pairs_ = {};
  c10::SmallVector<Bytes, 8> bytes_ = {};
};

void AliasCall::run() {
  const auto& arguments = op_.schema().arguments();
  const std::size_t first = stack_.size() - arguments.size();
  find_device();
  begin_operation(device_, op_.schema().name().c_str());
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (checks_streams()) {
      check_order(stack_[first + i], arguments[i]);
    }
    replace_argument(stack_[first + i], arguments[i]);
  }
  {
    const KernelsOnly guard;
    op_.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), &stack_);
  }
  take_over_resized();
  const std::size_t results = op_.schema().returns().size();
  for (std::size_t i = stack_.size() - results; i < stack_.size(); ++i) {
    replace_result(stack_[i]);
  }
}

template <class F>
void AliasCall::for_each_tensor(const IValue& value, F&& visit) const {
  if (value.isTensor()) {
    visit(value.toTensor());
  } else if (value.isTensorList()) {
    for (const Tensor& tensor : value.toTensorList()) {
      visit(tensor);
    }
  } else if (value.isOptionalTensorList()) {
    for (const std::optional<Tensor> tensor : value.toOptionalTensorList()) {
      if (tensor) {
        visit(*tensor);
      }
    }
  }
}

bool AliasCall::takes_cpu_tensors() const {
  return std::ranges::find(kTakesCpuIndices, op_.schema().name()) !=
         kTakesCpuIndices.end();
}

void AliasCall::check_tensor(const Tensor& tensor, const std::string& name) {
  if (!tensor.defined() ||
      (tensor.is_cpu() && (tensor.dim() == 0 || takes_cpu_tensors()))) {
    return;
  }
  if (!common_) {
    common_ = tensor.device();
  }
  if (tensor.device() != *common_) {
    const std::string& full = op_.schema().name();
    const std::string method =
        "wrapper_sim_" + full.substr(full.find("::") + 2);
    c10::impl::common_device_check_failure(
        *common_,
        tensor,
        method.c_str(),
        name.c_str());
  }
  if (tensor.device().is_privateuseone()) {
    found_ = tensor.device().index();
  }
}

// What a view is made of is not touched.
void AliasCall::check_order(const IValue& value, const c10::Argument& argument)
    const {
  const c10::AliasInfo* const alias = argument.alias_info();
  if (alias != nullptr && !alias->isWrite()) {
    return;
  }
  for_each_tensor(value, [&](const Tensor& tensor) {
    if (is_sim(tensor)) {
      use_memory(tensor.storage().data(), device_, alias != nullptr);
    }
  });
}

// All tensors must be on one device; without tensors a device argument says
// where the result goes.
void AliasCall::find_device() {
  const auto& arguments = op_.schema().arguments();
  const std::size_t first = stack_.size() - arguments.size();
  std::optional<c10::DeviceIndex> named;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const IValue& value = stack_[first + i];
    if (value.isDevice() && value.toDevice().is_privateuseone()) {
      const c10::Device device = value.toDevice();
      named = device.has_index() ? device.index() : current_device();
    } else {
      for_each_tensor(value, [&](const Tensor& tensor) {
        check_tensor(tensor, arguments[i].name());
      });
    }
  }
  device_ = found_ ? *found_ : named.value_or(current_device());
  check_index(device_);
}

void AliasCall::replace_argument(IValue& value, const c10::Argument& argument) {
  if (value.isTensor()) {
    if (is_sim(value.toTensor())) {
      value = to_alias(value.toTensor());
    }
  } else if (value.isTensorList()) {
    c10::List<Tensor> list;
    for (const Tensor& tensor : value.toTensorList()) {
      list.push_back(is_sim(tensor) ? to_alias(tensor) : tensor);
    }
    value = std::move(list);
  } else if (value.isOptionalTensorList()) {
    c10::List<std::optional<Tensor>> list;
    for (const std::optional<Tensor> tensor : value.toOptionalTensorList()) {
      list.push_back(tensor && is_sim(*tensor) ? to_alias(*tensor) : tensor);
    }
    value = std::move(list);
  } else if (value.isDevice()) {
    value = c10::Device(c10::DeviceType::CPU);
  } else if (value.isGenerator()) {
    value = cpu_generator(value.toGenerator());
  } else if (value.isNone() && argument.name() == "generator") {
    value = cpu_generator(default_generator(device_));
  }
}

Tensor AliasCall::to_alias(const Tensor& tensor) {
  for (const Pair& pair : pairs_) {
    if (pair.original.is_same(tensor)) {
      return pair.alias;
    }
  }
  check_dense(tensor);
  const auto* const known =
      std::ranges::find_if(bytes_, [&](const Bytes& bytes) {
        return bytes.sim.is_alias_of(tensor.storage());
      });
  c10::Storage storage =
      known != bytes_.end() ? known->cpu : alias_storage(tensor.storage());
  if (known == bytes_.end()) {
    bytes_.push_back({.sim = tensor.storage(), .cpu = storage});
  }
  Tensor alias = same_form(tensor, std::move(storage), c10::DispatchKey::CPU);
  pairs_.push_back({.original = tensor, .alias = alias});
  return alias;
}

// A kernel may give an `out` argument another form, and new memory for it.
void AliasCall::take_over_resized() {
  for (Bytes& bytes : bytes_) {
    c10::StorageImpl* sim = bytes.sim.unsafeGetStorageImpl();
    if (bytes.cpu.data() != sim->data()) {
      sim->set_data_ptr_noswap(adopt(bytes.cpu, device_));
      sim->set_nbytes(bytes.cpu.nbytes());
    }
  }
  for (const Pair& pair : pairs_) {
    if (pair.original.sizes() != pair.alias.sizes() ||
        pair.original.strides() != pair.alias.strides()) {
      pair.original.unsafeGetTensorImpl()->set_sizes_and_strides(
          pair.alias.sizes(),
          pair.alias.strides(),
          pair.alias.storage_offset());
    }
  }
}

Tensor AliasCall::to_sim(const Tensor& result) {
  if (!result.defined()) {
    return result;
  }
  for (const Pair& pair : pairs_) {
    if (pair.alias.is_same(result)) {
      return pair.original;
    }
  }
  check_dense(result);
  const auto* const known =
      std::ranges::find_if(bytes_, [&](const Bytes& bytes) {
        return bytes.cpu.is_alias_of(result.storage());
      });
  if (known != bytes_.end()) {
    return same_form(result, known->sim, c10::DispatchKey::PrivateUse1);
  }
  const std::size_t size = result.storage().nbytes();
  const c10::Storage storage = c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t(),
      size,
      adopt(result.storage(), device_),
      &allocator(),
      /*resizable=*/true);
  bytes_.push_back({.sim = storage, .cpu = result.storage()});
  use_memory(storage.data(), device_, true);
  return same_form(result, storage, c10::DispatchKey::PrivateUse1);
}

void AliasCall::replace_result(IValue& value) {
  if (value.isTensor()) {
    value = to_sim(value.toTensor());
  } else if (value.isTensorList()) {
    c10::List<Tensor> list;
    for (const Tensor& tensor : value.toTensorList()) {
      list.push_back(to_sim(tensor));
    }
    value = std::move(list);
  } else {
    // A number: the host waited for it.
    host_waits_for(clock_of(device_guard().getStream(sim_device(device_))));
  }
}

} // namespace

KernelsOnly::KernelsOnly()
    : guard_(
          c10::autograd_dispatch_keyset_with_ADInplaceOrView |
          c10::autocast_dispatch_keyset) {}

Tensor cpu_alias(const Tensor& tensor) {
  if (!is_sim(tensor)) {
    return tensor;
  }
  check_dense(tensor);
  return same_form(
      tensor,
      alias_storage(tensor.storage()),
      c10::DispatchKey::CPU);
}

void alias_kernel(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  AliasCall(op, *stack).run();
}

} // namespace lockstep::sim
