// SPDX-License-Identifier: BSD-3-Clause
//
// Models whose graph is not the same in each pass or on each rank, and ranks
// whose models differ: PyTorch's cases under their names.
#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/base/error.h"
#include "lockstep/distributed/distributed_data_parallel.h"
#include "tests/support/thread_ranks.h"

namespace lockstep {

namespace {

using dist::ProcessGroup;
using dist::run_thread_ranks;
using testing::AllOf;
using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kNotFinished =
    "Expected to have finished reduction in the prior iteration before "
    "starting a new one.";

/// Three layers; a pass uses those that its argument names.
struct Layers : torch::nn::Module {
  Layers() {
    for (const char* name : {"a", "b", "c"}) {
      layers.emplace_back(register_module(
          name,
          torch::nn::Linear(torch::nn::LinearOptions(2, 2).bias(false))));
    }
    const torch::NoGradGuard no_grad;
    for (const at::Tensor& parameter : parameters()) {
      parameter.fill_(0.25);
    }
  }
  at::Tensor forward(const at::Tensor& x, const std::string& names) {
    at::Tensor y = x;
    for (const char name : names) {
      y = layers[static_cast<std::size_t>(name - 'a')]->forward(y);
    }
    return y;
  }
  at::Tensor gradient(char name) {
    return layers[static_cast<std::size_t>(name - 'a')]->weight.grad();
  }
  std::vector<torch::nn::Linear> layers;
};

at::Tensor row_of(const ProcessGroup& group) {
  return torch::full({1, 2}, group.rank() + 1.0);
}

/// What the ranks throw when rank r passes through `names[r]`, some times. If
/// nothing, their gradients are equal.
std::vector<std::string> pass_through(
    const std::vector<std::string>& names,
    DistributedDataParallelOptions options,
    const std::function<void(Layers&)>& check = [](Layers&) {}) {
  const int ranks = static_cast<int>(names.size());
  return run_thread_ranks(ranks, [&](const ProcessGroup& group) {
    auto given = options;
    given.process_group = group;
    const auto net = std::make_shared<Layers>();
    DistributedDataParallel model(net, given);
    for (int step = 0; step < 3; ++step) {
      net->zero_grad();
      model
          ->forward(
              row_of(group),
              names[static_cast<std::size_t>(group.rank())])
          .sum()
          .backward();
    }
    check(*net);
    for (const at::Tensor& parameter : net->parameters()) {
      if (parameter.grad().defined()) {
        const auto all = group.all_gather(parameter.grad());
        EXPECT_THAT(all, Each(testing::Truly([&](const at::Tensor& other) {
                      return torch::equal(other, parameter.grad());
                    })));
      }
    }
  });
}

TEST(DistributedTest, test_ddp_control_flow_same_across_ranks) {
  EXPECT_THAT(
      pass_through(
          {"ab", "ab"},
          {.find_unused_parameters = true},
          [](Layers& net) { EXPECT_FALSE(net.gradient('c').defined()); }),
      Each(IsEmpty()));
  EXPECT_THAT(pass_through({"ab", "ab"}, {}), Each(HasSubstr(kNotFinished)));
}

// A layer that one rank uses has its gradient, halved, on both.
TEST(DistributedTest, test_ddp_control_flow_different_across_ranks) {
  EXPECT_THAT(
      pass_through(
          {"ab", "a"},
          {.find_unused_parameters = true},
          [](Layers& net) {
            EXPECT_TRUE(
                torch::equal(net.gradient('b'), torch::full({2, 2}, 0.25)));
          }),
      Each(IsEmpty()));
}

TEST(DistributedTest, test_different_graph_across_ranks) {
  EXPECT_THAT(
      pass_through({"ac", "cb", "b"}, {.find_unused_parameters = true}),
      Each(IsEmpty()));
}

TEST(DistributedTest, test_invalid_static_graph) {
  const auto errors = run_thread_ranks(2, [](const ProcessGroup& group) {
    const auto net = std::make_shared<Layers>();
    DistributedDataParallel model(
        net,
        {.process_group = group, .static_graph = true});
    for (const char* names : {"ab", "ab", "abc"}) {
      net->zero_grad();
      model->forward(row_of(group), names).sum().backward();
    }
  });
  EXPECT_THAT(
      errors,
      Each(HasSubstr("Your training graph has changed in this iteration")));
}

// Python's ends in an assertion of the Reducer.
TEST(DistributedDataParallel, AStaticGraphThatBeginsInNoSyncSaysWhatToDo) {
  const auto errors = run_thread_ranks(2, [](const ProcessGroup& group) {
    const auto net = std::make_shared<Layers>();
    DistributedDataParallel model(
        net,
        {.process_group = group, .static_graph = true});
    const auto pass = [&] {
      model->forward(row_of(group), "ab").sum().backward();
    };
    try {
      const auto no_sync = model->no_sync();
      pass();
      ADD_FAILURE() << "no error";
    } catch (const Exception& error) {
      EXPECT_EQ(error.error().code, ErrorCode::kInvalidArgument);
      EXPECT_THAT(error.what(), HasSubstr("one pass without no_sync first"));
    }
    pass(); // the model is as it was
    const at::Tensor once = net->gradient('a').clone();
    {
      const auto no_sync = model->no_sync();
      pass();
    }
    pass();
    // All three add up, averaged over the ranks.
    EXPECT_TRUE(torch::allclose(net->gradient('a'), 3 * once));
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

TEST(DistributedDataParallelTest, test_ignored_output_with_unused_parameters) {
  const auto errors = run_thread_ranks(2, [](const ProcessGroup& group) {
    const auto net = std::make_shared<Layers>();
    DistributedDataParallel model(
        net,
        {.process_group = group, .find_unused_parameters = true});
    for (int step = 0; step < 4; ++step) {
      model->forward(row_of(group), "a");
    }
    for (int step = 0; step < 4; ++step) {
      model->forward(row_of(group), "ab").sum().backward();
    }
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

/// A layer that no rank uses keeps what it has; one that a single rank uses
/// gets the average.
void expect_unused_gradients(const DistributedDataParallelOptions& options) {
  EXPECT_THAT(
      pass_through(
          {"a", "ab"},
          options,
          [](Layers& net) {
            EXPECT_FALSE(net.gradient('c').defined());
            EXPECT_TRUE(net.gradient('b').defined());
          }),
      Each(IsEmpty()));
}

TEST(DistributedDataParallelTest, test_global_local_unused_params_grad) {
  expect_unused_gradients({.find_unused_parameters = true});
}

TEST(
    DistributedDataParallelTest,
    test_global_local_unused_params_grad_with_grad_is_view) {
  expect_unused_gradients(
      {.find_unused_parameters = true, .gradient_as_bucket_view = true});
}

// A graph is static if each rank repeats its own; here all are the same.
TEST(
    DistributedDataParallelTest,
    test_global_local_unused_params_grad_with_static_graph) {
  EXPECT_THAT(
      pass_through(
          {"ab", "ab"},
          {.static_graph = true},
          [](Layers& net) {
            EXPECT_FALSE(net.gradient('c').defined());
            EXPECT_TRUE(net.gradient('b').defined());
          }),
      Each(IsEmpty()));
}

TEST(
    DistributedDataParallelTest,
    test_find_unused_parameters_when_unused_parameters_empty) {
  EXPECT_THAT(
      pass_through(
          {"abc", "ac"},
          {.find_unused_parameters = true},
          [](Layers& net) { EXPECT_TRUE(net.gradient('b').defined()); }),
      Each(IsEmpty()));
}

TEST(DistributedTest, test_ddp_unused_params_rebuild_buckets_exception) {
  EXPECT_THAT(
      pass_through({"ab", "ab"}, {}),
      Each(AllOf(
          HasSubstr(kNotFinished),
          HasSubstr("Parameter indices which did not receive grad for rank"))));
}

TEST(DistributedTest, test_ddp_ignore_params_arg) {
  EXPECT_THAT(
      pass_through(
          {"ab", "ab"},
          {.ignored = {"c.weight"}},
          [](Layers& net) { EXPECT_TRUE(net.gradient('b').defined()); }),
      Each(IsEmpty()));
}

TEST(DistributedTest, test_ddp_multiple_nested_unused_params_error) {
  EXPECT_THAT(
      pass_through({"c", "c"}, {}),
      Each(AllOf(HasSubstr(kNotFinished), HasSubstr(": 0 1"))));
}

TEST(
    DistributedTest,
    test_ddp_multiple_nested_unused_params_err_ignore_params) {
  EXPECT_THAT(
      pass_through({"b", "b"}, {.ignored = {"c.weight"}}),
      Each(AllOf(HasSubstr(kNotFinished), HasSubstr(": 0"))));
}

/// An auxiliary head whose result forward puts into an argument.
struct Auxiliary : Layers {
  at::Tensor forward(const at::Tensor& x, at::Tensor& auxiliary) {
    auxiliary = Layers::forward(x, "b");
    return Layers::forward(x, "a");
  }
};

TEST(DistributedTest, TensorsInArgumentsAreResults) {
  for (const bool finds_unused : {false, true}) {
    const auto errors = run_thread_ranks(2, [&](const ProcessGroup& group) {
      const auto net = std::make_shared<Auxiliary>();
      DistributedDataParallel model(
          net,
          {.process_group = group,
           .find_unused_parameters = finds_unused,
           .ignored = {"c.weight"}});
      for (int step = 0; step < 3; ++step) {
        net->zero_grad();
        at::Tensor auxiliary;
        const at::Tensor y = model->forward(row_of(group), auxiliary);
        (y.sum() + auxiliary.sum()).backward();
        for (const char name : {'a', 'b'}) {
          EXPECT_TRUE(
              torch::equal(net->gradient(name), torch::full({2, 2}, 1.5)));
        }
      }
    });
    EXPECT_THAT(errors, Each(IsEmpty()));
  }
}

/// One parameter under two names, and one that is never used.
struct Shared : torch::nn::Module {
  Shared() {
    layer = register_module(
        "layer",
        torch::nn::Linear(torch::nn::LinearOptions(2, 2).bias(false)));
    again = register_parameter("again", layer->weight);
    unused = register_parameter("unused", torch::ones({2}));
  }
  at::Tensor forward(const at::Tensor& x) {
    return layer->forward(x).matmul(again);
  }
  torch::nn::Linear layer{nullptr};
  at::Tensor again;
  at::Tensor unused;
};

TEST(DistributedTest, test_ddp_shared_grad_acc_unused_params) {
  for (const bool is_static : {false, true}) {
    const auto errors = run_thread_ranks(2, [&](const ProcessGroup& group) {
      const auto net = std::make_shared<Shared>();
      DistributedDataParallel model(
          net,
          {.process_group = group,
           .find_unused_parameters = true,
           .static_graph = is_static});
      for (int step = 0; step < 3; ++step) {
        net->zero_grad();
        model->forward(row_of(group)).sum().backward();
        const auto all = group.all_gather(net->again.grad());
        EXPECT_TRUE(torch::equal(all[0], all[1]));
        EXPECT_FALSE(net->unused.grad().defined());
      }
    });
    EXPECT_THAT(errors, Each(IsEmpty()));
  }
}

/// Models that are not the same on all ranks, as seen by c10d, whose words
/// Python has, and by the check before it.
std::vector<std::string> wrap_different(
    const std::function<torch::nn::Sequential(int)>& make,
    bool has_python_ranks) {
  return run_thread_ranks(
      2,
      [&](const ProcessGroup& group) {
        auto net = make(group.rank());
        DistributedDataParallel model(net, {.process_group = group});
      },
      {.timeout = std::chrono::seconds(5),
       .has_python_ranks = has_python_ranks});
}

torch::nn::Sequential one_layer(int outputs) {
  torch::nn::Sequential net(torch::nn::Linear(2, outputs));
  return net;
}

TEST(DistributedTest, test_ddp_model_diff_num_params_across_ranks) {
  const auto make = [](int rank) {
    return rank == 0 ? one_layer(2)
                     : torch::nn::Sequential(
                           torch::nn::Linear(2, 2),
                           torch::nn::Linear(2, 2));
  };
  EXPECT_THAT(
      wrap_different(make, true),
      Each(AllOf(
          HasSubstr("DDP expects same model across all ranks"),
          HasSubstr("params, while rank"))));
  EXPECT_THAT(
      wrap_different(make, false),
      Each(HasSubstr("ranks 0 and 1 differ in 3 lines")));
}

TEST(DistributedTest, test_ddp_model_diff_shape_across_ranks) {
  const auto make = [](int rank) { return one_layer(2 + rank); };
  EXPECT_THAT(
      wrap_different(make, true)[1],
      HasSubstr("appears not to match sizes of the same param in process 0"));
  EXPECT_THAT(
      wrap_different(make, false),
      Each(HasSubstr("'parameter 0.weight: Float (2, 2), strides (2, 1), "
                     "trained' and 'parameter 0.weight: Float (3, 2)")));
}

} // namespace
} // namespace lockstep
