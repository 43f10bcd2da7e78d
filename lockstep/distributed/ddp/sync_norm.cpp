// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/distributed/ddp/sync_norm.h"

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

void keep_group(AutogradContext& context, const ProcessGroup& group) {
  context.saved_data["group"] =
      c10::IValue::make_capsule(c10::make_intrusive<GroupHolder>(group));
}

ProcessGroup group_of(AutogradContext& context) {
  return c10::static_intrusive_pointer_cast<GroupHolder>(
             context.saved_data["group"].toCapsule())
      ->group;
}

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
  if (all.count == 0) { // all batches are empty
    return all;
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

// Rounded once, also for half types. What nobody has seen changes nothing, as
// in LibTorch's own layer.
void update_running(const NormInputs& inputs, const Statistics& all) {
  if (all.count == 0) {
    return;
  }
  const double unbiased = all.count / std::max(all.count - 1, 1.0);
  const auto update = [&](const std::optional<at::Tensor>& running,
                          const at::Tensor& value) {
    if (running && running->defined()) {
      const at::Tensor kept = widened(*running) * (1 - inputs.momentum);
      running->copy_(kept.add(value.to(kept.scalar_type()), inputs.momentum));
    }
  };
  update(inputs.running_mean, all.mean);
  update(inputs.running_var, all.variance * unbiased);
}

/// Added up over the ranks, gradients too, and theirs.
struct RankSum : torch::autograd::Function<RankSum> {
  static at::Tensor forward(
      AutogradContext* context,
      const ProcessGroup& group,
      const at::Tensor& own) {
    keep_group(*context, group);
    at::Tensor sum = own.clone();
    group.all_reduce(sum);
    return sum;
  }
  static variable_list backward(
      AutogradContext* context,
      const variable_list& gradients) {
    return {
        at::Tensor(),
        RankSum::apply(group_of(*context), gradients[0].contiguous())};
  }
};

/// Numbers of the forward pass, with a graph that leads to the input where
/// second gradients are asked for: the same bits in both cases.
struct Normal {
  at::Tensor mean = {};
  at::Tensor inverse = {};
};

Normal with_graph(
    const Normal& known,
    const ProcessGroup& group,
    const at::Tensor& input,
    double count,
    double eps) {
  if (!at::GradMode::is_enabled() || !input.requires_grad() || count == 0) {
    return known;
  }
  const auto dims = reduced_dims(input);
  const auto mean_of = [&](const at::Tensor& values) {
    return RankSum::apply(group, values.sum(dims)) / count;
  };
  const auto as = [](const at::Tensor& value, const at::Tensor& graph) {
    return value.detach() + (graph - graph.detach());
  };
  const at::Tensor wide = widened(input);
  const at::Tensor mean = mean_of(wide);
  const at::Tensor variance = mean_of((wide - beside(mean, input)).square());
  return {
      .mean = as(known.mean, mean),
      .inverse = as(known.inverse, (variance + eps).rsqrt())};
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
    keep_group(*context, group);
    context->saved_data["count"] = all.count;
    context->saved_data["eps"] = given.eps;
    context->save_for_backward(
        {input, weight.value_or(at::Tensor()), mean, inverse});
    if (input.numel() == 0) {
      return at::empty_like(input);
    }
    // Weights may be of a half type, as the input: the numbers are not.
    const auto as_numbers = [&](const std::optional<at::Tensor>& parameter) {
      return parameter && parameter->defined()
                 ? std::optional(parameter->to(dtype))
                 : std::nullopt;
    };
    return std::get<0>(at::native_batch_norm(
        input,
        as_numbers(weight),
        as_numbers(bias),
        mean,
        all.variance.to(dtype),
        /*training=*/false,
        /*momentum=*/0,
        given.eps));
  }

  static variable_list backward(
      AutogradContext* context,
      const variable_list& gradients) {
    const ProcessGroup group = group_of(*context);
    const double count = context->saved_data["count"].toDouble();
    const auto saved = context->get_saved_variables();
    const at::Tensor& input = saved[0];
    const at::Tensor& weight = saved[1];
    const auto [mean, inverse] = with_graph(
        {.mean = saved[2], .inverse = saved[3]},
        group,
        input,
        count,
        context->saved_data["eps"].toDouble());
    const auto dims = reduced_dims(input);
    const at::Tensor gradient = widened(gradients[0]);
    const at::Tensor centred = widened(input) - beside(mean, input);
    const at::Tensor own_sum = gradient.sum(dims);
    const at::Tensor own_product = (gradient * centred).sum(dims);
    // Of all ranks: each value moves the mean and variance of all.
    const at::Tensor sums =
        RankSum::apply(group, at::cat({own_sum, own_product}).to(at::kDouble)) /
        std::max(count, 1.0);
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
