// SPDX-License-Identifier: BSD-3-Clause
//
// Communication hooks: the cases of PyTorch's own tests under their names, and
// what they do not ask. Ranks are threads, over Gloo.
#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/base/strings.h"
#include "lockstep/distributed/comm_hook.h"
#include "lockstep/distributed/distributed_data_parallel.h"
#include "lockstep/optim/optimizers.h"
#include "tests/support/thread_ranks.h"

namespace lockstep {
namespace {

using dist::run_thread_ranks;
using testing::AllOf;
using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;

using Ranks = std::vector<std::vector<at::Tensor>>;

/// A net that starts equal on all ranks.
torch::nn::Sequential small_net() {
  torch::nn::Sequential net(
      torch::nn::Linear(6, 8),
      torch::nn::ReLU(),
      torch::nn::Linear(8, 4));
  const torch::NoGradGuard no_grad;
  for (at::Tensor& parameter : net->parameters()) {
    parameter.copy_(
        torch::linspace(-0.5, 0.5, parameter.numel()).view_as(parameter));
  }
  return net;
}

at::Tensor batch_of(int rank, int step) {
  return torch::arange(30.0).reshape({5, 6}).mul(0.1 * (rank + 1)).sin() +
         0.1 * step;
}

struct Job {
  int ranks = 2;
  dist::CommHook hook = {};
  DistributedDataParallelOptions options = {};
  std::string optimizer = "sgd";
  int steps = 4;
};

/// Trains a net on each rank; each rank's parameters.
Ranks train(const Job& job) {
  Ranks parameters(static_cast<std::size_t>(job.ranks));
  const auto errors =
      run_thread_ranks(job.ranks, [&](const dist::ProcessGroup& group) {
        const auto net = small_net();
        auto options = job.options;
        options.process_group = group;
        DistributedDataParallel model(net, options);
        if (job.hook.run) {
          model->register_comm_hook(job.hook);
        }
        torch::optim::SGD sgd(
            model->parameters(),
            torch::optim::SGDOptions(0.1).momentum(0.9));
        torch::optim::Adam adam(model->parameters(), 0.01);
        torch::optim::AdamW adamw(model->parameters(), 0.01);
        torch::optim::Optimizer* optimizer = &sgd;
        if (job.optimizer != "sgd") {
          optimizer = &adam;
        }
        if (job.optimizer == "adamw") {
          optimizer = &adamw;
        }
        for (int step = 0; step < job.steps; ++step) {
          optimizer->zero_grad();
          model->forward(batch_of(group.rank(), step)).pow(2).mean().backward();
          optimizer->step();
        }
        auto& own = parameters[static_cast<std::size_t>(group.rank())];
        for (const at::Tensor& parameter : net->parameters()) {
          own.push_back(parameter.detach().clone());
        }
      });
  EXPECT_THAT(errors, Each(IsEmpty()));
  return parameters;
}

void expect_equal(const Ranks& found, const Ranks& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t rank = 0; rank < found.size(); ++rank) {
    ASSERT_EQ(found[rank].size(), expected[rank].size());
    for (std::size_t i = 0; i < found[rank].size(); ++i) {
      EXPECT_TRUE(torch::equal(found[rank][i], expected[rank][i]))
          << "rank " << rank << ", parameter " << i;
    }
  }
}

double distance(const Ranks& a, const Ranks& b) {
  double largest = 0;
  for (std::size_t i = 0; i < a.front().size(); ++i) {
    const at::Tensor difference = a.front()[i] - b.front()[i];
    largest = std::max(largest, difference.abs().max().item<double>());
  }
  return largest;
}

TEST(DistributedTest, test_ddp_hook_parity_allreduce) {
  // Without a hook c10d multiplies by the inverse: the same for powers of two.
  for (const int ranks : {2, 4}) {
    expect_equal(
        train({.ranks = ranks, .hook = dist::allreduce_hook()}),
        train({.ranks = ranks}));
  }
}

TEST(DistributedTest, test_ddp_hook_parity_allreduce_process_group) {
  // The hook gets the group that the wrapper works in.
  dist::CommHook counted = dist::allreduce_hook();
  counted.run = [](const dist::ProcessGroup& group, dist::GradBucket& bucket) {
    EXPECT_EQ(group.size(), 2);
    return dist::all_reduce_async(group, bucket.buffer().div_(group.size()));
  };
  expect_equal(train({.hook = counted}), train({}));
}

void expect_optimizer_parity(const std::string& optimizer) {
  for (const bool views : {false, true}) {
    const Job plain{
        .options = {.gradient_as_bucket_view = views},
        .optimizer = optimizer};
    Job hooked = plain;
    hooked.hook = dist::allreduce_hook();
    expect_equal(train(hooked), train(plain));
  }
}

TEST(DistributedTest, test_ddp_hook_with_optimizer_parity_sgd) {
  expect_optimizer_parity("sgd");
}

TEST(DistributedTest, test_ddp_hook_with_optimizer_parity_adam) {
  expect_optimizer_parity("adam");
}

TEST(DistributedTest, test_ddp_hook_with_optimizer_parity_adamw) {
  expect_optimizer_parity("adamw");
}

// Within its first steps PowerSGD is an allreduce; later it is near one, and
// equal on all ranks.
TEST(DistributedTest, test_ddp_hook_parity_powerSGD) {
  const auto state_of = [](std::int64_t rank, std::int64_t start) {
    return dist::PowerSGDOptions{
        .matrix_approximation_rank = rank,
        .start_power_sgd_iter = start,
        .min_compression_rate = 0.5};
  };
  const auto run = [&](const dist::PowerSGDOptions& options, int steps) {
    // Each rank has its own state: one hook for each would share it.
    std::vector<std::shared_ptr<dist::PowerSGDState>> states;
    for (int rank = 0; rank < 2; ++rank) {
      states.push_back(std::make_shared<dist::PowerSGDState>(options));
    }
    const dist::CommHook hook{
        .name = "powerSGD_hook",
        .run = [states](
                   const dist::ProcessGroup& group,
                   dist::GradBucket& bucket) -> dist::TensorFuture {
          return states[static_cast<std::size_t>(group.rank())]->average(
              group,
              bucket);
        }};
    return train({.hook = hook, .steps = steps});
  };
  expect_equal(run(state_of(1, 100), 4), train({.steps = 4}));
  for (const std::int64_t rank : {1, 2, 4}) {
    const Ranks compressed = run(state_of(rank, 2), 6);
    expect_equal({compressed[1]}, {compressed[0]});
    const Ranks exact = train({.steps = 6});
    EXPECT_GT(distance(compressed, exact), 0);
    EXPECT_LT(distance(compressed, exact), 0.05) << "rank " << rank;
  }
}

TEST(PowerSGD, OptionsThatPythonRefusesAreRefusedInItsWords) {
  try {
    const dist::PowerSGDState state({.start_power_sgd_iter = 1});
    ADD_FAILURE() << "no error";
  } catch (const std::exception& error) {
    EXPECT_THAT(
        error.what(),
        HasSubstr("Expect `start_powerSGD_iter` > 1 if `use_error_feedback` or "
                  "`warm_start` is enabled"));
  }
}

// A run that is interrupted and goes on with what was saved has the bits of one
// that was not.
TEST(DistributedTest, test_ddp_hook_pickling_powerSGD) {
  const dist::PowerSGDOptions options{
      .matrix_approximation_rank = 2,
      .start_power_sgd_iter = 2,
      .min_compression_rate = 0.5,
      .warm_start = false};
  const auto run = [&](bool reloads) {
    Ranks results(2);
    const auto errors =
        run_thread_ranks(2, [&](const dist::ProcessGroup& group) {
          const auto net = small_net();
          auto state = std::make_shared<dist::PowerSGDState>(options);
          DistributedDataParallel model(net, {.process_group = group});
          model->register_comm_hook(dist::power_sgd_hook(state));
          torch::optim::SGD sgd(model->parameters(), 0.1);
          for (int step = 0; step < 6; ++step) {
            if (reloads && step == 4) {
              const StateDict saved = state->state_dict();
              *state = dist::PowerSGDState(options);
              state->load_state_dict(saved);
              EXPECT_EQ(state->iter(), 4);
            }
            sgd.zero_grad();
            model->forward(batch_of(group.rank(), step))
                .pow(2)
                .mean()
                .backward();
            sgd.step();
          }
          for (const at::Tensor& parameter : net->parameters()) {
            results[static_cast<std::size_t>(group.rank())].push_back(
                parameter.detach().clone());
          }
        });
    EXPECT_THAT(errors, Each(IsEmpty()));
    return results;
  };
  expect_equal(run(true), run(false));
}

TEST(DistributedTest, test_ddp_comm_hook_logging) {
  const auto errors = run_thread_ranks(1, [](const dist::ProcessGroup& group) {
    const auto net = small_net();
    DistributedDataParallel model(net, {.process_group = group});
    EXPECT_FALSE(model->get_ddp_logging_data().strs_map.contains("comm_hook"));
    model->register_comm_hook(dist::fp16_compress_hook());
    EXPECT_EQ(
        model->get_ddp_logging_data().strs_map["comm_hook"],
        "fp16_compress_hook");
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

TEST(DistributedDataParallelTest, test_ddp_comm_hook_future_passing_cpu) {
  const auto errors = run_thread_ranks(2, [](const dist::ProcessGroup& group) {
    torch::nn::Linear net(3, 1);
    DistributedDataParallel model(net, {.process_group = group});
    model->register_comm_hook(
        {.name = "then",
         .run = [](const dist::ProcessGroup& ranks, dist::GradBucket& bucket) {
           return dist::all_reduce_async(ranks, bucket.buffer())
               .then([](const at::Tensor& sum) { return sum * 10; });
         }});
    for (int step = 0; step < 3; ++step) {
      net->zero_grad();
      model->forward(torch::full({1, 3}, group.rank() + 1.0)).sum().backward();
      EXPECT_TRUE(torch::equal(net->weight.grad(), torch::full({1, 3}, 30.0)));
    }
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

TEST(DistributedDataParallelTest, test_ddp_invalid_comm_hook_init) {
  const auto errors = run_thread_ranks(1, [](const dist::ProcessGroup& group) {
    torch::nn::Linear net(3, 1);
    DistributedDataParallel model(net, {.process_group = group});
    model->register_comm_hook({.name = "nothing"});
  });
  EXPECT_THAT(errors, Each(HasSubstr("Communication hook must be callable.")));
}

TEST(DistributedDataParallelTest, test_ddp_invalid_comm_hook_return_type) {
  const auto with = [](std::function<at::Tensor(const at::Tensor&)> result) {
    return run_thread_ranks(2, [&](const dist::ProcessGroup& group) {
      torch::nn::Linear net(3, 1);
      DistributedDataParallel model(net, {.process_group = group});
      model->register_comm_hook(
          {.name = "odd",
           .run = [&](const auto&, dist::GradBucket& bucket)
               -> dist::TensorFuture { return result(bucket.buffer()); }});
      model->forward(torch::ones({1, 3})).sum().backward();
    });
  };
  EXPECT_THAT(
      with([](const at::Tensor&) { return at::Tensor(); }),
      Each(HasSubstr("communication hook 'odd' gave nothing, expected Float "
                     "(4,)")));
  EXPECT_THAT(
      with([](const at::Tensor& buffer) { return buffer.slice(0, 1); }),
      Each(HasSubstr("gave Float (3,), expected Float (4,)")));
  EXPECT_THAT(
      with([](const at::Tensor& buffer) { return buffer.to(at::kHalf); }),
      Each(HasSubstr("gave Half (4,), expected Float (4,)")));
}

TEST(DistributedDataParallelTest, test_ddp_comm_hook_register_just_once) {
  const auto errors = run_thread_ranks(1, [](const dist::ProcessGroup& group) {
    torch::nn::Linear net(3, 1);
    DistributedDataParallel model(net, {.process_group = group});
    model->register_comm_hook(dist::allreduce_hook());
    model->register_comm_hook(dist::allreduce_hook());
  });
  EXPECT_THAT(
      errors,
      Each(HasSubstr("register_comm_hook or register_builtin_comm_hook can "
                     "only be called once.")));
}

TEST(DistributedDataParallelTest, test_ddp_comm_hook_sparse_gradients) {
  const auto errors = run_thread_ranks(2, [](const dist::ProcessGroup& group) {
    torch::nn::Embedding table(torch::nn::EmbeddingOptions(6, 2).sparse(true));
    DistributedDataParallel model(table, {.process_group = group});
    model->register_comm_hook(dist::allreduce_hook());
    model->forward(torch::tensor({group.rank(), 4})).sum().backward();
    const at::Tensor gradient = table->weight.grad();
    EXPECT_TRUE(gradient.is_sparse());
    EXPECT_TRUE(torch::equal(
        gradient.to_dense().select(1, 0),
        torch::tensor({0.5, 0.5, 0.0, 0.0, 1.0, 0.0})));
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

// Gradients that are views of the buckets: LibTorch's optimizers clear them,
// either way, and train to the same bits.
TEST(GradientAsBucketView, OptimizersOfLibTorchClearThem) {
  for (const bool to_none : {true, false}) {
    const auto errors =
        run_thread_ranks(2, [&](const dist::ProcessGroup& group) {
          const auto net = small_net();
          DistributedDataParallel model(
              net,
              {.process_group = group,
               .bucket_cap_mb = 0.00015,
               .gradient_as_bucket_view = true});
          torch::optim::SGD sgd(model->parameters(), 0.1);
          const auto other = small_net();
          DistributedDataParallel plain(
              other,
              {.process_group = group, .bucket_cap_mb = 0.00015});
          torch::optim::SGD plain_sgd(plain->parameters(), 0.1);
          for (int step = 0; step < 4; ++step) {
            sgd.zero_grad(to_none);
            plain_sgd.zero_grad(to_none);
            const at::Tensor inputs = batch_of(group.rank(), step);
            model->forward(inputs).pow(2).mean().backward();
            plain->forward(inputs).pow(2).mean().backward();
            sgd.step();
            plain_sgd.step();
          }
          const auto parameters = net->parameters();
          for (std::size_t i = 0; i < parameters.size(); ++i) {
            EXPECT_TRUE(torch::equal(parameters[i], other->parameters()[i]));
          }
          // Still in one piece of memory with another's: views.
          EXPECT_GT(
              parameters[1].grad().storage().nbytes(),
              parameters[1].grad().nbytes());
        });
    EXPECT_THAT(errors, Each(IsEmpty()));
  }
}

} // namespace
} // namespace lockstep
