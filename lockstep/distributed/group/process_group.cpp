// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/distributed/process_group.h"

#include <algorithm>
#include <csignal>
#include <cstring>
#include <optional>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/view_as_complex.h>
#include <torch/csrc/distributed/c10d/Types.hpp>
#include <torch/headeronly/version.h>

#include "lockstep/base/error.h"
#include "lockstep/base/rank_info.h"
#include "lockstep/base/strings.h"
#include "lockstep/base/version.h"
#include "lockstep/distributed/group/group_impl.h"
#include "lockstep/distributed/group/rendezvous.h"
#include "lockstep/launch/error_file.h"
#include "lockstep/tensor/internal/compat.h"

namespace lockstep::dist {
namespace {

ProcessGroup& slot() {
  static ProcessGroup group; // c10d's default group is one for the process, too
  return group;
}

/// A peer that has gone closes its connections: writing to them is to be an
/// error, not the end of this process, which c10d's store leaves to its users
/// (Python ignores the signal). A function instead of SIG_IGN ends with exec.
void outlive_closed_connections() {
  struct sigaction present = {};
  if (::sigaction(SIGPIPE, nullptr, &present) == 0 &&
      present.sa_handler == SIG_DFL) {
    struct sigaction nothing = {};
    nothing.sa_handler = [](int) {};
    nothing.sa_flags = SA_RESTART;
    ::sigaction(SIGPIPE, &nothing, nullptr);
  }
}

// LibTorch 2.11 has no hasBackendForDeviceType.
bool has_cpu_backend(const c10d::ProcessGroup& group) {
  return std::ranges::any_of(group.getDeviceTypes(), [](c10::Device device) {
    return device.is_cpu();
  });
}

/// Gloo adds up the bytes of a bool, also Python's: the sum of two is 2.
void make_true_one(const at::Tensor& tensor) {
  if (tensor.scalar_type() == at::kBool && !tensor.is_sparse()) {
    const at::NoGradGuard no_grad;
    at::Tensor bytes = tensor.view(at::kByte);
    bytes.copy_(bytes.ne(0));
  }
}

at::Tensor bytes_tensor(std::span<const std::byte> bytes, std::int64_t size) {
  at::Tensor tensor = at::empty({size}, at::kByte);
  std::memcpy(tensor.data_ptr(), bytes.data(), bytes.size());
  return tensor;
}

} // namespace

namespace internal {
c10d::ReduceOp to_c10d(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
      return c10d::ReduceOp::SUM;
    case ReduceOp::kProduct:
      return c10d::ReduceOp::PRODUCT;
    case ReduceOp::kMin:
      return c10d::ReduceOp::MIN;
    case ReduceOp::kMax:
      return c10d::ReduceOp::MAX;
  }
  return c10d::ReduceOp::SUM;
}

at::Tensor without_lazy_signs(const at::Tensor& tensor) {
  return tensor.is_sparse() ? tensor : tensor.resolve_conj().resolve_neg();
}

at::Tensor in_order(const at::Tensor& tensor) {
  return without_lazy_signs(tensor).contiguous();
}

std::vector<at::Tensor> contiguous(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> found;
  found.reserve(tensors.size());
  for (const at::Tensor& tensor : tensors) {
    found.push_back(in_order(tensor));
  }
  return found;
}
} // namespace internal

void ProcessGroup::Impl::collective(
    std::string_view name,
    const std::function<void()>& run) {
  const internal::Purpose purpose(recorder.get(), name);
  try {
    run();
  } catch (const Exception&) {
    throw;
  } catch (const std::exception& error) {
    if (const auto mistake = internal::own_mistake(name, error)) {
      raise(*mistake);
    }
    const std::string text = internal::text_of(error);
    raise(
        {.code = internal::is_timeout_text(text) ? ErrorCode::kTimeout
                                                 : ErrorCode::kUnavailable,
         .op = "dist." + std::string(name),
         .message = format(
             "{} of rank {} of {} did not end; {}",
             name,
             group->getRank(),
             group->getSize(),
             text),
         .hint = "another rank has ended, or does something else: see its "
                 "output first",
         .detail = "E_COLLECTIVE"});
  }
}

c10::Device ProcessGroup::Impl::object_device() const {
  const c10::Device cpu(c10::DeviceType::CPU);
  return has_cpu_backend(*group) ? cpu
                                 : group->getBoundDeviceId().value_or(cpu);
}

ProcessGroup ProcessGroup::outside() {
  ProcessGroup group;
  group.is_outside_ = true;
  return group;
}

ProcessGroup::Impl& ProcessGroup::impl() const {
  if (is_outside_) {
    internal::refuse_init(
        "E_SUB_GROUP",
        "this rank is not in the group",
        "new_group gives such ranks no group: only the others use it");
  }
  if (impl_ == nullptr) {
    internal::refuse_init(
        "E_NO_GROUP",
        "Default process group has not been initialized, please make sure to "
        "call init_process_group.");
  }
  return *impl_;
}

int ProcessGroup::rank() const {
  return is_alone() ? 0 : impl().group->getRank();
}

int ProcessGroup::size() const {
  return is_alone() ? 1 : impl().group->getSize();
}

RankInfo ProcessGroup::place() const {
  if (is_alone()) {
    return {};
  }
  const auto told = job_rank();
  if (told && told->size == size() && told->rank == rank()) {
    return *told;
  }
  return {
      .rank = rank(),
      .size = size(),
      .local_rank = rank(),
      .local_size = 0};
}

std::string ProcessGroup::backend() const {
  return is_alone() ? "" : impl().backend;
}

void ProcessGroup::all_reduce(at::Tensor& tensor, ReduceOp op) const {
  if (is_alone()) {
    return;
  }
  impl().collective("all_reduce", [&] {
    internal::Replaced replaced(tensor, impl().has_python_ranks);
    std::vector<at::Tensor> tensors = replaced.list();
    c10d::AllreduceOptions options;
    options.reduceOp = internal::to_c10d(op);
    impl().group->allreduce(tensors, options)->wait();
    make_true_one(tensors.front());
    replaced.write_back();
  });
}

void ProcessGroup::broadcast(at::Tensor& tensor, int src) const {
  internal::check_peer("broadcast", src, size());
  if (is_alone()) {
    return;
  }
  impl().collective("broadcast", [&] {
    internal::Replaced replaced(tensor, impl().has_python_ranks);
    std::vector<at::Tensor> tensors = replaced.list();
    c10d::BroadcastOptions options;
    options.rootRank = src;
    impl().group->broadcast(tensors, options)->wait();
    replaced.write_back();
  });
}

std::vector<at::Tensor> ProcessGroup::all_gather(
    const at::Tensor& tensor) const {
  if (is_alone()) {
    return {internal::in_order(tensor).clone()};
  }
  std::vector<std::vector<at::Tensor>> outputs(1);
  for (int i = 0; i < size(); ++i) {
    outputs.front().push_back(
        at::empty_like(tensor, at::MemoryFormat::Contiguous));
  }
  impl().collective("all_gather", [&] {
    std::vector<at::Tensor> inputs{internal::in_order(tensor)};
    impl().group->allgather(outputs, inputs)->wait();
  });
  return std::move(outputs.front());
}

at::Tensor ProcessGroup::reduce_scatter(
    const std::vector<at::Tensor>& inputs) const {
  if (inputs.size() != static_cast<std::size_t>(size())) {
    raise(
        {.code = ErrorCode::kInvalidArgument,
         .op = "dist.reduce_scatter",
         .message = format(
             "expected a tensor for each of {} ranks, got {}",
             size(),
             inputs.size()),
         .detail = "E_COLLECTIVE_ARGUMENT"});
  }
  if (is_alone()) {
    return internal::in_order(inputs.front()).clone();
  }
  std::vector<at::Tensor> outputs{at::empty_like(
      inputs[static_cast<std::size_t>(rank())],
      at::MemoryFormat::Contiguous)};
  impl().collective("reduce_scatter", [&] {
    std::vector<std::vector<at::Tensor>> lists{internal::contiguous(inputs)};
    impl().group->reduce_scatter(outputs, lists)->wait();
    make_true_one(outputs.front());
  });
  return outputs.front();
}

std::vector<std::vector<std::byte>> ProcessGroup::all_gather_bytes(
    std::span<const std::byte> bytes) const {
  const auto own_size = static_cast<std::int64_t>(bytes.size());
  const c10::Device device = internal::object_device(*this);
  std::vector<std::int64_t> sizes;
  for (const at::Tensor& size : all_gather(at::scalar_tensor(
           own_size,
           at::TensorOptions(device).dtype(at::kLong)))) {
    sizes.push_back(size.item<std::int64_t>());
  }
  const std::int64_t longest = *std::ranges::max_element(sizes);
  const auto tensors = all_gather(bytes_tensor(bytes, longest).to(device));
  std::vector<std::vector<std::byte>> parts;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const at::Tensor part = tensors[i].cpu();
    const auto* const data =
        static_cast<const std::byte*>(part.const_data_ptr());
    parts.emplace_back(data, data + sizes[i]);
  }
  return parts;
}

void ProcessGroup::barrier() const {
  if (is_alone()) {
    return;
  }
  c10d::BarrierOptions options;
  options.device = impl().object_device();
  if (options.device->is_cuda()) {
    options.device_ids = {options.device->index()};
  }
  impl().collective("barrier", [&] { impl().group->barrier(options)->wait(); });
}

at::Tensor ProcessGroup::allocate_tensor(
    std::int64_t numel,
    at::ScalarType dtype) const {
  if (c10::isComplexType(dtype)) {
    return at::view_as_complex(
        allocate_tensor(2 * numel, c10::toRealValueType(dtype))
            .view({numel, 2}));
  }
  const at::TensorOptions options(dtype);
  if (is_alone() || !has_cpu_backend(*impl().group)) {
    return at::empty({numel}, options);
  }
  c10d::ProcessGroup& group = *impl().group;
  const auto backend = group.getBackend(c10::DeviceType::CPU);
  return backend->supportsTensorAlloc(options.device().index())
             ? backend->allocateTensor(numel, options)
             : at::empty({numel}, options);
}

ProcessGroup init_process_group(const InitOptions& options) {
  check_torch_version();
  launch::install_error_file();
  outlive_closed_connections();
  if (slot()) {
    internal::refuse_init(
        "E_NO_GROUP",
        "trying to initialize the default process group twice!",
        "destroy_process_group() first");
  }
  const internal::Rendezvous place = internal::rendezvous(options);
  ProcessGroup group =
      internal::make_group(place.store, place.rank, place.size, options);
  if (place.size > 1) {
    ProcessGroup::Impl& impl = group.impl();
    impl.watch = std::make_unique<internal::HangWatch>(impl.recorder);
  }
  slot() = group;
  set_default_group(RankInfo{.rank = place.rank, .size = place.size});
  return group;
}

ProcessGroup job_group() {
  if (is_initialized()) {
    return slot().size() > 1 ? slot() : ProcessGroup();
  }
  return rank_info_from_environment().value().size > 1 ? init_process_group()
                                                       : ProcessGroup();
}

ProcessGroup default_group() {
  static_cast<void>(slot().impl()); // throws without one
  return slot();
}

ProcessGroup group_or_default(ProcessGroup group) {
  if (group.is_alone()) {
    return default_group();
  }
  static_cast<void>(group.impl()); // throws if this rank is not in it
  return group;
}

bool is_initialized() {
  return static_cast<bool>(slot());
}

void destroy_process_group() {
  static_cast<void>(slot().impl());
  slot() = ProcessGroup();
  set_default_group(std::nullopt);
}

int get_rank() {
  return default_group().rank();
}

int get_world_size() {
  return default_group().size();
}

void all_reduce(at::Tensor& tensor, ReduceOp op) {
  default_group().all_reduce(tensor, op);
}

void broadcast(at::Tensor& tensor, int src) {
  default_group().broadcast(tensor, src);
}

std::vector<at::Tensor> all_gather(const at::Tensor& tensor) {
  return default_group().all_gather(tensor);
}

void barrier() {
  default_group().barrier();
}

} // namespace lockstep::dist
