// SPDX-License-Identifier: BSD-3-Clause
//
// Ranks as threads, with LibTorch's own layers and optimizers. Jobs of several
// processes, also with Python's ranks: ranks_test.py.
#include "lockstep/distributed/distributed_data_parallel.h"

#include <sstream>
#include <stdexcept>

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/base/error.h"
#include "lockstep/data/samplers.h"
#include "lockstep/tensor/state_dict.h"
#include "tests/support/thread_ranks.h"

namespace lockstep {
namespace {

using dist::run_thread_ranks;
using testing::AllOf;
using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;

at::Tensor row_of(int rank) {
  return torch::full({1, 3}, rank + 1.0);
}

TEST(DistributedDataParallel, GradientsAreTheAverageOfTheRanks) {
  const auto errors = run_thread_ranks(3, [](const dist::ProcessGroup& group) {
    torch::nn::Linear net(3, 2);
    DistributedDataParallel model(net, {.process_group = group});
    model->forward(row_of(group.rank())).sum().backward();
    // Of 1, 2 and 3.
    EXPECT_TRUE(torch::allclose(net->weight.grad(), torch::full({2, 3}, 2.0)));
    EXPECT_TRUE(torch::equal(net->bias.grad(), torch::ones({2})));
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

TEST(DistributedDataParallel, AllBeginWithRankZerosWeightsAndStayEqual) {
  const auto errors = run_thread_ranks(2, [](const dist::ProcessGroup& group) {
    torch::nn::Sequential net(
        torch::nn::Linear(3, 4),
        torch::nn::BatchNorm1d(4),
        torch::nn::ReLU(),
        torch::nn::Linear(4, 1));
    {
      const torch::NoGradGuard no_grad;
      for (at::Tensor& parameter : net->parameters()) {
        parameter.fill_(group.rank() + 0.5);
      }
    }
    DistributedDataParallel model(*net, {.process_group = group});
    torch::optim::Adam adam(model->parameters(), 0.01);
    for (int step = 0; step < 4; ++step) {
      adam.zero_grad();
      const at::Tensor inputs =
          torch::arange(12.0).reshape({4, 3}) * (group.rank() + 1 + step);
      model->forward(inputs).pow(2).mean().backward();
      adam.step();
    }
    for (const at::Tensor& parameter : net->parameters()) {
      const auto all = group.all_gather(parameter.detach());
      EXPECT_TRUE(torch::equal(all[0], all[1]));
    }
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

struct Saved {
  std::vector<at::Tensor> parameters = {};
  BucketLayout buckets = {};
};

/// `steps` after `from`, or from the beginning, of layers whose gradients come
/// in another order than the reverse of their own.
Saved train_on(
    const dist::ProcessGroup& group,
    int steps,
    const Saved& from = {}) {
  torch::nn::ModuleDict net;
  for (const char* name : {"last", "first", "second"}) {
    net->update({{name, torch::nn::Linear(7, 7).ptr()}});
  }
  const auto parameters = net->parameters();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    // Ranks that are threads share the generator: its numbers would differ.
    const torch::NoGradGuard no_grad;
    parameters[i].copy_(
        i < from.parameters.size() ? from.parameters[i]
                                   : torch::arange(parameters[i].numel())
                                         .view_as(parameters[i])
                                         .sin());
  }
  const auto forward = [&net](const at::Tensor& inputs) {
    const auto layer = [&net](const char* name, const at::Tensor& x) {
      return net[name]->as<torch::nn::Linear>()->forward(x).tanh();
    };
    return layer("last", layer("second", layer("first", inputs)));
  };
  struct Net : torch::nn::Module {
    std::function<at::Tensor(const at::Tensor&)> run = {};
    at::Tensor forward(const at::Tensor& inputs) {
      return run(inputs);
    }
  };
  auto whole = std::make_shared<Net>();
  whole->register_module("layers", net.ptr());
  whole->run = forward;
  DistributedDataParallel model(whole, {.process_group = group});
  if (!from.buckets.empty()) {
    model->set_bucket_layout(from.buckets);
  }
  torch::optim::SGD sgd(parameters, 0.3);
  for (int step = 0; step < steps; ++step) {
    sgd.zero_grad();
    const at::Tensor inputs =
        torch::arange(14.0).reshape({2, 7}).add(group.rank() * 0.7).sin();
    model->forward(inputs).pow(3).sum().backward();
    sgd.step();
  }
  Saved saved{.buckets = model->bucket_layout()};
  for (const at::Tensor& parameter : parameters) {
    saved.parameters.push_back(parameter.detach().clone());
  }
  return saved;
}

TEST(DistributedDataParallel, ABucketLayoutKeepsTheBitsOfALongerRun) {
  // Over Gloo: sums over shm do not depend on the layout.
  const auto job = [](const dist::ProcessGroup& group) {
    const Saved half = train_on(group, 5);
    // The gradients of the layer that is used last come first.
    EXPECT_EQ(half.buckets, (BucketLayout{{1, 0, 5, 4, 3, 2}}));
    const Saved resumed = train_on(group, 5, half);
    const Saved whole = train_on(group, 10);
    EXPECT_EQ(resumed.buckets, whole.buckets);
    for (std::size_t i = 0; i < whole.parameters.size(); ++i) {
      EXPECT_TRUE(torch::equal(resumed.parameters[i], whole.parameters[i]));
    }
  };
  EXPECT_THAT(run_thread_ranks(3, job, {.backend = "gloo"}), Each(IsEmpty()));
}

TEST(DistributedDataParallel, ABucketLayoutOfAnotherModelIsRefused) {
  const auto errors = run_thread_ranks(2, [](const dist::ProcessGroup& group) {
    torch::nn::Linear net(3, 1);
    DistributedDataParallel model(net, {.process_group = group});
    EXPECT_THAT(model->bucket_layout(), IsEmpty()) << "nothing has come yet";
    for (const BucketLayout& layout :
         {BucketLayout{{0}}, BucketLayout{{0, 0}}, BucketLayout{{0}, {-1}}}) {
      EXPECT_THROW(model->set_bucket_layout(layout), Exception);
    }
    model->set_bucket_layout({{1}, {0}});
    model->forward(row_of(group.rank())).sum().backward();
    EXPECT_TRUE(torch::equal(net->weight.grad(), torch::full({1, 3}, 1.5)));
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

TEST(DistributedDataParallel, BuffersAreRankZerosAlsoWhenAllIsFrozen) {
  const auto errors = run_thread_ranks(2, [](const dist::ProcessGroup& group) {
    torch::nn::BatchNorm1d net(3);
    DistributedDataParallel model(net, {.process_group = group});
    for (at::Tensor& parameter : net->parameters()) {
      parameter.requires_grad_(false);
    }
    net->eval();
    net->running_mean.fill_(group.rank() + 1.0);
    const torch::NoGradGuard no_grad;
    model->forward(row_of(0));
    EXPECT_TRUE(torch::equal(net->running_mean, torch::ones({3})));
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

// LibTorch does not count what goes through data(), as in BatchNorm's kernels.
TEST(DistributedDataParallel, ForwardTakesOverRankZerosBuffers) {
  const auto errors = run_thread_ranks(2, [](const dist::ProcessGroup& group) {
    torch::nn::BatchNorm1d net(3);
    DistributedDataParallel model(net, {.process_group = group});
    net->eval();
    model->forward(torch::ones({2, 3})).sum().backward();
    net->running_mean.data().fill_(group.rank() * 7.0);
    const auto version = net->running_mean._version();
    model->forward(torch::ones({2, 3})).sum().backward();
    EXPECT_TRUE(torch::equal(net->running_mean, torch::zeros({3})));
    EXPECT_EQ(net->running_mean._version(), version);
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

TEST(DistributedDataParallel, WhatIsIgnoredStaysEachRanksOwn) {
  const auto errors = run_thread_ranks(2, [](const dist::ProcessGroup& group) {
    torch::nn::Linear net(3, 1);
    {
      const torch::NoGradGuard no_grad;
      net->bias.fill_(group.rank() * 1.0);
    }
    DistributedDataParallel model(
        net,
        {.process_group = group, .ignored = {"bias"}});
    EXPECT_EQ(net->bias.item<double>(), group.rank() * 1.0);
    model->forward(row_of(group.rank())).sum().backward();
    EXPECT_EQ(net->weight.grad()[0][0].item<double>(), 1.5);
    EXPECT_EQ(net->bias.grad().item<double>(), 1.0);
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

TEST(DistributedDataParallel, KeysBeginWithModuleAndTheModuleIsTyped) {
  const auto errors = run_thread_ranks(1, [](const dist::ProcessGroup& group) {
    torch::nn::Linear net(3, 1);
    DistributedDataParallel model(net, {.process_group = group});
    EXPECT_EQ(model->module()->options.in_features(), 3);
    EXPECT_THAT(
        state_dict(*model).keys(),
        testing::ElementsAre("module.weight", "module.bias"));
    std::ostringstream text;
    text << model;
    EXPECT_EQ(
        text.str(),
        "DistributedDataParallel(\n  (module): Linear(in_features=3, "
        "out_features=1, bias=True)\n)");
    EXPECT_THROW(
        static_cast<void>(model->module<torch::nn::Conv2dImpl>()),
        Exception);
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

TEST(DistributedDataParallel, ADifferenceIsTheSameErrorOnEveryRank) {
  const auto errors = run_thread_ranks(3, [](const dist::ProcessGroup& group) {
    torch::nn::Linear net(3, group.rank() == 2 ? 5 : 4);
    DistributedDataParallel model(net, {.process_group = group});
  });
  EXPECT_THAT(
      errors,
      Each(AllOf(
          HasSubstr("ranks 0 and 2 differ in 2 lines"),
          HasSubstr("'parameter weight: Float (4, 3)"),
          HasSubstr("'parameter weight: Float (5, 3)"))));
}

TEST(DistributedDataParallel, SparseGradientsOfSomeRanksAreNamed) {
  const auto errors = run_thread_ranks(2, [](const dist::ProcessGroup& group) {
    torch::nn::Embedding net(
        torch::nn::EmbeddingOptions(5, 3).sparse(group.rank() == 1));
    DistributedDataParallel model(net, {.process_group = group});
  });
  EXPECT_THAT(
      errors,
      Each(AllOf(
          HasSubstr("ranks 0 and 1 differ in 1 line"),
          HasSubstr("trained' and '"),
          HasSubstr("trained, sparse'"))));
}

TEST(DistributedDataParallel, OptionsThatDifferAreNamed) {
  const auto errors = run_thread_ranks(2, [](const dist::ProcessGroup& group) {
    torch::nn::Linear net(3, 4);
    DistributedDataParallel model(
        net,
        {.process_group = group, .find_unused_parameters = group.rank() == 1});
  });
  EXPECT_THAT(
      errors,
      Each(HasSubstr(
          "'find_unused_parameters: false' and 'find_unused_parameters: "
          "true'")));
}

TEST(DistributedDataParallel, AModuleThatCannotBeWrappedIsRefused) {
  const auto errors = run_thread_ranks(1, [](const dist::ProcessGroup& group) {
    torch::nn::Linear net(3, 4);
    for (at::Tensor& parameter : net->parameters()) {
      parameter.set_requires_grad(false);
    }
    DistributedDataParallel model(net, {.process_group = group});
  });
  EXPECT_THAT(
      errors,
      Each(HasSubstr(
          "DistributedDataParallel is not needed when a module doesn't have "
          "any parameter that requires a gradient.")));
}

/// Two layers, of which one may be left out.
struct Branches : torch::nn::Module {
  Branches() {
    first = register_module("first", torch::nn::Linear(3, 1));
    second = register_module("second", torch::nn::Linear(3, 1));
  }
  std::pair<at::Tensor, at::Tensor> forward(const at::Tensor& x) {
    return {first->forward(x), second->forward(x)};
  }
  torch::nn::Linear first{nullptr};
  torch::nn::Linear second{nullptr};
};

TEST(DistributedDataParallel, UnusedParametersAreReportedOrFound) {
  for (const bool find : {false, true}) {
    const auto errors =
        run_thread_ranks(2, [find](const dist::ProcessGroup& group) {
          const auto net = std::make_shared<Branches>();
          DistributedDataParallel model(
              net,
              {.process_group = group, .find_unused_parameters = find});
          for (int step = 0; step < 2; ++step) {
            model->forward(row_of(0)).first.sum().backward();
          }
          EXPECT_FALSE(net->second->weight.grad().defined());
        });
    if (find) {
      EXPECT_THAT(errors, Each(IsEmpty()));
    } else {
      EXPECT_THAT(
          errors,
          Each(AllOf(
              HasSubstr("Expected to have finished reduction in the prior "
                        "iteration before starting a new one."),
              HasSubstr("Parameter indices which did not receive grad for "
                        "rank"))));
    }
  }
}

TEST(DistributedDataParallel, AnErrorEndsTheJoining) {
  const auto errors = run_thread_ranks(2, [](const dist::ProcessGroup& group) {
    torch::nn::Linear net(3, 2);
    DistributedDataParallel model(net, {.process_group = group});
    EXPECT_THROW(
        model->join([] { throw std::runtime_error("no more memory"); }),
        std::runtime_error);
    if (group.rank() == 0) { // has no collective outside of `join`
      const torch::NoGradGuard no_grad;
      model->forward(row_of(0));
    }
    at::Tensor sum = torch::ones({2});
    group.all_reduce(sum);
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

// Sums over the ranks of what each has of ten samples: those of one process.
TEST(
    DistributedDataParallel,
    AnEvaluationWithTheExactSamplerIsThatOfOneProcess) {
  const at::Tensor inputs = torch::arange(20.0).view({10, 2}).sin();
  const auto losses = [&](auto& model, const at::Tensor& rows) {
    const torch::NoGradGuard no_grad;
    return model->forward(inputs.index_select(0, rows)).square();
  };
  const auto errors = run_thread_ranks(4, [&](const dist::ProcessGroup& group) {
    torch::nn::Linear net(2, 1);
    DistributedDataParallel model(net, {.process_group = group});
    const DistributedSampler sampler(
        10,
        {.num_replicas = 4,
         .rank = group.rank(),
         .shuffle = false,
         .exact = true});
    const at::Tensor own = losses(model, torch::tensor(sampler.indices()));
    at::Tensor sums = torch::stack(
        {own.sum().to(at::kDouble), torch::tensor(double(own.size(0)))});
    group.all_reduce(sums);
    EXPECT_EQ(sums[1].item<double>(), 10);
    EXPECT_NEAR(
        (sums[0] / sums[1]).item<double>(),
        losses(net, torch::arange(10)).mean().item<double>(),
        1e-6); // the order of the sum
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

} // namespace
} // namespace lockstep
