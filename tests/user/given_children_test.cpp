// SPDX-License-Identifier: BSD-3-Clause
//
// Layers that a net was given, as users share them: under several names, with a
// state of their own, initialised anew by reset(), copied by a clone() of the
// user's. Wrapping leaves the net as it was.
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/parallel/data_parallel.h"
#include "lockstep/parallel/functional.h"
#include "lockstep/tensor/modules.h"
#include "tests/user/as_alone.h"
#include "tests/user/given_nets.h"
#include "tests/user/programs.h"
#include "tests/user/support.h"

namespace lockstep {
namespace {

namespace nn = torch::nn;
using test::close;
using test::error_of;
using test::names_of;
using test::seeded;
using test::Warnings;
using testing::HasSubstr;
using testing::Not;
using torch::Tensor;

class GivenChildren : public test::AsAlone {};
INSTANTIATE_TEST_SUITE_P(
    Programs,
    GivenChildren,
    testing::Values("cpu*2", "sim*2", "cpu*3"),
    [](const auto& param) { return test::name_of_devices(param.param); });

TEST_P(GivenChildren, UnderSeveralNamesStayWhole) {
  const auto stack = [] {
    return nn::Sequential(nn::Linear(4, 4), nn::BatchNorm1d(4), nn::Tanh());
  };
  expect_as_alone(seeded<program::Siamese>(nn::Linear(4, 4)));
  expect_as_alone(seeded<program::Branches>(nn::Linear(4, 4)));
  expect_as_alone(seeded<program::Listed>(nn::Linear(4, 4)));
  expect_as_alone(seeded<program::Twice>(stack()));
  expect_as_alone(
      seeded<program::Outer>(std::make_shared<program::Twice>(stack())));
}

TEST_P(GivenChildren, InContainersComputeAsAlone) {
  using program::BackboneHolder;
  using program::GivenList;
  const std::vector<nn::Linear> plain{nn::Linear(4, 4), nn::Linear(4, 4)};
  const std::vector<BackboneHolder> keeping{BackboneHolder(), BackboneHolder()};
  const std::vector<std::pair<program::Where, bool>> ways{
      {program::Where::kList, false},
      {program::Where::kList, true},
      {program::Where::kDict, false},
      {program::Where::kStack, false}};
  for (const auto& [where, has_names] : ways) {
    SCOPED_TRACE(static_cast<int>(where));
    SCOPED_TRACE(has_names);
    expect_as_alone(seeded<GivenList<nn::Linear>>(plain, where, has_names));
    const auto net =
        seeded<GivenList<BackboneHolder>>(keeping, where, has_names);
    const auto names = names_of(*net);
    Warnings warnings;
    expect_as_alone(net);
    EXPECT_THAT(warnings.text, HasSubstr("'layers.0' (program::Backbone)"));
    EXPECT_THAT(warnings.text, Not(HasSubstr("beside")));
    EXPECT_THAT(
        test::torch_error([&] { clone_module(*net); }),
        HasSubstr("'layers.0'"));
    EXPECT_EQ(names_of(*net), names);
  }
}

TEST_P(GivenChildren, OfACloneThatThrowsStayWhole) {
  const auto net = seeded<program::Siamese>(nn::Linear(4, 4));
  const auto names = names_of(*net);
  EXPECT_THAT(
      test::torch_error([&] { clone_module(*net); }),
      HasSubstr("'left'"));
  EXPECT_EQ(names_of(*net), names);
}

/// What of `net` may change by wrapping.
std::map<std::string, std::vector<double>> state_of(program::Writing& net) {
  const auto numbers = [](const Tensor& tensor) {
    const Tensor flat = tensor.detach().cpu().to(torch::kDouble).flatten();
    const auto* begin = flat.const_data_ptr<double>();
    std::vector<double> all(begin, begin + flat.numel());
    all.push_back(static_cast<double>(tensor._version()));
    all.push_back(tensor.requires_grad());
    return all;
  };
  std::map<std::string, std::vector<double>> state;
  for (const auto& item : net.named_parameters()) {
    state[item.key()] = numbers(item.value());
  }
  for (const auto& item : net.named_buffers()) {
    state[item.key()] = numbers(item.value());
  }
  for (const auto& item : net.named_modules()) {
    state["mode " + item.key()] = {
        static_cast<double>(item.value()->is_training())};
  }
  return state;
}

TEST_P(GivenChildren, ThatResetAndTrainWriteToStayAsTheyAre) {
  const auto net = seeded<program::Writing>(
      nn::Linear(4, 2),
      nn::BatchNorm1d(4),
      here(torch::ones({4})).requires_grad_(),
      here(torch::ones({4})));
  net->to(home());
  {
    const torch::NoGradGuard no_grad;
    for (const auto& tensors : {net->parameters(), net->buffers()}) {
      for (const Tensor& tensor : tensors) {
        tensor.fill_(7);
      }
    }
    net->scale[1] = std::numeric_limits<float>::quiet_NaN();
  }
  net->norm->train();
  const auto before = state_of(*net);
  const auto same = [&](const char* when) {
    for (auto& [name, numbers] : state_of(*net)) {
      EXPECT_THAT(
          numbers,
          testing::Pointwise(testing::NanSensitiveDoubleEq(), before.at(name)))
          << name << " " << when;
    }
  };
  net->fails = true;
  EXPECT_ANY_THROW(DataParallel<program::Writing>(
      net,
      {.devices = GetParam(), .factory = {}}));
  same("after an error");
  net->fails = false;
  copy_of(*net);
  same("after a copy");
  DataParallel<program::Writing> model(net, {.devices = GetParam()});
  same("after wrapping");
  model->group().rebuild();
  same("after a rebuild");
  {
    const torch::NoGradGuard no_grad;
    net->scale.fill_(1);
    net->eval();
    net->norm->train();
    const auto mean = net->norm->running_mean.clone();
    model->forward(batch());
    EXPECT_TRUE(net->norm->is_training()) << "after modes were followed";
    EXPECT_FALSE(close(net->norm->running_mean, mean));
  }
}

TEST_P(GivenChildren, ThatKeepSomethingRunOneAfterTheOther) {
  const auto net = seeded<program::Given<program::BackboneHolder>>(
      program::BackboneHolder());
  net->to(home());
  const auto expected = net->forward(batch());
  net->body->firsts.clear();
  Warnings warnings;
  DataParallel model(net, {.devices = GetParam()});
  EXPECT_THAT(warnings.text, HasSubstr("'body' (program::Backbone)"));
  EXPECT_THAT(warnings.text, HasSubstr("one after the other"));
  EXPECT_THAT(warnings.text, HasSubstr(".factory"));
  warnings.text.clear();
  model->group().rebuild();
  EXPECT_EQ(warnings.text, "");
  std::vector<float> firsts;
  for (const Tensor& part :
       batch().chunk(static_cast<std::int64_t>(model->devices().size()))) {
    firsts.push_back(part[0][0].item<float>());
  }
  for (int pass = 0; pass < 20; ++pass) {
    ASSERT_TRUE(close(model->forward(batch()), expected)) << pass;
    EXPECT_EQ(net->body->firsts, firsts) << "in the order of the replicas";
    net->body->firsts.clear();
  }
}

TEST_P(GivenChildren, ThatKeepSomethingAreFoundInListsAndFactories) {
  const auto nested = seeded<program::Given<nn::Sequential>>(
      nn::Sequential(nn::ReLU(), program::BackboneHolder()));
  nested->to(home());
  Warnings warnings;
  const DataParallel first(nested, {.devices = GetParam()});
  EXPECT_THAT(warnings.text, HasSubstr("'body'"));
  warnings.text.clear();
  const auto net = seeded<program::Given<program::BackboneHolder>>(
      program::BackboneHolder());
  net->to(home());
  const DataParallel second(
      net,
      {.devices = GetParam(), .factory = [&net] {
         return seeded<program::Given<program::BackboneHolder>>(net->body);
       }});
  EXPECT_THAT(warnings.text, HasSubstr("'body' (program::Backbone)"));
  const double factor = 2;
  const auto function = seeded<program::Given<nn::Sequential>>(nn::Sequential(
      nn::Functional([factor](const Tensor& x) { return x * factor; })));
  function->to(home());
  warnings.text.clear();
  const DataParallel third(function, {.devices = GetParam()});
  EXPECT_THAT(warnings.text, HasSubstr("'body'"));
}

TEST_P(GivenChildren, OfReplicasOfTheFunctionsComputeAsAlone) {
  const auto backbone = seeded<program::Given<program::BackboneHolder>>(
      program::BackboneHolder());
  const auto shifted =
      seeded<program::Given<std::shared_ptr<program::Shifted>>>(
          std::make_shared<program::Shifted>(torch::ones({4})));
  const auto devices = parse_devices(GetParam());
  const auto check = [&](const auto& net) {
    SCOPED_TRACE(net->name());
    net->to(home());
    const auto expected = numbers_of(*net, *net);
    const auto replicas = parallel::replicate(net, devices);
    const auto parts = parallel::scatter(batch(), devices);
    for (int pass = 0; pass < 5; ++pass) {
      const auto got = parallel::gather(
          parallel::parallel_apply(replicas, parts, devices),
          home());
      ASSERT_TRUE(close(got, expected.front())) << pass;
      if (pass == 0) {
        net->zero_grad();
        got.square().sum().backward();
        for (std::size_t i = 0; i < net->parameters().size(); ++i) {
          EXPECT_TRUE(close(net->parameters()[i].grad(), expected[i + 1])) << i;
        }
      }
    }
  };
  check(backbone);
  check(shifted);
}

TEST_P(GivenChildren, OfLibTorchRunAtTheSameTime) {
  const auto net = seeded<program::Given<nn::Sequential>>(nn::Sequential(
      nn::Linear(4, 4),
      nn::Functional(torch::tanh),
      nn::Functional(torch::elu, 1, 1, 1)));
  net->to(home());
  Warnings warnings;
  const DataParallel model(net, {.devices = GetParam()});
  EXPECT_EQ(warnings.text, "");
}

TEST_P(GivenChildren, WithAGivenBufferAreNotWarnedOf) {
  const auto net = seeded<program::Given<std::shared_ptr<program::Shifted>>>(
      std::make_shared<program::Shifted>(torch::ones({4})));
  net->to(home());
  const auto outer = seeded<program::Outer>(
      std::make_shared<program::Twice>(nn::Sequential(nn::Linear(4, 4))));
  outer->to(home());
  Warnings warnings;
  const DataParallel model(net, {.devices = GetParam()});
  const DataParallel second(outer, {.devices = GetParam()});
  EXPECT_THAT(warnings.text, Not(HasSubstr("beside")));
}

TEST_P(GivenChildren, AFactoryMakesAnotherModuleInEachCall) {
  nn::Linear net(4, 3);
  net->to(home());
  const Tensor weight = net->weight;
  const auto wrap = [&](const ModuleFactory& factory) {
    return error_of([&] {
      DataParallel model(net, {.devices = GetParam(), .factory = factory});
    });
  };
  const Error itself = wrap([&] { return net.ptr(); });
  EXPECT_EQ(itself.code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(itself.message, HasSubstr("the module itself"));
  EXPECT_TRUE(net->parameters()[0].is_same(weight));
  const nn::Linear other(4, 3);
  if (std::string(GetParam()).ends_with("3")) {
    EXPECT_THAT(
        wrap([&] { return other.ptr(); }).message,
        HasSubstr("the same"));
  }
}

TEST_P(GivenChildren, CopiedByACloneOfTheUsers) {
  expect_as_alone(seeded<program::ByArchive>());
  expect_as_alone(seeded<program::ByPlace>());
  expect_as_alone(seeded<program::ByClass>());
  expect_as_alone(seeded<program::BySave>());
  expect_as_alone(seeded<program::Parent<program::ByArchive>>());
  expect_as_alone(seeded<program::Parent<program::ByPlace>>());
  expect_as_alone(seeded<program::Parent<program::ByClass>>());
  expect_as_alone(seeded<program::Parent<program::BySave>>());
  expect_as_alone(seeded<program::Given<nn::Sequential>>(
      nn::Sequential(std::make_shared<program::ByClass>())));
}

TEST(MemberComputedFromAParameter, IsNamed) {
  const auto batch = torch::linspace(-1, 1, 24).view({6, 4});
  for (const bool uses_table : {false, true}) {
    for (const bool is_view : {false, true}) {
      const auto net = seeded<program::View>(uses_table, is_view);
      DataParallel model(net, {.devices = "cpu*2"});
      const Error error = error_of([&] { model->forward(batch); });
      EXPECT_EQ(error.code, ErrorCode::kUnsupported);
      EXPECT_THAT(error.message, HasSubstr("'table'"));
      EXPECT_THAT(error.hint, HasSubstr("compute it in forward"));
      const torch::NoGradGuard no_grad;
      EXPECT_TRUE(close(model->forward(batch), net->forward(batch)));
    }
  }
  // LibTorch counts the nodes of each thread by themselves.
  std::thread([&] {
    DataParallel model(
        seeded<program::View>(false, true),
        {.devices = "cpu*2"});
    for (int i = 0; i < 100; ++i) {
      (void)(torch::ones(1, torch::requires_grad()) * 2);
    }
    EXPECT_THAT(
        error_of([&] { model->forward(batch); }).message,
        HasSubstr("'table'"));
  }).join();
  const auto net = seeded<program::View>(false, false);
  std::thread([&] {
    DataParallel model(net, {.devices = "cpu*2"});
    EXPECT_THAT(
        error_of([&] { model->forward(batch); }).message,
        HasSubstr("'table'"));
  }).join();
  DataParallel model(net, {.devices = "cpu*2", .connected_graph = true});
  EXPECT_EQ(
      error_of([&] { model->forward(batch); }).code,
      ErrorCode::kUnsupported);
}

} // namespace
} // namespace lockstep
