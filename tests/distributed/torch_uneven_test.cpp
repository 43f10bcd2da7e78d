// SPDX-License-Identifier: BSD-3-Clause
//
// Ranks with different numbers of batches: PyTorch's cases under their names.
#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/base/error.h"
#include "lockstep/distributed/distributed_data_parallel.h"
#include "tests/support/thread_ranks.h"

namespace lockstep {
namespace {

using dist::run_thread_ranks;
using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;

torch::nn::Linear one_weight() {
  torch::nn::Linear net(torch::nn::LinearOptions(1, 1).bias(false));
  const torch::NoGradGuard no_grad;
  net->weight.fill_(0.5);
  return net;
}

// Of gradients 1 and 2: together 1.5; the rank that is left alone has half of
// its own 2, or all of it.
TEST(DistributedTest, test_ddp_grad_div_uneven_inputs) {
  for (const bool by_all : {true, false}) {
    const auto errors = run_thread_ranks(2, [&](const auto& group) {
      auto net = one_weight();
      DistributedDataParallel model(net, {.process_group = group});
      const int steps = group.rank() == 0 ? 2 : 5;
      model->join(
          [&] {
            for (int step = 0; step < steps; ++step) {
              net->zero_grad();
              const at::Tensor inputs = torch::full({1, 1}, group.rank() + 1.0);
              model->forward(inputs).sum().backward();
              const double alone = by_all ? 1.0 : 2.0;
              EXPECT_EQ(
                  net->weight.grad().template item<double>(),
                  step < 2 ? 1.5 : alone);
            }
          },
          {.divide_by_initial_world_size = by_all});
    });
    EXPECT_THAT(errors, Each(IsEmpty()));
  }
}

// The model of the rank that was last, on all: a step for each batch, of 1/3.
TEST(DistributedTest, test_ddp_join_model_equivalence) {
  const auto errors = run_thread_ranks(3, [](const auto& group) {
    auto net = one_weight();
    DistributedDataParallel model(net, {.process_group = group});
    torch::optim::SGD sgd(model->parameters(), 0.1);
    model->join([&] {
      for (int step = 0; step < 3 * (group.rank() + 1); ++step) {
        sgd.zero_grad();
        model->forward(torch::ones({1, 1})).sum().backward();
        sgd.step();
      }
    });
    constexpr double kBatches = 3 + 6 + 9;
    EXPECT_NEAR(
        net->weight.template item<double>(),
        0.5 - 0.1 * kBatches / 3,
        1e-6);
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

struct Heads : torch::nn::Module {
  Heads() {
    first = register_module("first", torch::nn::Linear(4, 6));
    norm = register_module("norm", torch::nn::BatchNorm1d(6));
    left = register_module("left", torch::nn::Linear(6, 2));
    right = register_module("right", torch::nn::Linear(6, 2));
    first->bias.set_requires_grad(false); // is not among the reducer's
  }
  at::Tensor forward(const at::Tensor& x, bool goes_left) {
    const at::Tensor inner = norm->forward(first->forward(x));
    return goes_left ? left->forward(inner) : right->forward(inner);
  }
  torch::nn::Linear first{nullptr};
  torch::nn::BatchNorm1d norm{nullptr};
  torch::nn::Linear left{nullptr};
  torch::nn::Linear right{nullptr};
};

// With everything that makes collectives: buffers, unused parameters, several
// buckets, a hook, no_sync. All ranks end with the same bits.
TEST(DistributedTest, test_ddp_uneven_inputs) {
  for (const bool with_hook : {false, true}) {
    const auto errors = run_thread_ranks(3, [&](const auto& group) {
      auto net = std::make_shared<Heads>();
      DistributedDataParallel model(
          net,
          {.process_group = group,
           .bucket_cap_mb = 0.0001,
           .find_unused_parameters = true});
      if (with_hook) {
        model->register_comm_hook(dist::fp16_compress_hook());
      }
      torch::optim::SGD sgd(model->parameters(), 0.1);
      model->join([&] {
        for (int step = 0; step < 4 + 3 * (2 - group.rank()); ++step) {
          sgd.zero_grad();
          const at::Tensor inputs = torch::randn({5, 4});
          {
            const auto no_sync = model->no_sync();
            model->forward(inputs, true).pow(2).mean().backward();
          }
          model->forward(inputs, step % 2 == 0).pow(2).mean().backward();
          sgd.step();
        }
      });
      auto tensors = net->parameters();
      for (const at::Tensor& buffer : net->buffers()) {
        tensors.push_back(buffer);
      }
      for (const at::Tensor& tensor : tensors) {
        const auto all = group.all_gather(tensor.detach());
        EXPECT_TRUE(torch::equal(all[0], all[1]));
        EXPECT_TRUE(torch::equal(all[0], all[2]));
      }
      EXPECT_EQ(
          model->get_ddp_logging_data().ints_map["join_uneven_inputs"],
          1);
    });
    EXPECT_THAT(errors, Each(IsEmpty()));
  }
}

TEST(DistributedTest, test_ddp_uneven_inputs_stop_iteration_sync_bn) {
  const auto errors = run_thread_ranks(2, [](const auto& group) {
    torch::nn::Sequential net(
        torch::nn::Linear(3, 4),
        torch::nn::BatchNorm1d(4));
    convert_sync_batchnorm(*net, group);
    DistributedDataParallel model(net, {.process_group = group});
    model->join(
        [&] {
          for (int step = 0; step < 3 + group.rank(); ++step) {
            model->forward(torch::randn({4, 3})).sum().backward();
          }
        },
        {.throw_on_early_termination = true});
  });
  EXPECT_THAT(errors[0], HasSubstr("Rank 0 exhausted all inputs."));
  EXPECT_THAT(
      errors[1],
      HasSubstr("Detected at least one rank that exhausted inputs. Throwing "
                "across all ranks."));
}

TEST(DistributedTest, test_ddp_uneven_input_join_disable) {
  const auto errors = run_thread_ranks(2, [](const auto& group) {
    auto net = one_weight();
    DistributedDataParallel model(net, {.process_group = group});
    model->join(
        [&] {
          for (int step = 0; step < 3; ++step) {
            net->zero_grad();
            model->forward(torch::full({1, 1}, group.rank() + 1.0))
                .sum()
                .backward();
            EXPECT_EQ(net->weight.grad().template item<double>(), 1.5);
          }
        },
        {.enable = false});
    EXPECT_EQ(model->get_ddp_logging_data().ints_map["join_uneven_inputs"], 0);
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

TEST(DistributedTest, test_ddp_uneven_input_exception) {
  const auto errors = run_thread_ranks(2, [](const auto& group) {
    auto net = one_weight();
    DistributedDataParallel model(net, {.process_group = group});
    model->join([] { throw std::runtime_error("Intentional error"); });
  });
  EXPECT_THAT(errors, Each(testing::StrEq("Intentional error")));
}

// After it, a forward pass of one rank alone is possible again.
TEST(Join, EndsWithTheLoop) {
  const auto errors = run_thread_ranks(2, [](const auto& group) {
    auto net = one_weight();
    DistributedDataParallel model(net, {.process_group = group});
    model->join([&] {
      for (int step = 0; step < 1 + group.rank(); ++step) {
        model->forward(torch::ones({1, 1})).sum().backward();
      }
    });
    if (group.rank() == 1) {
      const torch::NoGradGuard no_grad;
      model->forward(torch::ones({1, 1}));
    }
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

} // namespace
} // namespace lockstep
