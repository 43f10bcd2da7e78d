// SPDX-License-Identifier: BSD-3-Clause
//
// What a checkpoint costs a run: beside peer_save.py, weights and momentum of
// ResNet18. A round is one of
//   stall     one call of CheckpointWriter::write, nothing in flight before
//   plain     training steps
//   writing   training steps while a checkpoint is always being written
#include <chrono>
#include <iterator>
#include <memory>
#include <string>

#include <torch/torch.h>

#include "bench/serve.h"
#include "lockstep/kernels/install.h"
#include "lockstep/models/model.h"
#include "lockstep/optim/optimizers.h"
#include "lockstep/tensor/internal/host_memory.h"
#include "lockstep/train/checkpoints.h"
#include "lockstep/train/state_parts.h"
#include "lockstep/train/strategy.h"

namespace lockstep::bench {
namespace {

using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start)
      .count();
}

class Job {
 public:
  explicit Job(const std::string& folder)
      : model_(make_seeded_model()),
        optimizer_(*model_, {.lr = 0.01, .momentum = 0.9}),
        strategy_(train::make_strategy(model_, {.optimizer = optimizer_})),
        writer_(real_fs(), folder, {.keep = 1}) {
    state_.add(train::model_part(*model_))
        .add(train::optimizer_part(optimizer_));
    batch_ = {
        .images = torch::randn({64, 1, 28, 28}),
        .targets = torch::randint(10, {64}, torch::kLong)};
    step();
  }

  /// Units: milliseconds.
  double stall() {
    writer_.wait();
    step();
    const auto start = Clock::now();
    write();
    const double took = milliseconds_since(start);
    check(writer_.wait());
    return took;
  }

  /// Units: milliseconds per step; what `write` itself takes is left out.
  double steps(bool while_writing) {
    constexpr int kSteps = 10;
    double total = 0;
    writer_.wait();
    bool is_idle = true;
    for (int i = 0; i < kSteps; ++i) {
      auto done = writer_.finished();
      is_idle = is_idle || !done.empty();
      check(done);
      if (while_writing && is_idle) {
        write();
        is_idle = false;
        ++written_;
      }
      const auto start = Clock::now();
      step();
      total += milliseconds_since(start);
    }
    check(writer_.wait());
    return total / kSteps;
  }

  [[nodiscard]] int written() const {
    return written_;
  }

 private:
  static std::shared_ptr<Model> make_seeded_model() {
    torch::manual_seed(0);
    return make_model("resnet18", {.num_classes = 10, .in_channels = 1});
  }

  static void check(const std::vector<train::CheckpointOutcome>& outcomes) {
    for (const train::CheckpointOutcome& outcome : outcomes) {
      outcome.status.value();
    }
  }

  void step() {
    optimizer_.zero_grad();
    const auto result = strategy_->step(batch_);
    strategy_->update();
    loss_ = result.read().loss;
  }

  void write() {
    writer_.write(state_.save(), {.step = ++saved_});
  }

  std::shared_ptr<Model> model_;
  SGD optimizer_;
  std::unique_ptr<train::Strategy> strategy_;
  train::RunState state_;
  train::CheckpointWriter writer_;
  Batch batch_;
  float loss_ = 0;
  std::int64_t saved_ = 0;
  int written_ = 0;
};

int run(const std::string& folder, int threads) {
  keep_freed_host_memory();
  kernels::install();
  at::set_num_threads(threads);
  Job job(folder);
  job.stall();
  serve({{"folder", folder}}, [&](const std::string& what) {
    const double took =
        what == "stall" ? job.stall() : job.steps(what == "writing");
    return nlohmann::json{{"ms", took}, {"written", job.written()}};
  });
  return 0;
}

} // namespace
} // namespace lockstep::bench

int main(int argc, char** argv) {
  return lockstep::bench::run(
      argc > 1 ? argv[1] : ".",
      argc > 2 ? std::stoi(argv[2]) : 2);
}
