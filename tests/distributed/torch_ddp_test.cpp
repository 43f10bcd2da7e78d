// SPDX-License-Identifier: BSD-3-Clause
//
// Training by several ranks: PyTorch's cases under their names. Ranks are
// threads, over Gloo; what they train is measured by the same net on all data.
#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/base/error.h"
#include "lockstep/data/samplers.h"
#include "lockstep/distributed/distributed_data_parallel.h"
#include "lockstep/tensor/checkpoint.h"
#include "tests/support/scratch_dir.h"
#include "tests/support/thread_ranks.h"

namespace lockstep {
namespace {

using dist::ProcessGroup;
using dist::run_thread_ranks;
using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;

/// Equal on all ranks.
torch::nn::Sequential two_layers() {
  torch::nn::Sequential net(
      torch::nn::Linear(4, 6),
      torch::nn::ReLU(),
      torch::nn::Linear(6, 3));
  const torch::NoGradGuard no_grad;
  for (at::Tensor& parameter : net->parameters()) {
    parameter.copy_(
        torch::linspace(-0.6, 0.5, parameter.numel()).view_as(parameter));
  }
  return net;
}

at::Tensor whole_batch(int step) {
  return torch::arange(48.0).reshape({12, 4}).mul(0.3).sin() + 0.2 * step;
}

void expect_all_near(
    const std::vector<at::Tensor>& found,
    const std::vector<at::Tensor>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_TRUE(torch::allclose(found[i], expected[i], 1e-5, 1e-6)) << i;
  }
}

/// Two and three ranks with parts of a batch are one with all of it.
void expect_shards_are_the_batch(const DistributedDataParallelOptions& given) {
  for (const int ranks : {1, 2, 3}) {
    const auto errors = run_thread_ranks(ranks, [&](const ProcessGroup& group) {
      auto options = given;
      options.process_group = group;
      auto net = two_layers();
      auto full = two_layers();
      DistributedDataParallel model(net, options);
      torch::optim::SGD sgd(
          model->parameters(),
          torch::optim::SGDOptions(0.1).momentum(0.9));
      torch::optim::SGD full_sgd(
          full->parameters(),
          torch::optim::SGDOptions(0.1).momentum(0.9));
      for (int step = 0; step < 5; ++step) {
        sgd.zero_grad();
        full_sgd.zero_grad();
        const at::Tensor batch = whole_batch(step);
        const at::Tensor own =
            batch.chunk(ranks)[static_cast<std::size_t>(group.rank())];
        model->forward(own).pow(2).mean().backward();
        full->forward(batch).pow(2).mean().backward();
        sgd.step();
        full_sgd.step();
      }
      expect_all_near(net->parameters(), full->parameters());
    });
    EXPECT_THAT(errors, Each(IsEmpty()));
  }
}

TEST(DistributedTest, test_DistributedDataParallelCPU) {
  expect_shards_are_the_batch({});
}

TEST(DistributedTest, test_DistributedDataParallelCPU_grad_is_view) {
  expect_shards_are_the_batch({.gradient_as_bucket_view = true});
}

TEST(DistributedDataParallelTest, test_gloo_backend_cpu_module) {
  expect_shards_are_the_batch({.bucket_cap_mb = 0.0001});
}

TEST(DistributedDataParallelTest, test_gloo_backend_cpu_module_grad_is_view) {
  expect_shards_are_the_batch(
      {.bucket_cap_mb = 0.0001, .gradient_as_bucket_view = true});
}

TEST(DistributedTest, test_DistributedDataParallel_requires_grad) {
  const auto errors = run_thread_ranks(2, [](const ProcessGroup& group) {
    torch::nn::ReLU net;
    DistributedDataParallel model(net, {.process_group = group});
  });
  EXPECT_THAT(
      errors,
      Each(HasSubstr("DistributedDataParallel is not needed when a module "
                     "doesn't have any parameter that requires a gradient.")));
}

TEST(DistributedTest, test_ddp_create_graph) {
  const auto errors = run_thread_ranks(2, [](const ProcessGroup& group) {
    auto net = two_layers();
    DistributedDataParallel model(net, {.process_group = group});
    for (int step = 0; step < 3; ++step) {
      net->zero_grad();
      const at::Tensor own =
          whole_batch(step).chunk(2)[static_cast<std::size_t>(group.rank())];
      model->forward(own).pow(2).mean().backward(
          {},
          /*retain_graph=*/std::nullopt,
          /*create_graph=*/true);
    }
    for (const at::Tensor& parameter : net->parameters()) {
      const auto all = group.all_gather(parameter.grad().detach());
      EXPECT_TRUE(torch::equal(all[0], all[1]));
    }
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

TEST(DistributedTest, test_ddp_logging_data_cpu) {
  const auto body = [](const ProcessGroup& group) {
    auto net = two_layers();
    DistributedDataParallel model(
        net,
        {.process_group = group, .bucket_cap_mb = 0.0001});
    for (int step = 0; step < 2; ++step) {
      model->forward(whole_batch(step)).sum().backward();
    }
    auto data = model->get_ddp_logging_data();
    EXPECT_EQ(data.ints_map["world_size"], 2);
    EXPECT_EQ(data.ints_map["rank"], group.rank());
    EXPECT_EQ(data.strs_map["module_name"], "Sequential");
    EXPECT_EQ(data.strs_map["backend_name"], "gloo");
    EXPECT_EQ(data.strs_map["dtypes"], "float");
    EXPECT_EQ(data.ints_map["num_parameter_tensors"], 4);
    EXPECT_EQ(data.ints_map["total_parameter_size_bytes"], 4 * (30 + 21));
    EXPECT_EQ(data.ints_map["broadcast_buffers"], 1);
    EXPECT_EQ(data.ints_map["find_unused_parameters"], 0);
    EXPECT_EQ(data.ints_map["gradient_as_bucket_view"], 0);
    EXPECT_EQ(data.ints_map["iteration"], 1);
    EXPECT_FALSE(data.strs_map["bucket_sizes"].empty());
    EXPECT_GT(data.ints_map["avg_forward_compute_time"], 0);
  };
  EXPECT_THAT(run_thread_ranks(2, body, {.backend = "gloo"}), Each(IsEmpty()));
}

TEST(DistributedTest, test_ddp_python_error_logged) {
  const auto errors = run_thread_ranks(1, [](const ProcessGroup& group) {
    auto net = two_layers();
    DistributedDataParallel model(net, {.process_group = group});
    EXPECT_THROW(model->register_comm_hook({}), Exception);
    auto data = model->get_ddp_logging_data();
    EXPECT_EQ(data.ints_map["has_error"], 1);
    EXPECT_THAT(
        data.strs_map["error"],
        HasSubstr("Communication hook must be callable."));
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

/// Steps of which every second is unsynchronised: gradients differ after it,
/// and are the ranks' average after the others.
void expect_accumulation(
    const DistributedDataParallelOptions& given,
    const dist::CommHook& hook = {}) {
  const auto errors = run_thread_ranks(2, [&](const ProcessGroup& group) {
    auto options = given;
    options.process_group = group;
    auto net = two_layers();
    auto full = two_layers();
    DistributedDataParallel model(net, options);
    if (hook.run) {
      model->register_comm_hook(hook);
    }
    for (int step = 0; step < 6; ++step) {
      const auto own = static_cast<std::size_t>(group.rank());
      const at::Tensor batch = whole_batch(step);
      const bool is_synchronised = step % 2 == 1;
      if (is_synchronised) {
        model->forward(batch.chunk(2)[own]).pow(2).mean().backward();
      } else {
        const auto no_sync = model->no_sync();
        model->forward(batch.chunk(2)[own]).pow(2).mean().backward();
      }
      full->forward(batch).pow(2).mean().backward();
      const auto all = group.all_gather(net->parameters()[0].grad());
      EXPECT_EQ(torch::equal(all[0], all[1]), is_synchronised);
      if (is_synchronised) {
        for (std::size_t i = 0; i < net->parameters().size(); ++i) {
          EXPECT_TRUE(torch::allclose(
              net->parameters()[i].grad(),
              full->parameters()[i].grad(),
              1e-5,
              1e-6));
        }
        net->zero_grad();
        full->zero_grad();
      }
    }
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

TEST(DistributedTest, test_accumulate_gradients_no_sync) {
  expect_accumulation({});
}

TEST(DistributedTest, test_accumulate_gradients_no_sync_grad_is_view) {
  expect_accumulation({.gradient_as_bucket_view = true});
}

TEST(DistributedTest, test_accumulate_gradients_no_sync_allreduce_hook) {
  expect_accumulation({}, dist::allreduce_hook());
}

TEST(
    DistributedTest,
    test_accumulate_gradients_no_sync_allreduce_with_then_hook) {
  expect_accumulation(
      {},
      {.name = "then", .run = [](const auto& group, dist::GradBucket& bucket) {
         return dist::all_reduce_async(group, bucket.buffer())
             .then([size = group.size()](const at::Tensor& sum) {
               return sum * 0.5 / size;
             })
             .then([](const at::Tensor& half) { return half * 2; });
       }});
}

TEST(DistributedTest, test_DistributedSampler_padding) {
  for (const std::int64_t size : {1, 3, 7, 10, 16}) {
    for (const bool drop_last : {false, true}) {
      std::set<std::size_t> lengths;
      for (int rank = 0; rank < 4; ++rank) {
        const DistributedSampler sampler(
            size,
            {.num_replicas = 4, .rank = rank, .drop_last = drop_last});
        lengths.insert(sampler.indices().size());
      }
      const std::int64_t expected =
          drop_last && size % 4 != 0 ? (size + 3) / 4 - 1 : (size + 3) / 4;
      EXPECT_EQ(lengths.size(), 1U);
      EXPECT_EQ(
          *lengths.begin(),
          static_cast<std::size_t>(std::max<std::int64_t>(expected, 0)));
    }
  }
}

TEST(DistributedTest, test_ddp_sync_module_states) {
  const auto errors = run_thread_ranks(3, [](const ProcessGroup& group) {
    torch::nn::BatchNorm1d net(3);
    const torch::NoGradGuard no_grad;
    net->weight.fill_(group.rank() + 5.0);
    net->running_var.fill_(group.rank() + 7.0);
    net->num_batches_tracked.fill_(group.rank() + 9);
    DistributedDataParallel model(net, {.process_group = group});
    EXPECT_EQ(net->weight[0].item<double>(), 5.0);
    EXPECT_EQ(net->running_var[0].item<double>(), 7.0);
    EXPECT_EQ(net->num_batches_tracked.item<int>(), 9);
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

TEST(DistributedTest, test_ddp_broadcast_buffer) {
  const auto errors = run_thread_ranks(2, [](const ProcessGroup& group) {
    torch::nn::BatchNorm1d net(2);
    DistributedDataParallel model(net, {.process_group = group});
    net->eval();
    for (int step = 0; step < 3; ++step) {
      net->running_mean.fill_(group.rank() + step);
      model->forward(torch::ones({2, 2})).sum().backward();
      EXPECT_EQ(net->running_mean[0].item<int>(), step);
    }
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

// Rank 0 alone, without gradients: nobody else is needed.
TEST(DistributedTest, test_ddp_inference) {
  const auto errors = run_thread_ranks(2, [](const ProcessGroup& group) {
    torch::nn::Sequential net(
        torch::nn::Linear(4, 3),
        torch::nn::BatchNorm1d(3));
    DistributedDataParallel model(
        net,
        {.process_group = group, .forward_sync_buffers = false});
    if (group.rank() == 0) {
      model->eval();
      const torch::NoGradGuard no_grad;
      for (int step = 0; step < 5; ++step) {
        EXPECT_TRUE(torch::equal(
            model->forward(whole_batch(step)),
            net->forward(whole_batch(step))));
      }
    }
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

// Three steps, a checkpoint, three more: the same as six. Both with "module."
// in the keys and without.
TEST(DistributedDataParallelTest, test_save_load_checkpoint) {
  const test::ScratchDir folder;
  const auto errors = run_thread_ranks(2, [&](const ProcessGroup& group) {
    auto steps = [&](auto& model, int from, int to) {
      torch::optim::SGD sgd(model->parameters(), 0.1);
      for (int step = from; step < to; ++step) {
        sgd.zero_grad();
        const auto parts = whole_batch(step).chunk(2);
        model->forward(parts[static_cast<std::size_t>(group.rank())])
            .pow(2)
            .mean()
            .backward();
        sgd.step();
      }
    };
    auto net = two_layers();
    DistributedDataParallel model(net, {.process_group = group});
    steps(model, 0, 3);
    const std::string with_prefix = folder / "with_prefix.pt";
    const std::string plain = folder / "plain.pt";
    if (group.rank() == 0) {
      save(state_dict(*model), with_prefix);
      save(state_dict(*net), plain);
    }
    group.barrier();
    steps(model, 3, 6);
    for (const std::string& file : {with_prefix, plain}) {
      auto other = two_layers();
      DistributedDataParallel resumed(other, {.process_group = group});
      load_weights(*other, file);
      steps(resumed, 3, 6);
      for (std::size_t i = 0; i < net->parameters().size(); ++i) {
        EXPECT_TRUE(torch::equal(other->parameters()[i], net->parameters()[i]));
      }
    }
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

void expect_sparse_gradients(bool views) {
  const auto errors = run_thread_ranks(2, [&](const ProcessGroup& group) {
    torch::nn::EmbeddingBag table(
        torch::nn::EmbeddingBagOptions(10, 3).sparse(true).mode(torch::kSum));
    torch::nn::EmbeddingBag full(table->options);
    {
      const torch::NoGradGuard no_grad;
      table->weight.fill_(0.5);
      full->weight.fill_(0.5);
    }
    DistributedDataParallel model(
        table,
        {.process_group = group, .gradient_as_bucket_view = views});
    const at::Tensor rows = torch::tensor({{1, 2}, {3, 3}, {4, 5}, {9, 1}});
    model->forward(rows.chunk(2)[static_cast<std::size_t>(group.rank())])
        .mean()
        .backward();
    full->forward(rows).mean().backward();
    EXPECT_TRUE(table->weight.grad().is_sparse());
    EXPECT_TRUE(torch::allclose(
        table->weight.grad().to_dense(),
        full->weight.grad().to_dense()));
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

TEST(DistributedDataParallelTest, test_sparse_gradients) {
  expect_sparse_gradients(false);
}

TEST(DistributedDataParallelTest, test_sparse_gradients_grad_is_view) {
  expect_sparse_gradients(true);
}

} // namespace
} // namespace lockstep
