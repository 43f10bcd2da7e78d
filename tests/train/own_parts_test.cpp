// SPDX-License-Identifier: BSD-3-Clause
//
// Runs of a program's own model, data and loss: what the program left out is
// not made up, and the run's files say whose parts they are.
#include <algorithm>
#include <numeric>

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/train/observers/line_observer.h"
#include "tests/support/thread_ranks.h"
#include "tests/train/trainer_fixture.h"

namespace lockstep::train {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;

/// Points on a line, with the number of the point's half as target.
class Points : public Dataset {
 public:
  explicit Points(std::int64_t size, std::int64_t classes = 2)
      : size_(size), classes_(classes) {}
  [[nodiscard]] std::int64_t size() const override {
    return size_;
  }
  [[nodiscard]] std::vector<std::int64_t> sample_shape() const override {
    return {3};
  }
  [[nodiscard]] std::int64_t num_classes() const override {
    return classes_;
  }
  void read(
      std::span<const std::int64_t> indices,
      std::int64_t /*epoch*/,
      std::span<float> images,
      TargetRows targets) const override {
    for (std::size_t i = 0; i < indices.size(); ++i) {
      const float x = static_cast<float>(indices[i]) / 32.0F - 1.0F;
      images[3 * i] = x;
      images[3 * i + 1] = x * x;
      images[3 * i + 2] = 1.0F;
      if (classes_ > 0) {
        targets.classes[i] = x > 0 ? classes_ - 1 : 0;
      }
    }
  }

 private:
  std::int64_t size_;
  std::int64_t classes_;
};

struct Net : torch::nn::Module {
  at::Tensor forward(const at::Tensor& x) {
    return last->forward(torch::tanh(first->forward(x)));
  }
  torch::nn::Linear first = register_module("first", torch::nn::Linear(3, 8));
  torch::nn::Linear last = register_module("last", torch::nn::Linear(8, 2));
};

/// The same parameters, and another function.
struct OtherNet : Net {};

at::Tensor squares(const at::Tensor& outputs, const at::Tensor& targets) {
  return (outputs.select(1, 0) - targets.to(at::kFloat)).square().mean();
}

class OwnPartsTest : public TrainerFixture {
 protected:
  TrainConfig config(const std::string& folder) {
    TrainConfig config = small(folder);
    config.model = "resnet18";
    config.max_train_samples = 0;
    config.max_eval_samples = 0;
    config.batch_size = 16;
    config.epochs = 3;
    return config;
  }
  static OwnParts parts(LossFunction loss = {}) {
    torch::manual_seed(4);
    return {
        .model = std::make_shared<Net>(),
        .train_data = std::make_shared<Points>(64),
        .test_data = std::make_shared<Points>(64),
        .task = {.loss = std::move(loss)}};
  }
  Error refused(const TrainConfig& config, const OwnParts& own) {
    try {
      train(config, {.own = own});
    } catch (const Exception& exception) {
      return exception.error();
    }
    ADD_FAILURE() << "no error";
    return {};
  }
  std::vector<std::string> rows(const std::string& name) {
    auto rows = split(get("run", name), '\n');
    rows.pop_back();
    return rows;
  }
};

TEST_F(OwnPartsTest, DataWithoutTestDataAreNotTestedOnOthers) {
  OwnParts own = parts();
  own.test_data = nullptr;
  auto seen = std::make_shared<RecordingObserver>();
  RecordingLog log;
  const TrainResult result =
      train(config("run"), {.log = &log, .observers = {seen}, .own = own});
  EXPECT_FALSE(result.test);
  EXPECT_EQ(result.best_by.column, "train_loss");
  for (const EpochRecord& epoch : seen->epochs) {
    EXPECT_FALSE(epoch.test);
    EXPECT_GT(epoch.train.metric("top1"), 0.0)
        << "classes of the training are counted";
  }
  EXPECT_THAT(
      log.lines[LogLevel::kInfo],
      AllOf(
          Contains("no test: there are no test data"),
          Contains(HasSubstr("64 training and 0 test samples")),
          Contains(HasSubstr("the best epoch is that of the lowest "
                             "train_loss")),
          Each(Not(HasSubstr("Test:")))));
  const auto cells = split(rows("results.csv").back(), ',');
  EXPECT_THAT(cells[5] + cells[6], "") << "val_loss and val_top1";
  EXPECT_THAT(get("run", "metrics.jsonl"), HasSubstr(R"("val_loss":null)"));
  const ckpt::Value best = checkpoint("run", kBestFile);
  const auto lowest =
      std::ranges::min_element(seen->epochs, {}, [](const EpochRecord& e) {
        return e.train.loss;
      });
  EXPECT_EQ(*best.find("epoch")->as_int(), lowest->epoch);
  EXPECT_EQ(*best.find("best_train_loss")->as_float(), lowest->train.loss);
}

TEST_F(OwnPartsTest, AnEmptyTestSetIsNone) {
  OwnParts own = parts();
  own.test_data = std::make_shared<Points>(0);
  EXPECT_FALSE(train(config("run"), {.own = own}).test);
}

TEST_F(OwnPartsTest, TestDataAloneAreForATestOnly) {
  OwnParts own = parts();
  own.train_data = nullptr;
  EXPECT_THAT(
      refused(config("run"), own).message,
      HasSubstr("no training data"));
  TrainConfig only = config("run");
  only.test_only = true;
  EXPECT_GT(train(only, {.own = own}).test.value().loss, 0.0);
  std::swap(own.train_data, own.test_data);
  EXPECT_THAT(refused(only, own).message, HasSubstr("no test data"));
}

TEST_F(OwnPartsTest, DataWithoutTargetsNeedALossOfTheirOwn) {
  OwnParts own = parts();
  own.train_data = std::make_shared<Points>(64, /*classes=*/0);
  own.test_data = nullptr;
  EXPECT_EQ(refused(config("run"), own).detail, "E_TASK");
  own.task.loss = [](const at::Tensor& outputs, const at::Tensor& targets) {
    EXPECT_FALSE(targets.defined());
    return outputs.square().mean();
  };
  EXPECT_EQ(train(config("run"), {.own = own}).epochs, 3);
}

TEST_F(OwnPartsTest, AnOwnLossHasNoAccuracyAndItsLowestIsTheBest) {
  auto seen = std::make_shared<RecordingObserver>();
  RecordingLog log;
  const TrainResult result = train(
      config("run"),
      {.log = &log,
       .observers = {seen, std::make_shared<LineObserver>(log, 50)},
       .own = parts(squares)});
  EXPECT_EQ(result.best_by.column, "val_loss");
  EXPECT_FALSE(result.test.value().metric("top1"));
  for (const StepRecord& step : seen->steps) {
    EXPECT_TRUE(step.metrics.empty());
  }
  const auto best =
      std::ranges::min_element(seen->epochs, {}, [](const EpochRecord& e) {
        return e.test.value().loss;
      });
  EXPECT_TRUE(best->is_best);
  EXPECT_EQ(result.best, best->test->loss);
  const ckpt::Value file = checkpoint("run", kBestFile);
  EXPECT_EQ(*file.find("epoch")->as_int(), best->epoch);
  EXPECT_EQ(*file.find("best_val_loss")->as_float(), best->test->loss);
  EXPECT_EQ(file.find("best_acc1"), nullptr);
  EXPECT_THAT(
      log.lines[LogLevel::kInfo],
      AllOf(
          Contains("the best epoch is that of the lowest val_loss"),
          Contains(HasSubstr("Test:  loss ")),
          Each(Not(AnyOf(HasSubstr("Acc@1"), HasSubstr("acc1"))))));
  for (const std::string& row : rows("metrics.jsonl")) {
    EXPECT_THAT(row, Not(HasSubstr(R"(top1":0)")));
  }
  EXPECT_THAT(
      get("run", "metrics.jsonl"),
      HasSubstr(R"("best_by":"val_loss")"));
  EXPECT_THAT(get("run", "env.json"), HasSubstr(R"("best_by": "val_loss")"));
  EXPECT_THAT(get("run", "results.svg"), Not(HasSubstr("Accuracy")));
}

TEST_F(OwnPartsTest, AnOwnLossOfClassesCountsThem) {
  OwnParts own =
      parts([](const at::Tensor& outputs, const at::Tensor& targets) {
        return torch::multi_margin_loss(outputs, targets);
      });
  own.task.metrics = {accuracy()};
  const TrainResult result = train(config("run"), {.own = own});
  EXPECT_GT(result.best, 40.0);
  EXPECT_EQ(*(*checkpoint("run").find("best_acc1")).as_float(), result.best);
}

TEST_F(OwnPartsTest, TheBestLossGoesOnWithTheRun) {
  TrainConfig whole = config("whole");
  const auto straight = train(whole, {.own = parts(squares)});
  TrainConfig half = config("run");
  half.epochs = 1;
  train(half, {.own = parts(squares)});
  half.epochs = 3;
  half.resume = half.output;
  RecordingLog log;
  const auto resumed = train(half, {.log = &log, .own = parts(squares)});
  EXPECT_EQ(resumed.best, straight.best);
  EXPECT_EQ(
      get("run", "checkpoint.pth.tar"),
      get("whole", "checkpoint.pth.tar"));
  // Another best: said, and begun fresh.
  half.epochs = 4;
  OwnParts other = parts(squares);
  other.task.metrics = {accuracy()};
  train(half, {.log = &log, .own = other});
  EXPECT_THAT(
      log.lines[LogLevel::kWarning],
      Contains("no best_acc1 in the file: it begins fresh"));
}

TEST_F(OwnPartsTest, TheRunsFilesNameTheProgramsParts) {
  train(config("run"), {.own = parts()});
  const std::string model = "own:lockstep::train::Net";
  const std::string data = "own:lockstep::train::Points";
  EXPECT_THAT(
      get("run", "args.yaml"),
      AllOf(
          HasSubstr("model: \"" + model + "\""),
          HasSubstr("data: \"" + data + "\"")));
  EXPECT_THAT(
      get("run", "env.json"),
      AllOf(HasSubstr("\"" + model + "\""), HasSubstr("\"" + data + "\"")));
  EXPECT_THAT(
      get("run", "log.txt"),
      AllOf(HasSubstr("model " + model), HasSubstr("data " + data)));
  const ckpt::Value root = checkpoint("run");
  EXPECT_EQ(root.find("arch")->text(), model);
  EXPECT_EQ(root.find("args")->find("model")->text(), model);
  EXPECT_EQ(root.find("args")->find("data")->text(), data);

  TrainConfig unnamed = config("");
  unnamed.output.clear();
  const Trainer planned(unnamed, {.own = parts()});
  EXPECT_THAT(
      planned.plan()[1].text,
      HasSubstr("runs/<time>-own-lockstep-train-Net"));
}

TEST_F(OwnPartsTest, StockModulesAreNamedAsTheirHolders) {
  OwnParts own = parts();
  own.model = torch::nn::Sequential(torch::nn::Linear(3, 2));
  EXPECT_EQ(
      Trainer(config("run"), {.own = own}).config().model,
      "own:torch::nn::Sequential");
}

TEST_F(OwnPartsTest, ACheckpointOfAnotherModelIsRefused) {
  TrainConfig next = config("run");
  train(next, {.own = parts()});
  next.resume = next.output;
  next.epochs = 4;
  OwnParts other = parts();
  other.model = std::make_shared<OtherNet>();
  const Error error = refused(next, other);
  EXPECT_EQ(error.detail, "E_OTHER_MODEL");
  EXPECT_THAT(
      error.message,
      AllOf(HasSubstr("train::Net'"), HasSubstr("train::OtherNet'")));
  other.model = {};
  next.model = "mlp";
  EXPECT_EQ(refused(next, other).detail, "E_OTHER_MODEL");
}

TEST_F(OwnPartsTest, OtherDataInsideAnEpochAreRefused) {
  TrainConfig next = config("run");
  int steps = 0;
  train(next, {.should_stop = [&] { return ++steps > 1; }, .own = parts()});
  next.resume = next.output;
  OwnParts other = parts();
  struct OtherPoints : Points {
    using Points::Points;
  };
  other.train_data = std::make_shared<OtherPoints>(64);
  EXPECT_EQ(refused(next, other).detail, "E_OTHER_SAMPLES");
}

TEST_F(OwnPartsTest, RanksWithDataOfDifferentSizesAreRefused) {
  const std::vector<OwnParts> of_ranks{parts(), parts()};
  const auto errors =
      dist::run_thread_ranks(2, [&](const dist::ProcessGroup& group) {
        OwnParts own = of_ranks[static_cast<std::size_t>(group.rank())];
        own.train_data = std::make_shared<Points>(group.rank() == 0 ? 64 : 32);
        train(config("run"), {.group = group, .own = own});
      });
  EXPECT_THAT(
      errors,
      Each(HasSubstr(
          "rank 0 has 64 training and 64 test samples, rank 1 has 32")))
      << "each rank would make another number of steps";
}

TEST_F(OwnPartsTest, ARunHasAModelAndData) {
  OwnParts own = parts();
  own.model = {};
  const auto message_of = [&](const OwnParts& given) -> std::string {
    try {
      const Trainer trainer(config("run"), {.own = given});
    } catch (const Exception& exception) {
      EXPECT_EQ(exception.error().detail, "E_OWN_PARTS");
      return exception.what();
    }
    return "no error";
  };
  EXPECT_THAT(message_of(own), HasSubstr("no model. Hint: set .own.model;"));
  own = parts();
  own.train_data = own.test_data = nullptr;
  EXPECT_THAT(
      message_of(own),
      HasSubstr("no data. Hint: set .own.train_data;"));
}

TEST_F(OwnPartsTest, SettingsWithoutEffectAreTold) {
  TrainConfig odd = config("run");
  odd.label_smoothing = 0.1;
  odd.augment = "crop-flip";
  odd.ema = 0.999;
  RecordingLog log;
  train(odd, {.log = &log, .own = parts(squares)});
  EXPECT_THAT(
      log.lines[LogLevel::kWarning],
      AllOf(
          Contains(HasSubstr("--label-smoothing has no effect")),
          Contains(HasSubstr("of the average is still the first weights")),
          Contains(HasSubstr("--augment has no effect"))));
}

TEST_F(OwnPartsTest, OneClassIsTold) {
  OwnParts own = parts();
  own.train_data = own.test_data = std::make_shared<Points>(64, 1);
  RecordingLog log;
  train(config("run"), {.log = &log, .own = own});
  EXPECT_THAT(
      log.lines[LogLevel::kWarning],
      Contains(HasSubstr("the data have one class")));
}

TEST_F(OwnPartsTest, FewClassesHaveNoTop5) {
  OwnParts own = parts();
  const TrainResult two = train(config("two"), {.own = own});
  EXPECT_EQ(two.test.value().metrics.size(), 1U);
  own.train_data = own.test_data = std::make_shared<Points>(64, 6);
  struct Six : Net {
    torch::nn::Linear all = replace_module("last", torch::nn::Linear(8, 6));
    at::Tensor forward(const at::Tensor& x) {
      return all->forward(torch::tanh(first->forward(x)));
    }
  };
  own.model = std::make_shared<Six>();
  EXPECT_TRUE(train(config("six"), {.own = own}).test->metric("top5"));
}

} // namespace
} // namespace lockstep::train
