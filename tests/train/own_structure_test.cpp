// SPDX-License-Identifier: BSD-3-Clause
//
// Targets and outputs of types of the program's own: a struct, a tuple, tensors
// by name. They train as the same numbers in one tensor do, bit for bit.
#include <map>
#include <tuple>

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/base/error.h"
#include "lockstep/data/made_dataset.h"
#include "lockstep/tensor/checkpoint.h"
#include "lockstep/tensor/structure.h"
#include "tests/support/thread_ranks.h"
#include "tests/train/trainer_fixture.h"

namespace lockstep::train {
namespace {

struct Mark {
  at::Tensor place = {};
  at::Tensor kind = {};
};
struct Found {
  at::Tensor place = {};
  std::map<std::string, at::Tensor> scores = {};
};

} // namespace
} // namespace lockstep::train

template <>
struct lockstep::Structure<lockstep::train::Mark>
    : Fields<&train::Mark::place, &train::Mark::kind> {};
template <>
struct lockstep::Structure<lockstep::train::Found>
    : Fields<&train::Found::place, &train::Found::scores> {};

namespace lockstep::train {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

constexpr std::int64_t kSamples = 48;

at::Tensor row(std::int64_t i) {
  return torch::arange(i, i + 4, torch::kFloat) / 24 - 1;
}
at::Tensor place_of(std::int64_t i) {
  return torch::tensor({static_cast<float>(i % 5), static_cast<float>(i % 3)});
}

struct FoundNet : torch::nn::Module {
  Found forward(const at::Tensor& x) {
    const at::Tensor y = joined(x);
    return {.place = y.slice(1, 0, 2), .scores = {{"kind", y.slice(1, 2)}}};
  }
  at::Tensor joined(const at::Tensor& x) {
    return last->forward(torch::tanh(first->forward(x)));
  }
  torch::nn::Linear first = register_module("first", torch::nn::Linear(4, 8));
  torch::nn::Linear last = register_module("last", torch::nn::Linear(8, 4));
};

struct JoinedNet : FoundNet {
  at::Tensor forward(const at::Tensor& x) {
    return joined(x);
  }
};

at::Tensor loss_of(
    const at::Tensor& place,
    const at::Tensor& scores,
    const at::Tensor& wanted,
    const at::Tensor& kind) {
  return torch::mse_loss(place, wanted) +
         torch::cross_entropy_loss(scores, kind);
}

Task found_task() {
  return {
      .name = "marks",
      .loss =
          [](const Found& found, const Mark& mark) {
            return loss_of(
                found.place,
                found.scores.at("kind"),
                mark.place,
                mark.kind);
          },
      .metrics = {accuracy({1})},
      .measured =
          [](const Found& found, const Mark& mark) {
            return std::pair{found.scores.at("kind"), mark.kind};
          }};
}

Task joined_task() {
  return {
      .name = "marks",
      .loss =
          [](const at::Tensor& y, const at::Tensor& wanted) {
            return loss_of(
                y.slice(1, 0, 2),
                y.slice(1, 2),
                wanted.slice(1, 0, 2),
                wanted.select(1, 2).to(at::kLong));
          },
      .metrics = {accuracy({1})},
      .measured =
          [](const at::Tensor& y, const at::Tensor& wanted) {
            return std::pair{y.slice(1, 2), wanted.select(1, 2).to(at::kLong)};
          }};
}

std::shared_ptr<Dataset> marks() {
  return as_dataset(make_dataset(kSamples, [](std::int64_t i) {
    return std::tuple{row(i), Mark{place_of(i), torch::tensor(i % 2)}};
  }));
}

std::shared_ptr<Dataset> joined_marks() {
  return as_dataset(make_dataset(kSamples, [](std::int64_t i) {
    const at::Tensor kind = torch::full({1}, static_cast<float>(i % 2));
    return std::tuple{row(i), torch::cat({place_of(i), kind})};
  }));
}

class OwnStructure : public TrainerFixture {
 protected:
  TrainConfig config(const std::string& folder) {
    TrainConfig config = small(folder);
    config.epochs = 2;
    config.batch_size = 10; // the last one has 8
    config.max_train_samples = 0;
    config.max_eval_samples = 0;
    return config;
  }
  static OwnParts found_parts() {
    torch::manual_seed(6);
    const auto data = marks();
    return {
        .model = std::make_shared<FoundNet>(),
        .train_data = data,
        .test_data = data,
        .task = found_task()};
  }
  static OwnParts joined_parts() {
    torch::manual_seed(6);
    const auto data = joined_marks();
    return {
        .model = std::make_shared<JoinedNet>(),
        .train_data = data,
        .test_data = data,
        .task = joined_task()};
  }
  Error refused(const OwnParts& own, const TrainConfig& config) {
    try {
      train(config, {.own = own});
    } catch (const Exception& exception) {
      return exception.error();
    }
    ADD_FAILURE() << "no error";
    return {};
  }
  Error refused(const OwnParts& own) {
    return refused(own, config("refused"));
  }
  void expect_equal_weights(const std::string& a, const std::string& b) {
    JoinedNet of_a;
    JoinedNet of_b;
    load_weights(of_a, dir_ / (a + "/checkpoint.pth.tar"));
    load_weights(of_b, dir_ / (b + "/checkpoint.pth.tar"));
    for (const auto& parameter : of_a.named_parameters()) {
      EXPECT_TRUE(
          parameter.value().equal(of_b.named_parameters()[parameter.key()]))
          << parameter.key();
    }
    EXPECT_FALSE(of_a.first->weight.equal(JoinedNet().first->weight));
  }
};

TEST_F(OwnStructure, TrainsAsTheSameNumbersInOneTensor) {
  for (const std::string devices : {"cpu", "cpu*2"}) {
    TrainConfig of_found = config("found-" + devices);
    of_found.devices = devices;
    of_found.workers = 2;
    TrainConfig of_joined = of_found;
    of_joined.output = dir_ / ("joined-" + devices);
    const TrainResult found = train(of_found, {.own = found_parts()});
    const TrainResult joined = train(of_joined, {.own = joined_parts()});
    ASSERT_TRUE(found.test && joined.test);
    EXPECT_EQ(found.test->loss, joined.test->loss) << devices;
    EXPECT_EQ(found.best, joined.best);
    EXPECT_EQ(found.best_by.column, "val_top1");
    expect_equal_weights("found-" + devices, "joined-" + devices);
  }
}

TEST_F(OwnStructure, TrainsOnRanks) {
  TrainConfig of_found = config("found");
  TrainConfig of_joined = config("joined");
  for (const bool is_found : {true, false}) {
    // Made one after the other: they draw from one generator.
    const auto made = is_found ? found_parts : joined_parts;
    std::vector<OwnParts> of_ranks{made(), made()};
    // What a task of classes counts by is no matter of such targets.
    for (OwnParts& own : of_ranks) {
      if (is_found) {
        own.task.divisor = classification().divisor;
        own.task.counted = classification().counted;
      }
    }
    const auto errors =
        dist::run_thread_ranks(2, [&](const dist::ProcessGroup& group) {
          const auto rank = static_cast<std::size_t>(group.rank());
          train(
              is_found ? of_found : of_joined,
              {.group = group, .own = of_ranks[rank]});
        });
    EXPECT_THAT(errors, Each(""));
  }
  expect_equal_weights("found", "joined");
}

TEST_F(OwnStructure, AStopInsideAnEpochChangesNothing) {
  train(config("straight"), {.own = found_parts()});
  TrainConfig stopped = config("stopped");
  int steps = 0;
  train(
      stopped,
      {.should_stop = [&] { return ++steps == 3; }, .own = found_parts()});
  stopped.resume = stopped.output;
  stopped.resume_exact = true;
  train(stopped, {.own = found_parts()});
  expect_equal_weights("straight", "stopped");
}

TEST_F(OwnStructure, SomeSamplesKeepTheirTargets) {
  OwnParts own = found_parts();
  own.train_data = subset(marks(), std::vector<std::int64_t>{3, 5, 8, 13});
  own.test_data = subset(marks(), std::vector<std::int64_t>{0, 1});
  const TrainResult result = train(config("subset"), {.own = own});
  EXPECT_EQ(result.steps, 2);
  EXPECT_TRUE(result.test);
}

TEST_F(OwnStructure, SeveralTargetsAreATuple) {
  OwnParts own = found_parts();
  own.test_data = nullptr;
  own.train_data = as_dataset(make_dataset(kSamples, [](std::int64_t i) {
    return std::tuple{row(i), place_of(i), i % 2};
  }));
  using Targets = std::tuple<at::Tensor, at::Tensor>;
  std::int64_t seen = 0;
  own.task = {.loss = [&](const Found& found, const Targets& targets) {
    const auto& [place, kind] = targets;
    seen += kind.size(0);
    return loss_of(found.place, found.scores.at("kind"), place, kind);
  }};
  train(config("tuple"), {.own = own});
  EXPECT_EQ(seen, 2 * kSamples);
}

TEST_F(OwnStructure, ATaskMayTakeTheWholeBatch) {
  OwnParts own = joined_parts();
  own.test_data = nullptr;
  std::int64_t seen = 0;
  own.task = {.loss = [&](const at::Tensor& y, const Batch& batch) {
    seen += batch.images.size(0);
    return (y.sum(1) - batch.targets.sum(1)).square().mean();
  }};
  train(config("batch"), {.own = own});
  EXPECT_EQ(seen, 2 * kSamples);
  // A function with a state of its own, and a plain one.
  own.task = {
      .loss = [calls = 0](const at::Tensor& y, const at::Tensor& x) mutable {
        return (y - x.sum(1, true)).square().mean() * ++calls;
      }};
  EXPECT_GT(train(config("state"), {.own = own}).steps, 0);
  at::Tensor (*none)(const at::Tensor&, const at::Tensor&) = nullptr;
  EXPECT_FALSE(LossFunction(none));
}

TEST_F(OwnStructure, OtherTypesAreRefused) {
  OwnParts other_outputs = found_parts();
  other_outputs.model = std::make_shared<JoinedNet>();
  const Error outputs = refused(other_outputs);
  EXPECT_EQ(outputs.detail, "E_TASK");
  EXPECT_THAT(outputs.message, HasSubstr("takes outputs of the type"));
  EXPECT_THAT(outputs.message, HasSubstr("Found, and the model gives tensor"));
  OwnParts other_targets = found_parts();
  other_targets.train_data = joined_marks();
  EXPECT_THAT(
      refused(other_targets).message,
      HasSubstr("Mark, and the data have nothing"));
  OwnParts tensors = joined_parts();
  tensors.train_data = marks();
  EXPECT_THAT(
      refused(tensors).message,
      HasSubstr("Tensor, and the data have struct(tensor, tensor)"));
}

TEST_F(OwnStructure, MetricsNeedToBeToldWhatTheySee) {
  OwnParts own = found_parts();
  own.task.measured = {};
  const Error error = refused(own);
  EXPECT_EQ(error.detail, "E_TASK");
  EXPECT_THAT(error.hint, HasSubstr("measured"));
}

TEST_F(OwnStructure, NoTaskIsGuessedForThem) {
  OwnParts own = found_parts();
  own.task = {};
  const Error error = refused(own);
  EXPECT_EQ(error.detail, "E_TASK");
  EXPECT_THAT(error.hint, HasSubstr("OwnParts::task"));
}

TEST_F(OwnStructure, TheyAreNotMixed) {
  TrainConfig mixing = config("mixed");
  mixing.mixup_alpha = 0.2;
  EXPECT_THAT(refused(found_parts(), mixing).message, HasSubstr("mix classes"));
}

} // namespace
} // namespace lockstep::train
