// SPDX-License-Identifier: BSD-3-Clause
//
// What the first group of several devices changes in the process: the random
// operations, and nothing outside replicas.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/parallel/data_parallel.h"
#include "lockstep/parallel/internal/random_stream.h"

namespace lockstep {
namespace {

using at::Tensor;
using Generator = std::optional<at::Generator>;

struct RandomOp {
  const char* name = ""; // in LibTorch's table of operations
  Tensor (*draw)(std::int64_t n, const Generator& g) = nullptr;
};

Tensor zeros(std::int64_t n) {
  return torch::zeros({n});
}

// Between 0 and 1: chances, means and rates.
Tensor ramp(std::int64_t n) {
  return torch::linspace(0.05, 0.95, n);
}

Tensor counts(std::int64_t n) {
  return torch::full({n}, 12.0);
}

// clang-format off
const std::vector<RandomOp> kOps{
    {"bernoulli_.float", [](auto n, const auto& g) {
       return zeros(n).bernoulli_(0.3, g); }},
    {"bernoulli_.Tensor", [](auto n, const auto& g) {
       return zeros(n).bernoulli_(ramp(n), g); }},
    {"bernoulli.out", [](auto n, const auto& g) {
       return at::bernoulli(ramp(n), g); }},
    {"uniform_", [](auto n, const auto& g) {
       return zeros(n).uniform_(-1, 2, g); }},
    {"normal_", [](auto n, const auto& g) {
       return zeros(n).normal_(1, 2, g); }},
    {"normal.Tensor_float", [](auto n, const auto& g) {
       return at::normal(ramp(n), 2.0, g); }},
    {"normal.Tensor_float_out", [](auto n, const auto& g) {
       auto out = zeros(n);
       return at::normal_outf(ramp(n), 2.0, g, out); }},
    {"normal.float_Tensor", [](auto n, const auto& g) {
       return at::normal(1.0, ramp(n), g); }},
    {"normal.float_Tensor_out", [](auto n, const auto& g) {
       auto out = zeros(n);
       return at::normal_outf(1.0, ramp(n), g, out); }},
    {"normal.Tensor_Tensor", [](auto n, const auto& g) {
       return at::normal(ramp(n), ramp(n), g); }},
    {"normal.Tensor_Tensor_out", [](auto n, const auto& g) {
       auto out = zeros(n);
       return at::normal_outf(ramp(n), ramp(n), g, out); }},
    {"cauchy_", [](auto n, const auto& g) {
       return zeros(n).cauchy_(1, 2, g); }},
    {"log_normal_", [](auto n, const auto& g) {
       return zeros(n).log_normal_(1, 2, g); }},
    {"exponential_", [](auto n, const auto& g) {
       return zeros(n).exponential_(1.5, g); }},
    {"geometric_", [](auto n, const auto& g) {
       return zeros(n).geometric_(0.4, g); }},
    {"random_", [](auto n, const auto& g) {
       return zeros(n).random_(g); }},
    {"random_.to", [](auto n, const auto& g) {
       return zeros(n).random_(9, g); }},
    {"random_.from", [](auto n, const auto& g) {
       return zeros(n).random_(-3, 9, g); }},
    {"randperm.generator_out", [](auto n, const auto& g) {
       return at::randperm(n, g); }},
    {"multinomial", [](auto n, const auto& g) {
       return at::multinomial(ramp(n), n, true, g); }},
    {"multinomial.out", [](auto n, const auto& g) {
       auto out = counts(n).to(at::kLong);
       return at::multinomial_outf(ramp(n), n, true, g, out); }},
    {"rrelu_with_noise", [](auto n, const auto& g) {
       auto noise = zeros(n);
       return at::rrelu_with_noise(-ramp(n), noise, 0.1, 0.4, true, g); }},
    {"rrelu_with_noise.out", [](auto n, const auto& g) {
       auto noise = zeros(n);
       auto out = zeros(n);
       return at::rrelu_with_noise_outf(
           -ramp(n), noise, 0.1, 0.4, true, g, out); }},
    {"rrelu_with_noise_", [](auto n, const auto& g) {
       auto noise = zeros(n);
       auto x = -ramp(n);
       return at::rrelu_with_noise_(x, noise, 0.1, 0.4, true, g); }},
    {"poisson", [](auto n, const auto& g) {
       return at::poisson(counts(n), g); }},
    {"_standard_gamma", [](auto n, const auto& g) {
       return at::_standard_gamma(ramp(n), g); }},
    {"_sample_dirichlet", [](auto n, const auto& g) {
       return at::_sample_dirichlet(ramp(n), g); }},
    {"binomial", [](auto n, const auto& g) {
       return at::binomial(counts(n), ramp(n), g); }},
};
// clang-format on

// Values of every operation and the generator's state after each, for small
// and large tensors (which have kernels of their own) and from the default
// generator as well as one that the call names.
std::vector<Tensor> draw_all() {
  std::vector<Tensor> drawn;
  for (const RandomOp& op : kOps) {
    for (const std::int64_t n : {5, 1000}) {
      torch::manual_seed(n);
      drawn.push_back(op.draw(n, std::nullopt));
      drawn.push_back(at::detail::getDefaultCPUGenerator().get_state());
      const Generator named = at::detail::createCPUGenerator(7);
      drawn.push_back(op.draw(n, named));
      drawn.push_back(named->get_state());
      drawn.push_back(at::detail::getDefaultCPUGenerator().get_state());
    }
  }
  return drawn;
}

// The same in the main thread and in one of the process's own.
std::vector<Tensor> draw_in_two_threads() {
  std::vector<Tensor> drawn = draw_all();
  std::vector<Tensor> elsewhere;
  std::thread([&] { elsewhere = draw_all(); }).join();
  drawn.insert(drawn.end(), elsewhere.begin(), elsewhere.end());
  return drawn;
}

// The operations of `aten` of which this is true, without "aten::".
template <class Is>
std::set<std::string> operations(Is is) {
  auto& dispatcher = c10::Dispatcher::singleton();
  const std::string aten = "aten::";
  std::set<std::string> names;
  for (const auto& name : dispatcher.getAllOpNames()) {
    const auto operation = dispatcher.findOp(name);
    if (name.name.starts_with(aten) && is(*operation)) {
      names.insert(toString(name).substr(aten.size()));
    }
  }
  return names;
}

// Those whose CPU kernel is Lockstep's.
std::set<std::string> replaced_operations() {
  return operations([](const c10::OperatorHandle& operation) {
    return operation.dumpState().find("replaced_operators.cpp") !=
           std::string::npos;
  });
}

// Those with a CPU kernel that may be given a generator.
std::set<std::string> drawing_operations() {
  return operations([](const c10::OperatorHandle& operation) {
    return operation.hasSchema() &&
           operation.hasKernelForDispatchKey(c10::DispatchKey::CPU) &&
           std::ranges::any_of(
               operation.schema().arguments(),
               [](const c10::Argument& argument) {
                 return argument.type()->str().find("Generator") !=
                        std::string::npos;
               });
  });
}

std::set<std::string> tested_operations() {
  std::set<std::string> names;
  for (const RandomOp& op : kOps) {
    names.insert(op.name);
  }
  return names;
}

DataParallel<torch::nn::LinearImpl> on_devices(const std::string& devices) {
  return DataParallel(torch::nn::Linear(3, 2), {.devices = devices});
}

// Status 0 if nothing changed, else what did is on standard error.
int compare_before_and_after() {
  const auto before = draw_in_two_threads();
  on_devices("cpu");
  if (!replaced_operations().empty()) {
    std::fprintf(stderr, "one device replaced something\n");
    return 1;
  }
  on_devices("cpu*2");
  if (replaced_operations() != tested_operations()) {
    std::fprintf(stderr, "two devices replaced something else\n");
    return 1;
  }
  const auto after = draw_in_two_threads();
  parallel::uninstall_random_streams();
  if (!replaced_operations().empty()) {
    std::fprintf(stderr, "something stays replaced\n");
    return 1;
  }
  if (!torch::equal(draw_all().front(), before.front())) {
    std::fprintf(stderr, "LibTorch's own did not come back\n");
    return 1;
  }
  const std::size_t values = before.size() / 2 / kOps.size();
  int different = 0;
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (!torch::equal(before[i], after[i])) {
      ++different;
      std::fprintf(stderr, "%s differs\n", kOps[i / values % kOps.size()].name);
    }
  }
  return different == 0 ? 0 : 2;
}

TEST(RandomOps, OutsideReplicasAreThePlainOnesInEveryBit) {
  GTEST_FLAG_SET(death_test_style, "threadsafe"); // a process of its own
  EXPECT_EXIT(
      std::_Exit(compare_before_and_after()),
      ::testing::ExitedWithCode(0),
      "");
}

TEST(RandomOps, AreAllThatDataParallelReplaces) {
  on_devices("cpu*2");
  const auto convolution = c10::Dispatcher::singleton().findSchema(
      {"aten::convolution_backward", ""});
  EXPECT_FALSE(convolution->hasKernelForDispatchKey(c10::DispatchKey::CPU));
  EXPECT_EQ(replaced_operations(), tested_operations());
}

// In an operation that is not among them replicas would share one stream.
TEST(RandomOps, AreAllThatTakeAGenerator) {
  EXPECT_EQ(drawing_operations(), tested_operations());
}

} // namespace
} // namespace lockstep
