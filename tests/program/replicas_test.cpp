// SPDX-License-Identifier: BSD-3-Clause
//
// Programs on several devices and in several ranks: as any other module.
#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <torch/nn/functional/loss.h>

#include "lockstep/ckpt/load.h"
#include "lockstep/distributed/distributed_data_parallel.h"
#include "lockstep/optim/optimizers.h"
#include "lockstep/parallel/data_parallel.h"
#include "lockstep/tensor/state_dict.h"
#include "tests/program/program_cases.h"
#include "tests/support/python.h"
#include "tests/support/thread_ranks.h"

namespace lockstep {
namespace {

constexpr int kSteps = 6;
constexpr SGDOptions kSgd{.lr = 0.05, .momentum = 0.9, .weight_decay = 1e-4};

at::Tensor loss_of(const at::Tensor& output, const at::Tensor& target) {
  return torch::nn::functional::cross_entropy(output, target);
}

// What replicas do, by hand: two copies, a half of the batch each, the sum of
// the gradients; statistics of the first one.
void train_by_hand(
    Program& net,
    const test::ProgramCase& given,
    c10::Device device) {
  net->to(device);
  SGD optimizer(*net, kSgd);
  for (int step = 0; step < kSteps; ++step) {
    const auto& [arguments, target] = given.batches[step];
    const auto halves = arguments.args[0].tensor().to(device).chunk(2);
    Program other = std::dynamic_pointer_cast<ProgramImpl>(clone_module(*net));
    optimizer.zero_grad();
    loss_of(
        at::cat({net->forward(halves[0]), other->forward(halves[1])}),
        target.to(device))
        .backward();
    const auto parameters = net->parameters();
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      parameters[i].mutable_grad().add_(other->parameters()[i].grad());
    }
    optimizer.step();
  }
}

using DeviceAndNet = std::tuple<std::string, std::string>;

class ReplicasTest : public testing::TestWithParam<DeviceAndNet> {
 protected:
  void SetUp() override {
    at::set_num_threads(1);
  }
};

TEST_P(ReplicasTest, AreTwoHalvesByHand) {
  const auto& [devices, name] = GetParam();
  const test::ProgramCase given = test::load_case(name, "sgd");
  Program net = test::load_net(name);
  DataParallel model(net, {.devices = devices + "*2"});
  SGD optimizer(*model, kSgd);
  const c10::Device first = model->devices().front();
  net->to(first);
  for (int step = 0; step < kSteps; ++step) {
    const auto& [arguments, target] = given.batches[step];
    optimizer.zero_grad();
    loss_of(
        model->forward(arguments.args[0].tensor().to(first)),
        target.to(first))
        .backward();
    optimizer.step();
  }
  Program expected = test::load_net(name);
  train_by_hand(expected, given, first);
  EXPECT_THAT(
      test::differences(*net, state_dict(*expected)),
      testing::IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(
    Nets,
    ReplicasTest,
    testing::Combine(
        testing::Values("cpu", "sim"),
        testing::Values("mobile", "unet", "moving")),
    [](const auto& test) {
      return std::get<0>(test.param) + "_" + std::get<1>(test.param);
    });

class RanksTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    at::set_num_threads(1);
  }
};

TEST_P(RanksTest, AreThoseOfPythonsDistributedDataParallel) {
  const auto& folder = test::program_folder("sgd");
  test::run_python("program_ddp.py", {folder.path(), GetParam()});
  const auto file = ckpt::load(folder / (GetParam() + ".ddp.pt"));
  ASSERT_TRUE(file) << to_string(file.error());
  const StateDict state = to_state_dict(*file->root.find("state"));
  const at::Tensor losses = to_tensor(*file->root.find("losses")->as_tensor());
  const test::ProgramCase given = test::load_case(GetParam(), "sgd");
  const auto errors = dist::run_thread_ranks(
      2,
      [&](const dist::ProcessGroup& group) {
        const int rank = group.rank();
        Program net = test::load_net(GetParam());
        DistributedDataParallel model(net, {.process_group = group});
        SGD optimizer(*model, kSgd);
        for (int step = 0; step < kSteps; ++step) {
          const auto& [arguments, target] = given.batches[step];
          optimizer.zero_grad();
          const at::Tensor loss = loss_of(
              model->forward(arguments.args[0].tensor().chunk(2)[rank]),
              target.chunk(2)[rank]);
          loss.backward();
          optimizer.step();
          if (rank == 0) {
            EXPECT_TRUE(at::equal(loss.detach(), losses[step])) << step;
          }
        }
        if (rank == 0) {
          EXPECT_THAT(test::differences(*net, state), testing::IsEmpty());
        }
      },
      {.backend = "shm"});
  EXPECT_THAT(errors, testing::Each(testing::IsEmpty()));
}

// One rank of each kind in a job: the original module and its program.
TEST_P(RanksTest, StandBesideRanksOfPython) {
  const auto& folder = test::program_folder("sgd");
  test::run_python("program_ddp.py", {folder.path(), GetParam()});
  EXPECT_EQ(
      test::run_python(
          "program_ddp.py",
          {folder.path(), GetParam(), "beside", LOCKSTEP_PROGRAM_RANK}),
      "equal\n");
}

INSTANTIATE_TEST_SUITE_P(
    Nets,
    RanksTest,
    testing::Values("mobile", "unet", "moving"),
    [](const auto& net) { return net.param; });

// Two ranks, half of the batch each, against the whole batch in one.
TEST(Replicas, TakeStatisticsOfAllRanks) {
  at::set_num_threads(1);
  const test::ProgramCase given = test::load_case("mobile", "sgd");
  const auto step = [&](torch::nn::Module& module, auto&& forward, int rank) {
    SGD optimizer(module, kSgd);
    for (int i = 0; i < kSteps; ++i) {
      const auto& [arguments, target] = given.batches[i];
      const at::Tensor x = arguments.args[0].tensor();
      optimizer.zero_grad();
      loss_of(
          forward(rank < 0 ? x : x.chunk(2)[rank]),
          rank < 0 ? target : target.chunk(2)[rank])
          .backward();
      optimizer.step();
    }
  };
  Program whole = test::load_net("mobile");
  step(
      *whole,
      [&](const at::Tensor& x) { return whole->forward(x); },
      -1);
  const auto errors = dist::run_thread_ranks(
      2,
      [&](const dist::ProcessGroup& group) {
        Program net = test::load_net("mobile");
        EXPECT_EQ(convert_sync_batchnorm(*net, group), 3);
        DistributedDataParallel model(net, {.process_group = group});
        step(
            *model,
            [&](const at::Tensor& x) { return model->forward(x); },
            group.rank());
        const StateDict expected = state_dict(*whole);
        for (const auto& [name, tensor] : state_dict(*net).entries) {
          EXPECT_TRUE(at::allclose(tensor, expected.get(name), 1e-4, 1e-5))
              << name;
        }
      },
      {.backend = "shm"});
  EXPECT_THAT(errors, testing::Each(testing::IsEmpty()));
  uninstall_sync_batchnorm();
}

ProgramArguments six_rows() {
  return {
      .args = {ProgramValue::dict({{"points", torch::rand({6, 8})}})},
      .kwargs = {{"scale", torch::rand({6, 1})}}};
}

TEST(Replicas, TakeAnyStructure) {
  Program net = test::load_net("tensors");
  DataParallel model(net, {.devices = "cpu*2"});
  const ProgramArguments arguments = six_rows();
  const ProgramValue got = model->forward(arguments);
  const ProgramValue expected = net->forward(arguments);
  EXPECT_TRUE(at::allclose(got["out"].tensor(), expected["out"].tensor()));
  EXPECT_EQ(got["more"][0].tensor().size(0), 6);
  EXPECT_TRUE(got["more"][1].is_none());
}

TEST(Replicas, DoNotJoinNumbers) {
  Program net = test::load_net("results");
  EXPECT_EQ(net->forward(six_rows())["more"][1].integer(), 6);
  DataParallel model(net, {.devices = "cpu*2"});
  try {
    model->forward(six_rows());
    FAIL() << "the batch has 6 rows";
  } catch (const Exception& error) {
    EXPECT_EQ(error.error().code, ErrorCode::kUnsupported);
    EXPECT_THAT(error.what(), testing::HasSubstr("replica 0 returned 3 "));
  }
}

// In the order of Python's, so that ranks of both broadcast the same.
TEST(Replicas, HaveAllBuffersInPythonsOrder) {
  Program net = test::load_net("moving");
  EXPECT_THAT(
      net->named_buffers().keys(),
      testing::ElementsAre(
          "mean",
          "scale.rates",
          "norm.running_mean",
          "norm.running_var",
          "norm.num_batches_tracked"));
  EXPECT_FALSE(state_dict(*net).get("mean").defined());
  EXPECT_FALSE(state_dict(*net).get("scale.rates").defined());
  EXPECT_TRUE(load_state_dict(*net, state_dict(*net)).missing_keys.empty());
  EXPECT_EQ(net->unsaved_tensors().size(), 2U);
}

// Replica 1 begins each pass with what replica 0 has left.
TEST(Replicas, FollowABufferThatIsNotSaved) {
  Program net = test::load_net("moving");
  DataParallel model(net, {.devices = "cpu*2"});
  for (int step = 0; step < 3; ++step) {
    Program alone = std::dynamic_pointer_cast<ProgramImpl>(clone_module(*net));
    const at::Tensor x = torch::rand({6, 8});
    const at::Tensor got = model->forward(x);
    const at::Tensor of_second = alone->forward(x.slice(0, 3));
    EXPECT_TRUE(at::allclose(got.slice(0, 3), of_second)) << step;
  }
}

} // namespace
} // namespace lockstep
