// SPDX-License-Identifier: BSD-3-Clause
#include "cli_train/bench_steps.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <deque>

#include <ATen/Parallel.h>

#include "cli_train/bench_job.h"
#include "cli_train/machine_peak.h"
#include "lockstep/models/internal/summary.h"
#include "lockstep/tensor/internal/kernel_choice.h"
#include "lockstep/train/step/memory_use.h"

namespace lockstep::cli_train {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_of(const std::function<void()>& work) {
  const auto start = Clock::now();
  work();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Observes steps for the sake of their layers.
void observe(BenchJob& job, std::int64_t steps, BenchSide& side) {
  LayerClock clock(job.net());
  choose_kernels(side.kernels);
  for (std::int64_t step = 0; step < steps; ++step) {
    clock.observe([&] { job.make_gradients(); });
    side.update_seconds += seconds_of([&] {
      job.update();
      job.finish();
    });
  }
  side.layers = clock.layers();
  const auto count = static_cast<double>(steps);
  for (LayerTime& layer : side.layers) {
    layer.forward_seconds /= count;
    layer.backward_seconds /= count;
  }
  side.update_seconds /= count;
}

/// The gradient of a product is two of its size, of the first layer one: nobody
/// asks for the gradient of the images.
void count_operations(BenchJob& job, BenchResult& result) {
  double passes = 2;
  for (const LayerSummary& layer : summarize(job.net(), job.images()).layers) {
    if (layer.mult_adds == 0) {
      continue;
    }
    const double operations = 2 * passes * static_cast<double>(layer.mult_adds);
    result.layer_operations.emplace_back(layer.name, operations);
    result.operations += operations;
    passes = 3;
  }
}

// Of the cores, or of the device's matrix products in the type of the step.
double peak_of(const BenchRequest& request) {
  return request.device.is_cpu()
             ? measure_peak(request.threads)
             : measure_device_peak(
                   request.device,
                   request.amp == "off" ? at::kFloat : at::kBFloat16);
}

// Of the process, or of the device's tensors.
std::int64_t peak_memory(c10::Device device) {
  if (!device.is_cpu()) {
    return static_cast<std::int64_t>(
        train::peak_of_devices(std::span(&device, 1)).front());
  }
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  constexpr std::int64_t kKibibyte = 1024;
  return usage.ru_maxrss * kKibibyte;
}

} // namespace

double BenchSide::median_step() const {
  std::vector<double> sorted = steps;
  std::ranges::sort(sorted);
  return sorted.at(sorted.size() / 2);
}

BenchResult run_bench(
    const BenchRequest& request,
    const BenchProgress& progress) {
  constexpr std::int64_t kWarmUps = 2;
  at::set_num_threads(request.threads);
  BenchResult result{.peak_before = peak_of(request)};
  std::deque<BenchJob> jobs; // a job stays where it is
  for (const std::string& kernels : request.kernels) {
    const BenchJob& job = jobs.emplace_back(request, kernels);
    result.sides.push_back(
        {.kernels = kernels, .has_channels_last = job.has_channels_last()});
  }
  const std::int64_t all = kWarmUps + 2 * request.steps;
  for (std::int64_t step = 0; step < kWarmUps + request.steps; ++step) {
    progress(step, all);
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      choose_kernels(request.kernels[i]);
      const double took = seconds_of([&] {
        jobs[i].make_gradients();
        jobs[i].update();
        jobs[i].finish();
      });
      if (step >= kWarmUps) {
        result.sides[i].steps.push_back(took);
      }
    }
  }
  progress(all - request.steps, all);
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    observe(jobs[i], request.steps, result.sides[i]);
  }
  progress(all, all);
  count_operations(jobs.front(), result);
  result.peak_memory = peak_memory(request.device);
  result.peak_after = peak_of(request);
  return result;
}

} // namespace lockstep::cli_train
