// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/kernels/internal/batch_norm.h"

#include <tuple>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/_batch_norm_impl_index_native.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/native_batch_norm_backward.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>
#include <ATen/record_function.h>
#include <torch/csrc/autograd/custom_function.h>

#include "lockstep/kernels/internal/cpu_norm.h"
#include "lockstep/kernels/internal/gpu_norm.h"
#include "lockstep/tensor/norm_relu.h"

namespace lockstep::kernels {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// How profilers see that it was ours.
constexpr const char* kNormName = "lockstep::batch_norm";

/// A call of a layer.
struct Call {
  Tensor x = {};
  NormLayer layer = {};
  bool is_training = false;
  /// Undefined: none.
  Tensor addend = {};
  bool has_relu = false;
};

bool is_parameter(
    const Tensor& tensor,
    std::int64_t channels,
    c10::Device device) {
  return !tensor.defined() ||
         (tensor.device() == device && tensor.scalar_type() == at::kFloat &&
          tensor.dim() == 1 && tensor.size(0) == channels &&
          tensor.is_contiguous() && !tensor._fw_grad(0).defined());
}

bool is_addend(const Call& call) {
  return !call.addend.defined() ||
         (call.addend.device() == call.x.device() &&
          call.addend.layout() == at::kStrided &&
          call.addend.scalar_type() == call.x.scalar_type() &&
          call.addend.sizes() == call.x.sizes() &&
          !call.addend._fw_grad(0).defined());
}

// The way through the batch's statistics is ours, and without gradients also
// that through the running ones.
bool has_our_algorithm(const Call& call) {
  const NormLayer& layer = call.layer;
  if (call.is_training) {
    return call.x.numel() > call.x.size(1); // more than one number a channel
  }
  return layer.running_mean.defined() && layer.running_var.defined() &&
         !(at::GradMode::is_enabled() &&
           (call.x.requires_grad() ||
            (layer.weight.defined() && layer.weight.requires_grad()) ||
            (layer.bias.defined() && layer.bias.requires_grad()) ||
            (call.addend.defined() && call.addend.requires_grad())));
}

// Null where there is none.
const NormAlgorithm* algorithm_of(const Tensor& x) {
  return x.is_cpu() ? &cpu_norm() : x.is_cuda() ? &gpu_norm() : nullptr;
}

// Null: LibTorch's.
const NormAlgorithm* algorithm_for(const Call& call) {
  const Tensor& x = call.x;
  const NormAlgorithm* const algorithm = algorithm_of(x);
  if (algorithm == nullptr || x._fw_grad(0).defined() || x.dim() < 2 ||
      !algorithm->takes(x) || !has_our_algorithm(call) || !is_addend(call)) {
    return nullptr;
  }
  const NormLayer& layer = call.layer;
  for (const Tensor& parameter :
       {layer.weight, layer.bias, layer.running_mean, layer.running_var}) {
    if (!is_parameter(parameter, x.size(1), x.device())) {
      return nullptr;
    }
  }
  return layer.running_mean.defined() == layer.running_var.defined() ? algorithm
                                                                     : nullptr;
}

Tensor in_layout_of(const Tensor& x, const Tensor& other) {
  return other.defined() ? other.contiguous(x.suggest_memory_format()) : other;
}

// Of the C channels of `x`, to be combined with its numbers.
Tensor along_channels(const Tensor& x, const Tensor& values) {
  std::vector<std::int64_t> sizes(x.dim(), 1);
  sizes[1] = x.size(1);
  return values.view(sizes);
}

// The same gradients out of LibTorch's operations, which have gradients
// themselves.
NormGradients gradients_with_gradients(
    const NormGradientInputs& of,
    double eps) {
  Tensor grad = of.grad;
  if (of.has_relu) {
    const Tensor before =
        of.output.defined()
            ? of.output
            : of.x * along_channels(of.x, of.parameters.scale()) +
                  along_channels(of.x, of.parameters.shift());
    grad = at::where(before.detach() <= 0, at::zeros_like(grad), grad);
  }
  const auto [of_input, of_weight, of_bias] = at::native_batch_norm_backward(
      grad,
      of.x,
      of.weight,
      {},
      {},
      of.parameters.mean(),
      of.parameters.invstd(),
      /*train=*/true,
      eps,
      {true, of.weight.defined(), true});
  return {
      .of_input = of_input,
      .of_weight = of_weight,
      .of_bias = of_bias,
      .of_addend = grad};
}

class BatchNormNode : public torch::autograd::Function<BatchNormNode> {
 public:
  // The first four are the tensors of `call` that have gradients; the last is
  // filled.
  // NOLINTNEXTLINE(readability-function-size): what autograd must see
  static Tensor forward(
      AutogradContext* context,
      const Tensor& x,
      const std::optional<Tensor>& weight,
      const std::optional<Tensor>& bias,
      const std::optional<Tensor>& addend,
      const Call* call,
      const NormAlgorithm* algorithm,
      ChannelParameters* found) {
    const NormLayer& layer = call->layer;
    const Tensor addend_there = in_layout_of(x, call->addend);
    const auto [output, parameters] =
        call->is_training
            ? algorithm->by_batch(x, layer, addend_there, call->has_relu)
            : algorithm->by_running(x, layer, addend_there, call->has_relu);
    *found = parameters;
    context->save_for_backward(
        {x, layer.weight, addend ? output : Tensor(), parameters.rows});
    context->saved_data["has_weight"] = weight.has_value();
    context->saved_data["has_bias"] = bias.has_value();
    context->saved_data["has_relu"] = call->has_relu;
    context->saved_data["eps"] = layer.eps;
    return output;
  }

  static variable_list backward(
      AutogradContext* context,
      const variable_list& grads) {
    RECORD_FUNCTION(kNormName, c10::ArrayRef<const c10::IValue>());
    const variable_list saved = context->get_saved_variables();
    const NormGradientInputs inputs{
        .grad = in_layout_of(saved[0], grads[0]),
        .x = saved[0],
        .weight = saved[1],
        .output = saved[2],
        .parameters = {.rows = saved[3]},
        .has_relu = context->saved_data["has_relu"].toBool()};
    NormGradients found = at::GradMode::is_enabled()
                              ? gradients_with_gradients(
                                    inputs,
                                    context->saved_data["eps"].toDouble())
                              : algorithm_of(inputs.x)->gradients(
                                    inputs,
                                    context->needs_input_grad(0));
    // Not for tensors that were not there.
    const auto if_set = [&](const char* flag, const Tensor& gradient) {
      return context->saved_data[flag].toBool() ? gradient : Tensor();
    };
    return {
        found.of_input,
        if_set("has_weight", found.of_weight),
        if_set("has_bias", found.of_bias),
        inputs.output.defined() ? found.of_addend : Tensor(),
        {},
        {},
        {}};
  }
};

using Results = std::tuple<Tensor, Tensor, Tensor, Tensor, std::int64_t>;

// TorchScript differentiates the operator itself: its backward gives what
// stands behind the output to LibTorch's _batch_norm_impl_index_backward, which
// reads mean and invstd in training.
Results
results_of(const Call& call, Tensor output, const ChannelParameters& found) {
  const auto options = call.x.options();
  const auto none = [&] { return at::empty({0}, options.dtype(at::kFloat)); };
  return {
      std::move(output),
      call.is_training ? found.mean() : none(),
      call.is_training ? found.invstd() : none(),
      at::empty({0}, options.dtype(at::kByte)),
      0};
}

// NOLINTNEXTLINE(readability-function-size): LibTorch's schema
Results batch_norm_impl_index(
    const Tensor& input,
    const std::optional<Tensor>& weight,
    const std::optional<Tensor>& bias,
    const std::optional<Tensor>& running_mean,
    const std::optional<Tensor>& running_var,
    bool training,
    double momentum,
    double eps,
    bool cudnn_enabled) {
  NormEpilogue* const then = NormEpilogue::take();
  const auto libtorch_kernel = [&] {
    return at::native::_batch_norm_impl_index(
        input,
        weight,
        bias,
        running_mean,
        running_var,
        training,
        momentum,
        eps,
        cudnn_enabled);
  };
  const Call call{
      .x = input,
      .layer =
          {.weight = weight.value_or(Tensor()),
           .bias = bias.value_or(Tensor()),
           .running_mean = running_mean.value_or(Tensor()),
           .running_var = running_var.value_or(Tensor()),
           .momentum = momentum,
           .eps = eps},
      .is_training = training,
      .addend = then == nullptr ? Tensor() : then->addend(),
      .has_relu = then != nullptr};
  const NormAlgorithm* const algorithm = algorithm_for(call);
  if (algorithm == nullptr) {
    return libtorch_kernel();
  }
  const auto if_defined = [](const Tensor& tensor) {
    return tensor.defined() ? std::optional(tensor) : std::nullopt;
  };
  RECORD_FUNCTION(kNormName, c10::ArrayRef<const c10::IValue>());
  ChannelParameters found;
  Tensor output = BatchNormNode::apply(
      call.x,
      if_defined(call.layer.weight),
      if_defined(call.layer.bias),
      if_defined(call.addend),
      &call,
      algorithm,
      &found);
  if (then != nullptr) {
    then->set_done();
  }
  return results_of(call, std::move(output), found);
}

} // namespace

void add_batch_norms(torch::Library& library) {
  library.impl("_batch_norm_impl_index", &batch_norm_impl_index);
}

} // namespace lockstep::kernels
