// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/kernels/internal/convolution_times.h"

#include <algorithm>
#include <cstring>
#include <ctime>
#include <functional>
#include <limits>
#include <memory>
#include <tuple>

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/convolution_backward_native.h>
#include <ATen/ops/convolution_native.h>
#include <ATen/ops/randn_like.h>

#include "lockstep/kernels/internal/convolution_algorithms.h"
#include "lockstep/kernels/internal/weight_gradient.h"

namespace lockstep::kernels {
namespace {

using at::Tensor;

constexpr std::array kPasses{
    Pass::kForward,
    Pass::kInputGradient,
    Pass::kWeightGradient};
constexpr std::array<std::int64_t, 2> kNone{0, 0};
static_assert(kAlgorithms.size() == 1 + kConvolutionAlgorithms.size());

double now(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) +
         static_cast<double>(time.tv_nsec) / 1e9;
}

double seconds_of(const std::function<Tensor()>& compute) {
  const clockid_t clock =
      at::get_num_threads() == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC;
  const double start = now(clock);
  compute();
  return now(clock) - start;
}

Tensor exact_output(
    const Tensor& input,
    const Tensor& weight,
    const KernelSteps& steps) {
  return at::native::convolution(
      input,
      weight,
      {},
      steps.stride,
      steps.padding,
      steps.dilation,
      /*transposed=*/false,
      kNone,
      /*groups=*/1);
}

// As `install()` has them.
Gradients exact_gradients(
    const ConvolutionInputs& of,
    std::array<bool, 3> wanted) {
  return same_bits_gradients(
      of,
      wanted,
      [&](const Tensor& grad_output,
          const Tensor& input,
          const Tensor& weight,
          std::array<bool, 3> outputs) {
        return at::native::convolution_backward(
            grad_output,
            input,
            weight,
            {},
            of.steps.stride,
            of.steps.padding,
            of.steps.dilation,
            /*transposed=*/false,
            kNone,
            /*groups=*/1,
            outputs);
      });
}

Tensor compute_exactly(Pass pass, const ConvolutionInputs& of) {
  switch (pass) {
    case Pass::kForward:
      return exact_output(of.input, of.weight, of.steps);
    case Pass::kInputGradient:
      return std::get<0>(exact_gradients(of, {true, false, false}));
    case Pass::kWeightGradient:
      return std::get<1>(exact_gradients(of, {false, true, false}));
  }
  return {};
}

Tensor compute_by(
    const ConvolutionAlgorithm& algorithm,
    Pass pass,
    const Tensor& grads) {
  switch (pass) {
    case Pass::kForward:
      return algorithm.forward({});
    case Pass::kInputGradient:
      return algorithm.input_gradient(grads);
    case Pass::kWeightGradient:
      return algorithm.weight_gradient(grads);
  }
  return {};
}

AlgorithmTimes
time_pass(Pass pass, const ConvolutionInputs& of, std::int64_t repeats) {
  AlgorithmTimes times{{.algorithm = "exact"}};
  std::vector<std::function<Tensor()>> work{
      [&] { return compute_exactly(pass, of); }};
  for (const auto& [name, make] : kConvolutionAlgorithms) {
    // A call makes its way anew, as convolutions do.
    const auto found = make(of.input, of.weight, of.steps);
    if (!found) {
      continue;
    }
    const bool is_first =
        std::ranges::none_of(times, &AlgorithmTime::is_chosen);
    times.push_back(
        {.algorithm = name + std::strlen("lockstep::"),
         .is_chosen = is_first && found->is_better(pass)});
    work.emplace_back([&, make = make] {
      return compute_by(
          *make(of.input, of.weight, of.steps),
          pass,
          of.grad_output);
    });
  }
  times.front().is_chosen =
      std::ranges::none_of(times, &AlgorithmTime::is_chosen);
  for (std::size_t i = 0; i < work.size(); ++i) {
    work[i](); // warm
    times[i].seconds = std::numeric_limits<double>::max();
  }
  for (std::int64_t repeat = 0; repeat < repeats; ++repeat) {
    for (std::size_t i = 0; i < work.size(); ++i) {
      times[i].seconds = std::min(times[i].seconds, seconds_of(work[i]));
    }
  }
  return times;
}

} // namespace

std::array<AlgorithmTimes, 3> time_convolution(
    const Tensor& input,
    const Tensor& weight,
    const KernelSteps& steps,
    std::int64_t repeats) {
  const at::NoGradGuard no_grad;
  const Tensor grad_output = at::randn_like(exact_output(input, weight, steps));
  const ConvolutionInputs of{
      .grad_output = grad_output,
      .input = input,
      .weight = weight,
      .steps = steps};
  std::array<AlgorithmTimes, 3> times;
  for (std::size_t i = 0; i < times.size(); ++i) {
    times[i] = time_pass(kPasses[i], of, repeats);
  }
  return times;
}

} // namespace lockstep::kernels
