// SPDX-License-Identifier: BSD-3-Clause
//
// Note [How a layer is converted]
// A program holds its layers by their own types, so none can take a layer's
// place, and BatchNorm's forward is not virtual. But each call of it ends in
// the operation aten::batch_norm, which LibTorch lets others provide for a
// device. Ours looks at the running mean, or else the weight, which only that
// layer has: if it belongs to a converted layer that trains, the statistics are
// those of all ranks; else LibTorch's own function is called as before.
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <utility>

#include <ATen/ops/batch_norm_native.h>
#include <c10/util/intrusive_ptr.h>
#include <torch/nn/modules/batchnorm.h>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/distributed/ddp/sync_norm.h"
#include "lockstep/distributed/distributed_data_parallel.h"
#include "lockstep/distributed/group/group_impl.h"
#include "lockstep/tensor/internal/batch_norms.h"
#include "lockstep/tensor/internal/replaced_operators.h"

namespace lockstep {
namespace dist::internal {
namespace {

/// A converted layer.
struct SyncLayer {
  /// Keeps the address from being used again, not the tensor.
  c10::weak_intrusive_ptr<c10::TensorImpl> mark;
  /// Empty for one that no shared_ptr owns.
  std::weak_ptr<torch::nn::Module> module = {};
  std::weak_ptr<ProcessGroup::Impl> group = {};
};

/// By the tensor that marks the layer.
class SyncLayers {
 public:
  void add(
      const at::Tensor& mark,
      torch::nn::Module& module,
      const ProcessGroup& group) {
    const std::scoped_lock lock(mutex_);
    std::erase_if(layers_, [](const auto& entry) {
      return entry.second.mark.expired();
    });
    layers_.insert_or_assign(
        mark.unsafeGetTensorImpl(),
        SyncLayer{
            .mark = c10::weak_intrusive_ptr<c10::TensorImpl>(
                mark.getIntrusivePtr()),
            .module = module.weak_from_this(),
            .group = group.impl().weak_from_this()});
  }

  void clear() {
    const std::scoped_lock lock(mutex_);
    layers_.clear();
  }

  [[nodiscard]] std::optional<SyncLayer> find(const at::Tensor& mark) const {
    const std::scoped_lock lock(mutex_);
    const auto found = layers_.find(mark.unsafeGetTensorImpl());
    return found == layers_.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  mutable std::mutex mutex_;
  std::unordered_map<const c10::TensorImpl*, SyncLayer> layers_ = {};
};

// Never destroyed: other threads may be inside BatchNorm at exit.
SyncLayers& sync_layers() {
  // NOLINTNEXTLINE(cppcoreguidelines-owning-memory): lives for ever
  static auto* const layers = new SyncLayers;
  return *layers;
}

/// The tensor by which a call is known to be a layer's.
template <class T>
at::Tensor mark_of(const T& running_mean, const T& weight) {
  const at::Tensor none;
  const auto value = [&](const T& tensor) -> at::Tensor {
    if constexpr (std::is_same_v<T, at::Tensor>) {
      return tensor;
    } else {
      return tensor.value_or(none);
    }
  };
  return value(running_mean).defined() ? value(running_mean) : value(weight);
}

ProcessGroup group_of(const SyncLayer& layer) {
  auto group = layer.group.lock();
  if (group == nullptr) {
    raise(
        {.code = ErrorCode::kInvalidArgument,
         .op = "dist.sync_batch_norm",
         .message = "the process group of this layer has ended",
         .hint = "keep the group that was given to convert_sync_batchnorm",
         .detail = "E_SYNC_BATCH_NORM"});
  }
  return ProcessGroup(std::move(group));
}

using OptionalTensor = std::optional<at::Tensor>;

// NOLINTNEXTLINE(readability-function-size): the operator's parameters
at::Tensor batch_norm(
    const at::Tensor& input,
    const OptionalTensor& weight,
    const OptionalTensor& bias,
    const OptionalTensor& running_mean,
    const OptionalTensor& running_var,
    bool training,
    double momentum,
    double eps,
    bool cudnn_enabled) {
  const at::Tensor mark = mark_of(running_mean, weight);
  const auto layer =
      training && mark.defined() ? sync_layers().find(mark) : std::nullopt;
  const auto module = layer ? layer->module.lock() : nullptr;
  const bool is_evaluated = module != nullptr && !module->is_training();
  if (!layer || is_evaluated) {
    return at::native::batch_norm(
        input,
        weight,
        bias,
        running_mean,
        running_var,
        training,
        momentum,
        eps,
        cudnn_enabled);
  }
  return sync_batch_norm(
      group_of(*layer),
      {.input = input,
       .weight = weight,
       .bias = bias,
       .running_mean = running_mean,
       .running_var = running_var,
       .momentum = momentum,
       .eps = eps});
}

OperatorSwitch sync_operators{
    kSyncBatchNormOperators,
    [](torch::Library& library) { library.impl("batch_norm", &batch_norm); }};

/// What marks `module`; nothing if it is no BatchNorm.
template <class Layer>
std::optional<at::Tensor> mark_as(const torch::nn::Module& module) {
  const auto* layer = dynamic_cast<const Layer*>(&module);
  return layer == nullptr
             ? std::nullopt
             : std::optional(mark_of(layer->running_mean, layer->weight));
}

// A part of an exported program that Python calls a BatchNorm.
std::optional<at::Tensor> mark_as_part(const torch::nn::Module& module) {
  const auto* part = dynamic_cast<const BatchNormPart*>(&module);
  if (part == nullptr || !is_batch_norm(module)) {
    return std::nullopt;
  }
  if (!part->calls_batch_norm()) {
    raise(
        {.code = ErrorCode::kUnsupported,
         .op = "dist.sync_batch_norm",
         .message = "a batch norm of the program is no call of "
                    "aten.batch_norm, whose statistics could be joined",
         .hint = "export the net in training mode, without "
                 "run_decompositions()",
         .detail = "E_SYNC_BATCH_NORM"});
  }
  const auto buffers = module.named_buffers(/*recurse=*/false);
  const auto parameters = module.named_parameters(/*recurse=*/false);
  const at::Tensor* mark = buffers.find("running_mean");
  mark = mark == nullptr ? parameters.find("weight") : mark;
  return mark == nullptr ? at::Tensor() : *mark;
}

std::optional<at::Tensor> mark_of_layer(const torch::nn::Module& module) {
  for (const auto find :
       {&mark_as<torch::nn::BatchNorm1dImpl>,
        &mark_as<torch::nn::BatchNorm2dImpl>,
        &mark_as<torch::nn::BatchNorm3dImpl>,
        &mark_as_part}) {
    if (auto mark = find(module)) {
      return mark;
    }
  }
  return std::nullopt;
}

/// Returns whether it is a BatchNorm.
bool convert_layer(
    torch::nn::Module& module,
    const std::string& name,
    const ProcessGroup& group) {
  const auto mark = mark_of_layer(module);
  if (mark && !mark->defined()) {
    raise(
        {.code = ErrorCode::kUnsupported,
         .op = "dist.sync_batch_norm",
         .message = format(
             "'{}' has neither weights nor running statistics, so nothing "
             "tells its calls from those of others",
             escape(name)),
         .hint = "give it .affine(true) or .track_running_stats(true)",
         .detail = "E_SYNC_BATCH_NORM"});
  }
  if (mark) {
    sync_layers().add(*mark, module, group);
  }
  return mark.has_value();
}

} // namespace

} // namespace dist::internal

std::int64_t count_sync_batchnorms(const torch::nn::Module& module) {
  const auto is_converted = [](const torch::nn::Module& layer) {
    const auto mark = dist::internal::mark_of_layer(layer);
    return mark && mark->defined() &&
           dist::internal::sync_layers().find(*mark).has_value();
  };
  std::int64_t count = is_converted(module) ? 1 : 0;
  for (const auto& child : module.modules(/*include_self=*/false)) {
    count += is_converted(*child) ? 1 : 0;
  }
  return count;
}

std::int64_t convert_sync_batchnorm(
    torch::nn::Module& module,
    const dist::ProcessGroup& group) {
  const dist::ProcessGroup used = dist::group_or_default(group);
  dist::internal::sync_operators.turn_on();
  std::int64_t count = dist::internal::convert_layer(module, "", used) ? 1 : 0;
  for (const auto& child : module.named_modules("", /*include_self=*/false)) {
    count += dist::internal::convert_layer(*child.value(), child.key(), used)
                 ? 1
                 : 0;
  }
  return count;
}

void uninstall_sync_batchnorm() {
  dist::internal::sync_operators.turn_off();
  dist::internal::sync_layers().clear();
}

} // namespace lockstep
