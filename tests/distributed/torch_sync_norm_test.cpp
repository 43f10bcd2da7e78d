// SPDX-License-Identifier: BSD-3-Clause
//
// BatchNorm over the batches of all ranks: PyTorch's cases under their names.
// The layers are LibTorch's, held as programs hold them; the measure is the
// same net on the whole batch.
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
  expect_as_full_batch({}, [] { return NormNet(false); });
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

// A rank that has run out of samples.
TEST(SyncBatchNorm, AnEmptyBatchOfOneRankCountsNothing) {
  expect_as_full_batch({.sizes = {4, 0}}, [] { return NormNet(); });
  expect_as_full_batch({.sizes = {0, 3, 2}}, [] { return NormNet(); });
}

// As LibTorch's own layer. Python's spoils the running variance.
TEST(SyncBatchNorm, EmptyBatchesOfAllRanksChangeNoStatistics) {
  const auto errors = run_thread_ranks(2, [](const auto& group) {
    torch::nn::BatchNorm2d norm(3);
    torch::nn::BatchNorm2d alone(3);
    convert_sync_batchnorm(*norm, group);
    const auto pass = [](torch::nn::BatchNorm2d& layer, std::int64_t samples) {
      at::Tensor x = torch::ones({samples, 3, 2, 2}).cumsum(2);
      x.requires_grad_();
      const at::Tensor y = layer->forward(x);
      y.sum().backward();
      EXPECT_EQ(y.sizes(), x.sizes());
      EXPECT_EQ(x.grad().sizes(), x.sizes());
    };
    for (const std::int64_t samples : {0, 2, 0}) {
      pass(norm, samples);
      pass(alone, samples);
    }
    for (std::size_t i = 0; i < norm->buffers().size(); ++i) {
      if (norm->buffers()[i].dim() == 1) { // the unbiased factor is of 16 of 8
        EXPECT_TRUE(norm->buffers()[i].isfinite().all().template item<bool>());
      }
    }
    expect_near(norm->running_mean, alone->running_mean);
    EXPECT_EQ(norm->num_batches_tracked.template item<int>(), 3);
    for (const at::Tensor& parameter : norm->parameters()) {
      EXPECT_TRUE(parameter.grad().isfinite().all().template item<bool>());
    }
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

/// Rounding of a half type, by which sums of a few numbers may differ.
void expect_about(const at::Tensor& found, const at::Tensor& expected) {
  EXPECT_EQ(found.scalar_type(), expected.scalar_type());
  const double step = found.scalar_type() == at::kBFloat16 ? 0.02 : 0.003;
  EXPECT_TRUE(torch::allclose(
      found.to(at::kFloat),
      expected.to(at::kFloat),
      step,
      step))
      << found << expected;
}

TEST(SyncBatchNorm, HalfTypesOfInputsAndWeightsAreThoseOfOneLayer) {
  struct Types {
    at::ScalarType input = at::kFloat;
    at::ScalarType layer = at::kFloat;
  };
  for (const Types& types : std::initializer_list<Types>{
           {at::kBFloat16, at::kBFloat16},
           {at::kHalf, at::kHalf},
           {at::kBFloat16, at::kFloat},
           {at::kHalf, at::kFloat},
           {at::kDouble, at::kDouble}}) {
    torch::manual_seed(5);
    const at::Tensor all = (torch::randn({6, 3, 4, 4}) + 1).to(types.input);
    const at::Tensor slope = torch::randn({6, 3, 4, 4}).to(types.input);
    const auto errors = run_thread_ranks(2, [&](const auto& group) {
      torch::nn::BatchNorm2d norm(3);
      torch::nn::BatchNorm2d full(3);
      norm->to(types.layer);
      full->to(types.layer);
      convert_sync_batchnorm(*norm, group);
      const auto own = [&](const at::Tensor& tensor) {
        return tensor.narrow(0, 3 * group.rank(), 3);
      };
      at::Tensor x = own(all).clone().requires_grad_();
      at::Tensor full_x = all.clone().requires_grad_();
      const at::Tensor y = norm->forward(x);
      const at::Tensor full_y = full->forward(full_x);
      expect_about(y, own(full_y));
      y.backward(own(slope));
      full_y.backward(slope);
      expect_about(x.grad(), own(full_x.grad()));
      for (std::size_t i = 0; i < 2; ++i) {
        at::Tensor gradient = norm->parameters()[i].grad().to(at::kFloat);
        group.all_reduce(gradient);
        expect_about(gradient.to(types.layer), full->parameters()[i].grad());
      }
      expect_about(norm->running_mean, full->running_mean);
      expect_about(norm->running_var, full->running_var);
    });
    EXPECT_THAT(errors, Each(IsEmpty()))
        << c10::toString(types.input) << ", " << c10::toString(types.layer);
  }
}

// Python's refuses them.
TEST(SyncBatchNorm, SecondGradientsAreThoseOfOneLayer) {
  torch::manual_seed(7);
  const at::Tensor all = torch::randn({6, 3, 4}, at::kDouble);
  const at::Tensor slope = torch::randn({6, 3, 4}, at::kDouble);
  const auto errors = run_thread_ranks(3, [&](const auto& group) {
    torch::nn::BatchNorm1d norm(3);
    torch::nn::BatchNorm1d full(3);
    for (torch::nn::BatchNorm1d* layer : {&norm, &full}) {
      (*layer)->to(at::kDouble);
      const torch::NoGradGuard no_grad;
      (*layer)->weight.copy_(torch::linspace(0.5, 1.5, 3));
    }
    convert_sync_batchnorm(*norm, group);
    const auto own = [&](const at::Tensor& tensor) {
      return tensor.narrow(0, 2 * group.rank(), 2);
    };
    // A penalty on the gradient, as of GANs; returns that gradient.
    const auto pass = [](torch::nn::BatchNorm1d& layer,
                         const at::Tensor& x,
                         const at::Tensor& factor) {
      const at::Tensor y = layer->forward(x);
      const at::Tensor first = torch::autograd::grad(
          {(y.tanh() * factor).sum()},
          {x},
          {},
          /*retain_graph=*/true,
          /*create_graph=*/true)[0];
      first.pow(2).sum().backward();
      return first.detach();
    };
    at::Tensor x = own(all).clone().requires_grad_();
    at::Tensor full_x = all.clone().requires_grad_();
    expect_near(pass(norm, x, own(slope)), own(pass(full, full_x, slope)));
    expect_near(x.grad(), own(full_x.grad()));
    at::Tensor weight_gradient = norm->weight.grad().clone();
    group.all_reduce(weight_gradient);
    expect_near(weight_gradient, full->weight.grad());
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
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
