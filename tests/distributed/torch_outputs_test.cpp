// SPDX-License-Identifier: BSD-3-Clause
//
// Models with outputs of all kinds, of which the loss uses some: PyTorch's
// cases under their names.
#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/distributed/distributed_data_parallel.h"
#include "lockstep/tensor/structure.h"
#include "tests/support/thread_ranks.h"

namespace lockstep {

/// What a model of the tests gives back: a type of the user's.
struct TwoOutputs {
  at::Tensor first;
  at::Tensor second;
};
template <>
struct Structure<TwoOutputs> : Fields<&TwoOutputs::first, &TwoOutputs::second> {
};

namespace {

using dist::ProcessGroup;
using dist::run_thread_ranks;
using testing::Each;
using testing::IsEmpty;

at::Tensor inputs_of(const ProcessGroup& group) {
  return torch::full({1, 2}, group.rank() + 1.0);
}

/// Both outputs of each pass, of which the loss uses some.
struct TwoHeads : torch::nn::Module {
  TwoHeads() {
    first = register_module("first", torch::nn::Linear(2, 2));
    second = register_module("second", torch::nn::Linear(2, 2));
  }
  torch::nn::Linear first{nullptr};
  torch::nn::Linear second{nullptr};
};
struct TupleHeads : TwoHeads {
  std::tuple<at::Tensor, at::Tensor> forward(const at::Tensor& x) {
    return {first->forward(x), second->forward(x)};
  }
};
struct DictHeads : TwoHeads {
  std::map<std::string, at::Tensor> forward(const at::Tensor& x) {
    return {{"first", first->forward(x)}, {"second", second->forward(x)}};
  }
};
struct StructHeads : TwoHeads {
  TwoOutputs forward(const at::Tensor& x) {
    return {first->forward(x), second->forward(x)};
  }
};
struct NestedHeads : TwoHeads {
  std::vector<std::map<std::string, std::pair<at::Tensor, at::Tensor>>> forward(
      const at::Tensor& x) {
    return {{{"both", {first->forward(x), second->forward(x)}}}};
  }
};

/// Trains with a loss of what `pick` takes of the outputs.
template <class Heads, class Pick>
std::vector<std::string> train_heads(
    const DistributedDataParallelOptions& options,
    const Pick& pick,
    bool second_is_used = false) {
  return run_thread_ranks(2, [&](const ProcessGroup& group) {
    auto given = options;
    given.process_group = group;
    const auto net = std::make_shared<Heads>();
    DistributedDataParallel model(net, given);
    for (int step = 0; step < 3; ++step) {
      net->zero_grad();
      pick(model->forward(inputs_of(group))).sum().backward();
      EXPECT_TRUE(torch::equal(net->first->bias.grad(), torch::ones({2})));
      EXPECT_EQ(net->second->bias.grad().defined(), second_is_used);
    }
  });
}

TEST(DistributedTest, test_output_unused_in_loss_tuple_module) {
  EXPECT_THAT(
      train_heads<TupleHeads>(
          {.find_unused_parameters = true},
          [](const auto& outputs) { return std::get<0>(outputs); }),
      Each(IsEmpty()));
}

TEST(DistributedTest, test_output_unused_in_loss_dict_module) {
  EXPECT_THAT(
      train_heads<DictHeads>(
          {.find_unused_parameters = true},
          [](const auto& outputs) { return outputs.at("first"); }),
      Each(IsEmpty()));
}

TEST(DistributedTest, test_undefined_grad_parity_unused_parameters) {
  EXPECT_THAT(
      train_heads<TupleHeads>(
          {.find_unused_parameters = true, .gradient_as_bucket_view = true},
          [](const auto& outputs) { return std::get<0>(outputs); }),
      Each(IsEmpty()));
}

TEST(DistributedTest, test_ddp_namedtuple) {
  EXPECT_THAT(
      train_heads<StructHeads>(
          {},
          [](const TwoOutputs& outputs) {
            return outputs.first + outputs.second;
          },
          /*second_is_used=*/true),
      Each(IsEmpty()));
}

TEST(DistributedTest, test_ddp_static_graph_nested_types) {
  EXPECT_THAT(
      train_heads<NestedHeads>(
          {.static_graph = true},
          [](const auto& outputs) {
            const auto& [first, second] = outputs.at(0).at("both");
            return first + second;
          },
          /*second_is_used=*/true),
      Each(IsEmpty()));
}

TEST(DistributedDataParallelTest, test_ignored_output) {
  const auto errors = run_thread_ranks(2, [](const ProcessGroup& group) {
    const auto net = std::make_shared<TupleHeads>();
    DistributedDataParallel model(net, {.process_group = group});
    // Passes whose outputs nobody uses change nothing.
    for (int step = 0; step < 4; ++step) {
      model->forward(inputs_of(group));
    }
    for (int step = 0; step < 4; ++step) {
      const auto outputs = model->forward(inputs_of(group));
      (std::get<0>(outputs) + std::get<1>(outputs)).sum().backward();
    }
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

/// Makes a tensor of its own in forward; some of its outputs have no graph.
struct NewTensors : torch::nn::Module {
  NewTensors() {
    layer = register_module("layer", torch::nn::Linear(2, 2));
  }
  std::vector<at::Tensor> forward(const at::Tensor& x) {
    const at::Tensor y = layer->forward(x);
    return {y + torch::ones_like(y), torch::zeros({3}), y.detach()};
  }
  torch::nn::Linear layer{nullptr};
};

void expect_new_tensors_pass(const DistributedDataParallelOptions& given) {
  const auto errors = run_thread_ranks(2, [&](const ProcessGroup& group) {
    auto options = given;
    options.process_group = group;
    const auto net = std::make_shared<NewTensors>();
    DistributedDataParallel model(net, options);
    for (int step = 0; step < 4; ++step) {
      net->zero_grad();
      const auto outputs = model->forward(inputs_of(group));
      EXPECT_FALSE(outputs[1].requires_grad());
      EXPECT_FALSE(outputs[2].requires_grad());
      outputs[0].sum().backward();
      EXPECT_TRUE(
          torch::equal(net->layer->weight.grad(), torch::full({2, 2}, 1.5)));
    }
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

TEST(DistributedTest, test_ddp_new_tensor_in_fwd) {
  expect_new_tensors_pass({});
  expect_new_tensors_pass({.find_unused_parameters = true});
}

TEST(DistributedTest, test_ddp_new_tensor_in_fwd_static_graph) {
  expect_new_tensors_pass({.static_graph = true});
}

TEST(DistributedTest, test_ddp_returns_tensor_with_no_grad) {
  expect_new_tensors_pass(
      {.find_unused_parameters = true, .gradient_as_bucket_view = true});
}

} // namespace
} // namespace lockstep
