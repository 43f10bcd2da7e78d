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
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <torch/torch.h>

#include "bench/serve.h"
#include "lockstep/dist/distributed_data_parallel.h"
#include "lockstep/kernels/install.h"
#include "lockstep/models/registry.h"
#include "lockstep/optim/sgd.h"
#include "lockstep/tensor/host_memory.h"

namespace lockstep::bench {
namespace {

constexpr int kRanks = 2;
constexpr int kSteps = 4;
constexpr std::int64_t kBatch = 256;

using Clock = std::chrono::steady_clock;

// What rank 0 tells the others to do.
enum Order : std::int64_t { kEnd, kAllReduce, kAllReduceThere, kStep, kNoSync };

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

  // Seconds for one of what is ordered.
  double work(std::int64_t order, std::int64_t numel) {
    if (order == kAllReduce || order == kAllReduceThere) {
      at::Tensor tensor = order == kAllReduce ? torch::empty({numel})
                                              : group_.allocate_tensor(numel);
      check_sum(tensor);
      tensor.zero_();
      const auto count = std::clamp<std::int64_t>(200'000'000 / numel, 5, 2000);
      return timed(count, [&] { group_.all_reduce(tensor); });
    }
    if (order == kStep) {
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

at::Tensor parse(const std::string& line) {
  const auto blank = line.find(' ');
  const std::string name = line.substr(0, blank);
  const std::int64_t order = name == "allreduce"         ? kAllReduce
                             : name == "allreduce_there" ? kAllReduceThere
                             : name == "step"            ? kStep
                                                         : kNoSync;
  return torch::tensor(
      {order,
       blank == std::string::npos ? 0L : std::stol(line.substr(blank + 1))});
}

nlohmann::json
lead(const dist::ProcessGroup& group, Job& job, const std::string& line) {
  at::Tensor order = parse(line);
  group.broadcast(order);
  const auto* const words = order.const_data_ptr<std::int64_t>();
  const double seconds = job.work(words[0], words[1]);
  return {
      {"us", seconds * 1e6},
      {"ms", seconds * 1e3},
      {"images_per_s", static_cast<double>(kBatch) / seconds}};
}

void follow(const dist::ProcessGroup& group, Job& job) {
  for (at::Tensor order = torch::zeros({2}, torch::kLong);;) {
    group.broadcast(order);
    const auto* const words = order.const_data_ptr<std::int64_t>();
    if (words[0] == kEnd) {
      return;
    }
    job.work(words[0], words[1]);
  }
}

struct Setup {
  std::string backend = "shm";
  bool views = false;
  std::string folder = {};
};

int run_rank(int rank, const Setup& setup) {
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
    follow(group, job);
  } else {
    serve(
        {{"first_loss", loss.item<double>() / kRanks}},
        [&](const std::string& line) { return lead(group, job, line); });
    at::Tensor end = torch::zeros({2}, torch::kLong);
    group.broadcast(end);
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
  const pid_t child = ::fork(); // before LibTorch starts a thread
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    return lockstep::bench::run_rank(1, setup);
  }
  int status = lockstep::bench::run_rank(0, setup);
  int other = 0;
  ::waitpid(child, &other, 0);
  std::filesystem::remove_all(setup.folder);
  return status != 0 ? status : other;
}
