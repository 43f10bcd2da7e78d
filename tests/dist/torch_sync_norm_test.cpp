// SPDX-License-Identifier: BSD-3-Clause
//
// BatchNorm over the batches of all ranks: PyTorch's cases under their names.
// The layers are LibTorch's, held as programs hold them; the measure is the
// same net on the whole batch.
#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/base/error.h"
#include "lockstep/dist/distributed_data_parallel.h"
#include "lockstep/dist/sync_batch_norm.h"
#include "lockstep/dist/thread_ranks.h"

namespace lockstep {
namespace {

using dist::run_thread_ranks;
using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;

/// A user's net, which holds its BatchNorm by its own type.
struct NormNetImpl : torch::nn::Module {
  explicit NormNetImpl(bool affine = true) {
    const auto conv = torch::nn::Conv2dOptions(3, 5, 3).padding(1);
    conv1 = register_module("conv1", torch::nn::Conv2d(conv));
    norm = register_module(
        "norm",
        torch::nn::BatchNorm2d(
            torch::nn::BatchNorm2dOptions(5).affine(affine)));
    conv2 = register_module(
        "conv2",
        torch::nn::Conv2d(torch::nn::Conv2dOptions(5, 2, 1)));
    const torch::NoGradGuard no_grad;
    for (const at::Tensor& parameter : parameters()) {
      parameter.copy_(
          torch::linspace(-0.7, 0.9, parameter.numel()).view_as(parameter));
    }
  }
  at::Tensor forward(const at::Tensor& x) {
    return conv2->forward(torch::relu(norm->forward(conv1->forward(x))));
  }
  torch::nn::Conv2d conv1{nullptr};
  torch::nn::BatchNorm2d norm{nullptr};
  torch::nn::Conv2d conv2{nullptr};
};
TORCH_MODULE(NormNet);

/// The two agree within what float's rounding allows.
void expect_near(const at::Tensor& found, const at::Tensor& expected) {
  EXPECT_TRUE(torch::allclose(found, expected, 1e-6, 1e-6))
      << "off by " << (found - expected).abs().max().item<double>();
}

struct Case {
  /// Samples of each rank.
  std::vector<std::int64_t> sizes = {4, 4};
  std::function<at::Tensor(const at::Tensor&)> prepare =
      [](const at::Tensor& x) { return x; };
  std::vector<std::int64_t> shape = {3, 6, 5};
};

/// Trains `net` on each rank's part and another one on all parts; outputs,
/// gradients and running statistics agree.
template <class Make>
void expect_as_full_batch(const Case& given, const Make& make) {
  std::int64_t total = 0;
  for (const std::int64_t size : given.sizes) {
    total += size;
  }
  std::vector<std::int64_t> shape{total};
  shape.insert(shape.end(), given.shape.begin(), given.shape.end());
  torch::manual_seed(3);
  const at::Tensor all = torch::randn(shape) * 2 + 1;
  const int ranks = static_cast<int>(given.sizes.size());
  const auto errors = run_thread_ranks(ranks, [&](const auto& group) {
    auto net = make();
    auto full = make();
    EXPECT_EQ(convert_sync_batchnorm(*net, group), 1);
    DistributedDataParallel model(net, {.process_group = group});
    torch::optim::SGD sgd(model->parameters(), 0.01);
    torch::optim::SGD full_sgd(full->parameters(), 0.01);
    std::int64_t from = 0;
    for (int rank = 0; rank < group.rank(); ++rank) {
      from += given.sizes[static_cast<std::size_t>(rank)];
    }
    const auto size = given.sizes[static_cast<std::size_t>(group.rank())];
    for (int step = 0; step < 3; ++step) {
      sgd.zero_grad();
      full_sgd.zero_grad();
      const at::Tensor own = given.prepare(all.narrow(0, from, size));
      const at::Tensor outputs = model->forward(own);
      const at::Tensor expected = full->forward(given.prepare(all));
      expect_near(outputs, expected.narrow(0, from, size));
      // Averaged over the ranks: the mean over all samples.
      (outputs.pow(2).sum() * group.size() / expected.numel()).backward();
      expected.pow(2).mean().backward();
      for (std::size_t i = 0; i < net->parameters().size(); ++i) {
        expect_near(net->parameters()[i].grad(), full->parameters()[i].grad());
      }
      sgd.step();
      full_sgd.step();
    }
    for (std::size_t i = 0; i < net->buffers().size(); ++i) {
      expect_near(
          net->buffers()[i].to(at::kDouble),
          full->buffers()[i].to(at::kDouble));
    }
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

TEST(DistributedTest, test_DistributedDataParallel_SyncBatchNorm) {
  expect_as_full_batch({.sizes = {4, 4}}, [] { return NormNet(); });
  expect_as_full_batch({.sizes = {2, 2, 2}}, [] { return NormNet(); });
}

TEST(
    DistributedTest,
    test_DistributedDataParallel_SyncBatchNorm_Channels_Last) {
  expect_as_full_batch(
      {.prepare =
           [](const at::Tensor& x) {
             return x.contiguous(at::MemoryFormat::ChannelsLast);
           }},
      [] { return NormNet(); });
}

TEST(DistributedTest, test_DistributedDataParallel_SyncBatchNorm_No_Affine) {
  expect_as_full_batch({}, [] { return NormNet(/*affine=*/false); });
}

TEST(DistributedTest, test_DistributedDataParallel_SyncBatchNorm_2D_Input) {
  const auto make = [] {
    torch::nn::Sequential net(
        torch::nn::Linear(3, 4),
        torch::nn::BatchNorm1d(4),
        torch::nn::Linear(4, 2));
    const torch::NoGradGuard no_grad;
    for (const at::Tensor& parameter : net->parameters()) {
      parameter.copy_(
          torch::linspace(-0.7, 0.9, parameter.numel()).view_as(parameter));
    }
    return net;
  };
  expect_as_full_batch({.sizes = {4, 6}, .shape = {3}}, make);
}

// One sample on each rank, of several pixels.
TEST(
    DistributedTest,
    test_DistributedDataParallel_SyncBatchNorm_Single_Input_Per_Process) {
  expect_as_full_batch({.sizes = {1, 1}}, [] { return NormNet(); });
}

TEST(
    DistributedTest,
    test_DistributedDataParallel_SyncBatchNorm_Diff_Input_Sizes_Running_Value) {
  expect_as_full_batch({.sizes = {5, 2, 1}}, [] { return NormNet(); });
}

TEST(
    DistributedTest,
    test_DistributedDataParallel_SyncBatchNorm_Diff_Input_Sizes_gradient) {
  expect_as_full_batch({.sizes = {1, 7}}, [] { return NormNet(); });
}

// Ranks of another group have no part in it.
TEST(DistributedTest, test_SyncBatchNorm_process_group) {
  const auto errors = run_thread_ranks(3, [](const auto& group) {
    const auto pair = group.new_group({0, 2});
    if (!pair) {
      return;
    }
    torch::nn::BatchNorm1d norm(1);
    EXPECT_EQ(convert_sync_batchnorm(*norm, pair), 1);
    norm->forward(torch::full({4, 1}, group.rank() * 1.0));
    EXPECT_FLOAT_EQ(norm->running_mean.template item<float>(), 0.1F);
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

TEST(DistributedTest, test_ddp_sync_bn_training_vs_eval) {
  const auto errors = run_thread_ranks(2, [](const auto& group) {
    NormNet net;
    convert_sync_batchnorm(*net, group);
    DistributedDataParallel model(net, {.process_group = group});
    const at::Tensor inputs = torch::ones({2, 3, 4, 4}) * (group.rank() + 1);
    model->forward(inputs).sum().backward();
    // Evaluation needs nobody: it would hang here.
    model->eval();
    if (group.rank() == 0) {
      const torch::NoGradGuard no_grad;
      net->forward(inputs);
    }
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

TEST(DistributedTest, test_sync_bn_logged) {
  const auto errors = run_thread_ranks(1, [](const auto& group) {
    NormNet net;
    DistributedDataParallel plain(net, {.process_group = group});
    EXPECT_EQ(plain->get_ddp_logging_data().ints_map["has_sync_bn"], 0);
    NormNet converted;
    convert_sync_batchnorm(*converted, group);
    DistributedDataParallel model(converted, {.process_group = group});
    EXPECT_EQ(model->get_ddp_logging_data().ints_map["has_sync_bn"], 1);
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

TEST(SyncBatchNorm, OtherLayersStayAsTheyAre) {
  const auto errors = run_thread_ranks(2, [](const auto& group) {
    torch::nn::BatchNorm2d converted(2);
    torch::nn::BatchNorm2d plain(2);
    torch::nn::BatchNorm2d alone(2);
    convert_sync_batchnorm(*converted, group);
    const at::Tensor inputs = torch::randn({3, 2, 4, 4}) + group.rank() * 5;
    const at::Tensor expected = alone->forward(inputs);
    EXPECT_TRUE(torch::equal(plain->forward(inputs), expected));
    EXPECT_FALSE(torch::allclose(converted->forward(inputs), expected));
    // A clone is another layer.
    const auto clone = std::dynamic_pointer_cast<torch::nn::BatchNorm2dImpl>(
        converted->clone());
    clone->reset_running_stats();
    EXPECT_TRUE(torch::equal(clone->forward(inputs), expected));
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

TEST(SyncBatchNorm, ALayerThatNothingTellsApartIsRefused) {
  const auto errors = run_thread_ranks(1, [](const auto& group) {
    torch::nn::Sequential net(torch::nn::BatchNorm2d(
        torch::nn::BatchNorm2dOptions(2).affine(false).track_running_stats(
            false)));
    convert_sync_batchnorm(*net, group);
  });
  EXPECT_THAT(
      errors,
      Each(HasSubstr("'0' has neither weights nor running statistics")));
}

TEST(SyncBatchNorm, AGroupThatHasEndedIsNamed) {
  torch::nn::BatchNorm1d norm(2);
  const auto errors = run_thread_ranks(1, [&](const auto& group) {
    convert_sync_batchnorm(*norm, group);
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
  try {
    norm->forward(torch::ones({3, 2}));
    ADD_FAILURE() << "no error";
  } catch (const Exception& error) {
    EXPECT_THAT(error.what(), HasSubstr("the process group of this layer"));
  }
}

} // namespace
} // namespace lockstep
