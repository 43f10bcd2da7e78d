// SPDX-License-Identifier: BSD-3-Clause
//
// The operations that cannot run on aliases, since they make memory, move it
// between devices, or look at the device itself.
#include "lockstep/sim/kernels.h"

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include <ATen/EmptyTensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/view_native.h>
#include <ATen/ops/zeros.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <torch/library.h>

#include "lockstep/sim/alias.h"
#include "lockstep/sim/allocator.h"
#include "lockstep/sim/devices.h"
#include "lockstep/sim/guard.h"
#include "lockstep/sim/stream_order.h"

namespace lockstep::sim {
namespace {

using at::IntArrayRef;
using at::Tensor;
using c10::ScalarType;

constexpr c10::DispatchKeySet kKeys{c10::DispatchKey::PrivateUse1};

c10::DeviceIndex index_of(std::optional<c10::Device> device) {
  const c10::DeviceIndex index =
      device && device->has_index() ? device->index() : current_device();
  check_index(index);
  return index;
}

void check_plain(
    std::optional<c10::Layout> layout,
    std::optional<bool> pin_memory) {
  TORCH_CHECK(
      !pin_memory.value_or(false),
      "Only dense CPU tensors can be pinned");
  TORCH_CHECK_NOT_IMPLEMENTED(
      layout.value_or(at::kStrided) == at::kStrided,
      "simulated devices have dense tensors only");
}

ScalarType type_of(std::optional<ScalarType> dtype) {
  return dtype.value_or(c10::get_default_dtype_as_scalartype());
}

Tensor empty(
    IntArrayRef size,
    std::optional<ScalarType> dtype,
    std::optional<c10::Layout> layout,
    std::optional<c10::Device> device,
    std::optional<bool> pin_memory,
    std::optional<c10::MemoryFormat> format) {
  check_plain(layout, pin_memory);
  const OnDevice here(index_of(device));
  return at::detail::empty_generic(
      size,
      &allocator(),
      kKeys,
      type_of(dtype),
      format);
}

Tensor empty_strided(
    IntArrayRef size,
    IntArrayRef stride,
    std::optional<ScalarType> dtype,
    std::optional<c10::Layout> layout,
    std::optional<c10::Device> device,
    std::optional<bool> pin_memory) {
  check_plain(layout, pin_memory);
  const OnDevice here(index_of(device));
  return at::detail::empty_strided_generic(
      size,
      stride,
      &allocator(),
      kKeys,
      type_of(dtype));
}

const Tensor& resize(
    const Tensor& self,
    IntArrayRef size,
    std::optional<c10::MemoryFormat> format) {
  const OnDevice here(self.device().index());
  c10::TensorImpl* impl = self.unsafeGetTensorImpl();
  at::native::resize_impl_cpu_(impl, size, /*stride=*/std::nullopt);
  if (format) {
    impl->empty_tensor_restride(*format);
  }
  // NOLINTNEXTLINE(bugprone-return-const-ref-from-parameter): as LibTorch's
  return self;
}

Tensor& set_nothing(Tensor& self) {
  const OnDevice here(self.device().index());
  const c10::Storage none = c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t(),
      0,
      allocator().allocate(0),
      &allocator(),
      /*resizable=*/true);
  return at::native::set_storage_cpu_(self, none, 0, {0}, {});
}

Tensor& set_storage(
    Tensor& self,
    c10::Storage storage,
    std::int64_t offset,
    IntArrayRef size,
    IntArrayRef stride) {
  const OnDevice here(self.device().index());
  return at::native::set_storage_cpu_(
      self,
      std::move(storage),
      offset,
      size,
      stride);
}

// Between two devices their streams wait for each other; to the CPU the host
// waits, unless it says otherwise.
void order_copy(const Tensor& from, const Tensor& to, bool non_blocking) {
  const auto meet_again = [&] {
    if (from.is_privateuseone() && to.is_privateuseone()) {
      meet(from.device().index(), to.device().index());
    }
  };
  meet_again();
  if (from.is_privateuseone()) {
    use_memory(from.storage().data(), from.device().index(), false);
  }
  if (to.is_privateuseone()) {
    use_memory(to.storage().data(), to.device().index(), true);
  } else if (!non_blocking) {
    host_waits_for(clock_of(device_guard().getStream(from.device())));
  }
  meet_again();
}

// All copies that have a simulated device on at least one side.
Tensor copy_from(const Tensor& self, const Tensor& target, bool non_blocking) {
  const bool is_crossing = self.device() != target.device();
  for (const Tensor& side : {self, target}) {
    if (side.is_privateuseone() && (is_crossing || side.is_same(target))) {
      begin_operation(side.device().index(), "aten::copy_");
    }
  }
  order_copy(self, target, non_blocking);
  {
    const KernelsOnly guard;
    Tensor to = cpu_alias(target);
    to.copy_(cpu_alias(self));
  }
  if (is_crossing) {
    charge_copy(self.device(), target.device(), self.nbytes());
  }
  return target;
}

Tensor copy_from_and_resize(const Tensor& self, const Tensor& target) {
  target.resize_(self.sizes());
  return copy_from(self, target, false);
}

// set_data() and Module::to(): a tensor may move between the CPU and a device.
bool has_compatible_type(const Tensor& self, const Tensor& from) {
  const auto is_plain = [](const Tensor& tensor) {
    return tensor.layout() == at::kStrided &&
           (tensor.is_cpu() || tensor.is_privateuseone());
  };
  return is_plain(self) && is_plain(from);
}

void record_stream(Tensor& self, c10::Stream stream) {
  keep_for_stream(self.storage().data(), stream);
}

// LibTorch multiplies by a mask and a scale on devices, by scaled noise on the
// CPU; the last bit differs for some rates. Here it is the CPU's way.
Tensor dropout(const Tensor& input, double p, bool train) {
  TORCH_CHECK(
      p >= 0 && p <= 1,
      "dropout probability has to be between 0 and 1, but got ",
      p);
  if (p == 0 || !train || input.sym_numel() == 0) {
    return input;
  }
  if (p == 1) {
    return input.mul(at::zeros({}, input.options()));
  }
  Tensor noise = at::empty_like(input).bernoulli_(1 - p);
  noise.div_(1 - p);
  return input.mul(noise);
}

std::tuple<Tensor, Tensor>
native_dropout(const Tensor& input, double p, std::optional<bool> train) {
  const auto mask_options = input.options().dtype(at::kBool);
  if (!train.value_or(true) || input.numel() == 0) {
    return {input.clone(), at::ones_like(input, mask_options)};
  }
  const double kept = 1 - p;
  Tensor mask = at::empty_like(input, mask_options).bernoulli_(kept);
  const double scale = kept == 0 ? 0 : 1 / kept;
  Tensor output = input.mul(mask).mul_(scale);
  return {std::move(output), std::move(mask)};
}

// LibTorch's generic code for these picks a backend by the device (convolution)
// or calls the `out` form in a way that warns (losses): the alias kernel goes
// straight to the CPU's.
constexpr std::array kOnAliases{
    "convolution",
    "convolution_backward",
    "_convolution",
    "convolution_overrideable",
    "convolution_backward_overrideable",
    "mse_loss",
    "smooth_l1_loss"};

torch::CppFunction on_aliases() {
  return torch::CppFunction::makeFromBoxedFunction<&alias_kernel>();
}

// Operations that have a kernel for the CPU and one for any device, such as
// layer norm: LibTorch would take the latter, which rounds in other places.
void register_cpu_kernels(torch::Library& library) {
  using Key = c10::DispatchKey;
  constexpr std::string_view kSpace = "aten::";
  auto& dispatcher = c10::Dispatcher::singleton();
  for (const c10::OperatorName& name :
       dispatcher.getAllOpNamesForDispatchKey(Key::CPU)) {
    const auto op = dispatcher.findOp(name);
    if (op && name.name.starts_with(kSpace) &&
        op->hasKernelForDispatchKey(Key::CompositeExplicitAutograd) &&
        !op->hasKernelForDispatchKey(Key::PrivateUse1)) {
      const std::string full = c10::toString(name);
      library.impl(full.c_str() + kSpace.size(), on_aliases());
    }
  }
}

// LibTorch's zeros without memory; here they have some.
Tensor zero_tensor(
    IntArrayRef size,
    std::optional<ScalarType> dtype,
    std::optional<c10::Layout> layout,
    std::optional<c10::Device> device,
    std::optional<bool> pin_memory) {
  return empty(size, dtype, layout, device, pin_memory, std::nullopt).zero_();
}

void register_own(torch::Library& library) {
  library.impl("empty.memory_format", &empty);
  library.impl("empty_strided", &empty_strided);
  library.impl("resize_", &resize);
  library.impl("set_", &set_nothing);
  library.impl("set_.source_Tensor", &at::native::set_tensor_);
  library.impl("set_.source_Storage", TORCH_FN(at::native::set_));
  library.impl("set_.source_Storage_storage_offset", &set_storage);
  library.impl("view", TORCH_FN(at::native::view));
  library.impl("as_strided", TORCH_FN(at::native::as_strided_tensorimpl));
  library.impl("_copy_from", &copy_from);
  library.impl("_copy_from_and_resize", &copy_from_and_resize);
  library.impl("_has_compatible_shallow_copy_type", &has_compatible_type);
  library.impl("_efficientzerotensor", &zero_tensor);
  library.impl("record_stream", &record_stream);
  library.impl("dropout", &dropout);
  library.impl("native_dropout", &native_dropout);
  for (const char* name : kOnAliases) {
    library.impl(name, on_aliases());
  }
}

// Libraries live for ever: other threads may be inside a kernel at exit.
torch::Library& library_for(const char* space, c10::DispatchKey key) {
  return *std::make_unique<torch::Library>(
              torch::Library::IMPL,
              space,
              key,
              __FILE__,
              __LINE__)
              .release();
}

} // namespace

void register_kernels() {
  library_for("_", c10::DispatchKey::PrivateUse1).fallback(on_aliases());
  auto& library = library_for("aten", c10::DispatchKey::PrivateUse1);
  register_own(library);
  register_recurrent(library);
  register_cpu_kernels(library);
  // The copy itself honours these bits; LibTorch's fallback would resolve them
  // by a copy, for ever.
  for (const auto key :
       {c10::DispatchKey::Conjugate, c10::DispatchKey::Negative}) {
    library_for("aten", key)
        .impl("_copy_from", torch::CppFunction::makeFallthrough());
  }
  // Differentiated through its parts, as on the CPU.
  auto& autograd = library_for("aten", c10::DispatchKey::AutogradPrivateUse1);
  autograd.impl("dropout", &dropout);
  register_recurrent(autograd);
}

} // namespace lockstep::sim
