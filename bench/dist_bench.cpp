// SPDX-License-Identifier: BSD-3-Clause
//
// Ours beside peer_ddp.py: two processes, one thread each, that add up tensors
// or train ResNet18 with DistributedDataParallel.
//   dist_bench --backend shm [--views]
// With --views gradients are views of the buckets.
// A round's line: "allreduce N" adds up N floats, "allreduce_there N" in memory
// that the ranks share; "step" trains; "no_sync" trains without averaging.
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include <torch/torch.h>

#include "bench/serve.h"
#include "lockstep/distributed/distributed_data_parallel.h"
#include "lockstep/kernels/install.h"
#include "lockstep/models/model.h"
#include "lockstep/optim/optimizers.h"
#include "lockstep/tensor/internal/host_memory.h"

namespace lockstep::bench {
namespace {

constexpr int kRanks = 2;
constexpr int kSteps = 4;
constexpr std::int64_t kBatch = 256;

using Clock = std::chrono::steady_clock;

// What a round does.
enum class Kind : std::int64_t { kAllReduce, kAllReduceThere, kStep, kNoSync };

/// A round, as rank 0 tells it to the other rank through a pipe: a collective
/// that waits for the next order would be reported as a late rank.
struct Order {
  Kind kind = Kind::kStep;
  /// Floats, for sums.
  std::int64_t numel = 0;
};

class Job {
 public:
  Job(const dist::ProcessGroup& group, bool views)
      : group_(group),
        model_(
            make_seeded_model(),
            {.process_group = group, .gradient_as_bucket_view = views}),
        optimizer_(
            model_->parameters(),
            {.lr = 0.01, .momentum = 0.9, .weight_decay = 5e-4}) {
    torch::manual_seed(1);
    const auto rank = static_cast<std::size_t>(group.rank());
    images_ = torch::randn({kBatch, 1, 28, 28}).chunk(kRanks)[rank];
    targets_ = torch::randint(10, {kBatch}, torch::kLong).chunk(kRanks)[rank];
  }

  at::Tensor step() {
    const at::Tensor loss = torch::nn::functional::cross_entropy(
        model_->forward(images_),
        targets_);
    model_->zero_grad();
    loss.backward();
    optimizer_.step();
    return loss.detach();
  }

  /// One round. Units: seconds, for one sum or step.
  double work(const Order& order) {
    const std::int64_t numel = order.numel;
    if (order.kind == Kind::kAllReduce || order.kind == Kind::kAllReduceThere) {
      at::Tensor tensor = order.kind == Kind::kAllReduce
                              ? torch::empty({numel})
                              : group_.allocate_tensor(numel);
      check_sum(tensor);
      tensor.zero_();
      const auto count = std::clamp<std::int64_t>(200'000'000 / numel, 5, 2000);
      return timed(count, [&] { group_.all_reduce(tensor); });
    }
    if (order.kind == Kind::kStep) {
      return timed(kSteps, [&] { step(); });
    }
    const auto no_sync = model_->no_sync();
    return timed(kSteps, [&] { step(); });
  }

 private:
  // What is timed must add up.
  void check_sum(at::Tensor& tensor) const {
    group_.all_reduce(tensor.fill_(group_.rank() + 1));
    TORCH_CHECK(tensor.eq(3).all().item<bool>(), "a wrong sum");
  }

  static std::shared_ptr<Model> make_seeded_model() {
    torch::manual_seed(0);
    return make_model("resnet18", {.num_classes = 10, .in_channels = 1});
  }

  template <class Run>
  double timed(std::int64_t count, const Run& run) {
    run();
    group_.barrier();
    const auto start = Clock::now();
    for (std::int64_t i = 0; i < count; ++i) {
      run();
    }
    group_.barrier();
    const std::chrono::duration<double> took = Clock::now() - start;
    return took.count() / static_cast<double>(count);
  }

  dist::ProcessGroup group_;
  DistributedDataParallel<Model> model_;
  SGD optimizer_;
  at::Tensor images_;
  at::Tensor targets_;
};

Order parse(const std::string& line) {
  const auto blank = line.find(' ');
  const std::string name = line.substr(0, blank);
  return {
      .kind = name == "allreduce"         ? Kind::kAllReduce
              : name == "allreduce_there" ? Kind::kAllReduceThere
              : name == "step"            ? Kind::kStep
                                          : Kind::kNoSync,
      .numel =
          blank == std::string::npos ? 0L : std::stol(line.substr(blank + 1))};
}

nlohmann::json lead(int to_other, Job& job, const std::string& line) {
  const Order order = parse(line);
  if (::write(to_other, &order, sizeof order) != sizeof order) {
    throw std::runtime_error("the other rank is gone");
  }
  const double seconds = job.work(order);
  return {
      {"us", seconds * 1e6},
      {"ms", seconds * 1e3},
      {"images_per_s", static_cast<double>(kBatch) / seconds}};
}

void follow(int from_first, Job& job) {
  for (Order order; ::read(from_first, &order, sizeof order) == sizeof order;) {
    job.work(order);
  }
}

struct Setup {
  std::string backend = "shm";
  bool views = false;
  std::string folder = {};
};

/// `orders` is this rank's end of the pipe.
int run_rank(int rank, int orders, const Setup& setup) {
  keep_freed_host_memory();
  kernels::install();
  at::set_num_threads(1);
  const auto group = dist::init_process_group(
      {.backend = setup.backend,
       .init_method = "file://" + setup.folder + "/store",
       .rank = rank,
       .world_size = kRanks});
  at::Tensor sum = torch::full({1000}, rank + 1.0);
  group.all_reduce(sum);
  if (!torch::equal(sum, torch::full({1000}, 3.0))) {
    return 1;
  }
  Job job(group, setup.views);
  at::Tensor loss = job.step();
  group.all_reduce(loss);
  if (rank != 0) {
    follow(orders, job);
  } else {
    serve(
        {{"first_loss", loss.item<double>() / kRanks}},
        [&](const std::string& line) { return lead(orders, job, line); });
    ::close(orders);
  }
  dist::destroy_process_group();
  return 0;
}

} // namespace
} // namespace lockstep::bench

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  lockstep::bench::Setup setup{
      .backend = words.size() > 1 ? words[1] : "shm",
      .views = !words.empty() && words.back() == "--views",
      .folder = std::filesystem::temp_directory_path() / "benchXXXXXX"};
  if (::mkdtemp(setup.folder.data()) == nullptr) {
    return 1;
  }
  std::array<int, 2> orders{};
  if (::pipe(orders.data()) != 0) {
    return 1;
  }
  const pid_t child = ::fork(); // before LibTorch starts a thread
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::close(orders[1]);
    return lockstep::bench::run_rank(1, orders[0], setup);
  }
  ::close(orders[0]);
  const int status = lockstep::bench::run_rank(0, orders[1], setup);
  int other = 0;
  ::waitpid(child, &other, 0);
  std::filesystem::remove_all(setup.folder);
  return status != 0 ? status : other;
}
