// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/dist/internal/sync_norm.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <vector>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/native_batch_norm.h>
#include <ATen/ops/var_mean.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/custom_function.h>

namespace lockstep::dist::internal {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Of all ranks. Shape: [channels], in double precision.
struct Statistics {
  at::Tensor mean = {};
  at::Tensor variance = {}; // biased
  double count = 0; // values for each channel
};

struct GroupHolder : torch::CustomClassHolder {
  explicit GroupHolder(ProcessGroup given) : group(std::move(given)) {}
  ProcessGroup group;
};

/// All dimensions but the channels'.
std::vector<std::int64_t> reduced_dims(const at::Tensor& input) {
  std::vector<std::int64_t> dims{0};
  for (std::int64_t dim = 2; dim < input.dim(); ++dim) {
    dims.push_back(dim);
  }
  return dims;
}

/// A number for each channel, to be used with `input`.
at::Tensor beside(const at::Tensor& channels, const at::Tensor& input) {
  std::vector<std::int64_t> shape(static_cast<std::size_t>(input.dim()), 1);
  shape[1] = channels.numel();
  return channels.view(shape);
}

/// At least float.
at::Tensor widened(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kDouble ? tensor : tensor.to(at::kFloat);
}

// Means of ranks are joined by their counts, and not sums of squares, which
// lose digits. In the order of the ranks: the same bits on all.
Statistics statistics_of(const ProcessGroup& group, const at::Tensor& input) {
  const std::int64_t channels = input.size(1);
  const std::int64_t count = channels == 0 ? 0 : input.numel() / channels;
  const auto doubles = input.options().dtype(at::kDouble);
  at::Tensor own = at::zeros({2 * channels + 1}, doubles);
  if (count > 0) {
    const auto [variance, mean] = at::var_mean(
        widened(input),
        at::OptionalIntArrayRef(reduced_dims(input)),
        /*correction=*/at::Scalar(0));
    own = at::cat(
        {mean.to(at::kDouble),
         variance.to(at::kDouble),
         at::full({1}, static_cast<double>(count), doubles)});
  }
  Statistics all{
      .mean = at::zeros({channels}, doubles),
      .variance = at::zeros({channels}, doubles)};
  const auto parts = group.all_gather(own);
  std::vector<double> counts;
  for (const at::Tensor& part : parts) {
    counts.push_back(part[2 * channels].item<double>());
    all.count += counts.back();
  }
  for (std::size_t i = 0; i < parts.size(); ++i) {
    all.mean.add_(parts[i].narrow(0, 0, channels), counts[i] / all.count);
  }
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const at::Tensor shift = parts[i].narrow(0, 0, channels) - all.mean;
    all.variance.add_(
        parts[i].narrow(0, channels, channels) + shift * shift,
        counts[i] / all.count);
  }
  return all;
}

void update_running(const NormInputs& inputs, const Statistics& all) {
  const double unbiased = all.count / std::max(all.count - 1, 1.0);
  const auto update = [&](const std::optional<at::Tensor>& running,
                          const at::Tensor& value) {
    if (running && running->defined()) {
      running->mul_(1 - inputs.momentum)
          .add_(value.to(running->scalar_type()), inputs.momentum);
    }
  };
  update(inputs.running_mean, all.mean);
  update(inputs.running_var, all.variance * unbiased);
}

struct SyncNorm : torch::autograd::Function<SyncNorm> {
  static at::Tensor forward(
      AutogradContext* context,
      const ProcessGroup& group,
      const NormInputs& given,
      const at::Tensor& input,
      const std::optional<at::Tensor>& weight,
      const std::optional<at::Tensor>& bias) {
    const Statistics all = statistics_of(group, input);
    update_running(given, all);
    const auto dtype = widened(input).scalar_type();
    const at::Tensor mean = all.mean.to(dtype);
    const at::Tensor inverse = (all.variance + given.eps).rsqrt().to(dtype);
    context->saved_data["group"] =
        c10::IValue::make_capsule(c10::make_intrusive<GroupHolder>(group));
    context->saved_data["count"] = all.count;
    context->save_for_backward(
        {input, weight.value_or(at::Tensor()), mean, inverse});
    return std::get<0>(at::native_batch_norm(
        input,
        weight,
        bias,
        mean,
        all.variance.to(dtype),
        /*training=*/false,
        /*momentum=*/0,
        given.eps));
  }

  static variable_list backward(
      AutogradContext* context,
      const variable_list& gradients) {
    const auto holder = c10::static_intrusive_pointer_cast<GroupHolder>(
        context->saved_data["group"].toCapsule());
    const auto saved = context->get_saved_variables();
    const at::Tensor& input = saved[0];
    const at::Tensor& weight = saved[1];
    const at::Tensor& inverse = saved[3];
    const auto dims = reduced_dims(input);
    const at::Tensor gradient = widened(gradients[0]);
    const at::Tensor centred = widened(input) - beside(saved[2], input);
    const at::Tensor own_sum = gradient.sum(dims);
    const at::Tensor own_product = (gradient * centred).sum(dims);
    // Of all ranks: each value moves the mean and variance of all.
    at::Tensor sums = at::cat({own_sum, own_product}).to(at::kDouble);
    holder->group.all_reduce(sums);
    sums.div_(context->saved_data["count"].toDouble());
    const std::int64_t channels = input.size(1);
    const at::Tensor mean_gradient =
        sums.narrow(0, 0, channels).to(gradient.scalar_type());
    const at::Tensor slope =
        (sums.narrow(0, channels, channels) * inverse.to(at::kDouble).square())
            .to(gradient.scalar_type());
    at::Tensor factor = inverse;
    if (weight.defined()) {
      factor = factor * weight;
    }
    const at::Tensor to_input = (gradient - beside(mean_gradient, input) -
                                 centred * beside(slope, input)) *
                                beside(factor, input);
    at::Tensor to_weight;
    at::Tensor to_bias;
    if (weight.defined()) {
      to_weight = (own_product * inverse).to(weight.scalar_type());
      to_bias = own_sum.to(weight.scalar_type());
    }
    return {
        at::Tensor(),
        at::Tensor(),
        to_input.to(input.scalar_type()),
        to_weight,
        to_bias};
  }
};

} // namespace

at::Tensor sync_batch_norm(
    const ProcessGroup& group,
    const NormInputs& inputs) {
  return SyncNorm::apply(
      group,
      inputs,
      inputs.input,
      inputs.weight,
      inputs.bias);
}

} // namespace lockstep::dist::internal
