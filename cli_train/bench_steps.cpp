// SPDX-License-Identifier: BSD-3-Clause
#include "cli_train/bench_steps.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <memory>
#include <optional>

#include <ATen/Parallel.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>

#include "cli_train/machine_peak.h"
#include "lockstep/device/autocast.h"
#include "lockstep/kernels/install.h"
#include "lockstep/models/summary.h"
#include "lockstep/optim/sgd.h"
#include "lockstep/tensor/memory_format.h"

namespace lockstep::cli_train {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_of(const std::function<void()>& work) {
  const auto start = Clock::now();
  work();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// A model, its optimizer and one batch.
class Job {
 public:
  Job(const BenchRequest& request, bool has_channels_last)
      : net_(make_requested(request.model)),
        optimizer_(net_->parameters(), {.lr = 1e-4, .momentum = 0.9}),
        is_autocast_(request.amp != "off") {
    const auto format = has_channels_last ? at::MemoryFormat::ChannelsLast
                                          : at::MemoryFormat::Contiguous;
    to_memory_format(*net_, format);
    const ModelRequest& model = request.model;
    images_ = in_memory_format(
        at::randn(
            {model.batch_size,
             model.in_channels,
             model.img_size,
             model.img_size}),
        format);
    targets_ = at::randint(model.num_classes, {model.batch_size}, at::kLong);
  }

  void make_gradients() {
    loss().backward();
  }

  void update() {
    optimizer_.step();
    optimizer_.zero_grad();
  }

  [[nodiscard]] Model& net() {
    return *net_;
  }
  [[nodiscard]] const at::Tensor& images() const {
    return images_;
  }

 private:
  at::Tensor loss() {
    std::optional<Autocast> autocast;
    if (is_autocast_) {
      autocast.emplace(at::kCPU, at::kBFloat16);
    }
    return at::cross_entropy_loss(net_->forward(images_), targets_);
  }

  std::shared_ptr<Model> net_;
  SGD optimizer_;
  bool is_autocast_;
  at::Tensor images_;
  at::Tensor targets_;
};

/// Observes steps for the sake of their layers.
void observe(Job& job, std::int64_t steps, BenchSide& side) {
  LayerClock clock(job.net());
  kernels::install_choice(side.kernels);
  for (std::int64_t step = 0; step < steps; ++step) {
    clock.observe([&] { job.make_gradients(); });
    side.update_seconds += seconds_of([&] { job.update(); });
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
void count_operations(Job& job, BenchResult& result) {
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

std::int64_t peak_memory() {
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
    const std::function<void(std::int64_t, std::int64_t)>& progress) {
  constexpr std::int64_t kWarmUps = 2;
  at::set_num_threads(request.threads);
  BenchResult result{.peak_before = measure_peak(request.threads)};
  std::deque<Job> jobs; // a job stays where it is
  for (const std::string& kernels : request.kernels) {
    const bool has_channels_last =
        request.channels_last || kernels::want_channels_last(kernels);
    result.sides.push_back(
        {.kernels = kernels, .has_channels_last = has_channels_last});
    jobs.emplace_back(request, has_channels_last);
  }
  const std::int64_t all = kWarmUps + 2 * request.steps;
  for (std::int64_t step = 0; step < kWarmUps + request.steps; ++step) {
    progress(step, all);
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      kernels::install_choice(request.kernels[i]);
      const double took = seconds_of([&] {
        jobs[i].make_gradients();
        jobs[i].update();
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
  result.peak_memory = peak_memory();
  result.peak_after = measure_peak(request.threads);
  return result;
}

} // namespace lockstep::cli_train
