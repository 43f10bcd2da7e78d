// SPDX-License-Identifier: BSD-3-Clause
//
// Ours beside peer_train.py and peer_ddp.py: trains ResNet18 on random 28x28
// images with the replicas that --devices names.
//   train_bench --devices cpu*2 --threads 2 --batch 256 --steps 4
#include <sys/resource.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include <torch/torch.h>

#include "bench/serve.h"
#include "lockstep/device/autocast.h"
#include "lockstep/kernels/install.h"
#include "lockstep/models/model.h"
#include "lockstep/optim/optimizers.h"
#include "lockstep/parallel/data_parallel.h"
#include "lockstep/tensor/internal/host_memory.h"
#include "lockstep/tensor/modules.h"

namespace lockstep::bench {
namespace {

struct Settings {
  std::string devices = "cpu*2";
  int threads = 2;
  std::int64_t batch = 256;
  int steps = 4;
  // As peer_train.py: "nchw" or "nhwc".
  std::string layout = "nchw";
  // As peer_train.py: "fp32" or "bf16".
  std::string dtype = "fp32";
  // As `lockstep train`: "exact" or "lockstep"; "products": the latter without
  // batch norms.
  std::string kernels = "exact";
};

Settings parse(int argc, char** argv) {
  Settings settings;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string flag = argv[i];
    const std::string value = argv[i + 1];
    if (flag == "--devices") {
      settings.devices = value;
    } else if (flag == "--threads") {
      settings.threads = std::stoi(value);
    } else if (flag == "--batch") {
      settings.batch = std::stoll(value);
    } else if (flag == "--layout") {
      settings.layout = value;
    } else if (flag == "--dtype") {
      settings.dtype = value;
    } else if (flag == "--kernels") {
      settings.kernels = value;
    } else if (flag == "--steps") {
      settings.steps = std::stoi(value);
    }
  }
  return settings;
}

// Pages that the kernel had to hand out or map: each costs about 0.25 us.
std::int64_t minor_faults() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

using Clock = std::chrono::steady_clock;

// Where the time of a round went.
struct Phases {
  double forward_ms = 0;
  double backward_ms = 0;
  double optimizer_ms = 0;

  static double lap(Clock::time_point& since) {
    const auto now = Clock::now();
    const std::chrono::duration<double, std::milli> took = now - since;
    since = now;
    return took.count();
  }
};

// A model, its optimizer and one batch.
class Job {
 public:
  explicit Job(const Settings& settings)
      : model_(make_seeded_model(settings), {.devices = settings.devices}),
        optimizer_(
            model_->parameters(),
            {.lr = 0.01, .momentum = 0.9, .weight_decay = 5e-4}),
        shared_(model_->share_threads(optimizer_)),
        is_bf16_(settings.dtype == "bf16") {
    torch::manual_seed(1);
    images_ = in_memory_format(
        torch::randn({settings.batch, 1, 28, 28}),
        memory_format(settings));
    targets_ = torch::randint(10, {settings.batch}, torch::kLong)
                   .to(model_->devices().front());
  }

  double step(Phases& phases) {
    auto since = Clock::now();
    const at::Tensor loss = forward();
    optimizer_.zero_grad();
    phases.forward_ms += Phases::lap(since);
    loss.backward();
    phases.backward_ms += Phases::lap(since);
    optimizer_.step();
    phases.optimizer_ms += Phases::lap(since);
    return loss.item<double>();
  }

 private:
  at::Tensor forward() {
    std::optional<Autocast> autocast;
    if (is_bf16_) {
      autocast.emplace(at::kCPU, at::kBFloat16);
    }
    return torch::nn::functional::cross_entropy(
        model_->forward(images_),
        targets_);
  }

  static at::MemoryFormat memory_format(const Settings& settings) {
    return settings.layout == "nhwc" ? at::MemoryFormat::ChannelsLast
                                     : at::MemoryFormat::Contiguous;
  }

  static std::shared_ptr<Model> make_seeded_model(const Settings& settings) {
    torch::manual_seed(0);
    auto model = make_model("resnet18", {.num_classes = 10, .in_channels = 1});
    to_memory_format(*model, memory_format(settings));
    return model;
  }

  DataParallel<Model> model_;
  SGD optimizer_;
  ThreadLoan shared_;
  bool is_bf16_;
  at::Tensor images_;
  at::Tensor targets_;
};

int run(int argc, char** argv) {
  const Settings settings = parse(argc, argv);
  keep_freed_host_memory();
  kernels::install(
      {.convolution = settings.kernels != "exact",
       .batch_norm = settings.kernels == "lockstep"});
  at::set_num_threads(settings.threads);
  Job job(settings);
  Phases warm;
  const double first_loss = job.step(warm);
  job.step(warm);
  serve({{"first_loss", first_loss}}, [&](const std::string& /*line*/) {
    const std::int64_t faults = minor_faults();
    const auto start = Clock::now();
    Phases phases;
    double loss = 0;
    for (int i = 0; i < settings.steps; ++i) {
      loss = job.step(phases);
    }
    const std::chrono::duration<double> took = Clock::now() - start;
    const double total = static_cast<double>(settings.batch) * settings.steps;
    return nlohmann::json{
        {"images_per_s", total / took.count()},
        {"loss", loss},
        {"forward_ms", phases.forward_ms / settings.steps},
        {"backward_ms", phases.backward_ms / settings.steps},
        {"optimizer_ms", phases.optimizer_ms / settings.steps},
        {"faults_per_step", (minor_faults() - faults) / settings.steps}};
  });
  return 0;
}

} // namespace
} // namespace lockstep::bench

int main(int argc, char** argv) {
  return lockstep::bench::run(argc, argv);
}
