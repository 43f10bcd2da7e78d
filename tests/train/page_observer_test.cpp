// SPDX-License-Identifier: BSD-3-Clause
//
// The page of a run: that it tells what the run did, in every kind of run.
#include "lockstep/train/observers/page_observer.h"

#include <filesystem>
#include <stdexcept>

#include <ATen/ops/rand.h>
#include <c10/util/Exception.h>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include "lockstep/data/made_dataset.h"
#include "tests/support/fault_fs.h"
#include "tests/train/trainer_fixture.h"

namespace lockstep::train {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

struct Rows : torch::nn::Module {
  at::Tensor forward(const at::Tensor& x) {
    return linear->forward(x);
  }
  torch::nn::Linear linear = register_module("linear", torch::nn::Linear(3, 2));
};

// Not of batches of 4.
struct Picky : torch::nn::Module {
  at::Tensor forward(const at::Tensor& x) {
    TORCH_CHECK(x.size(0) != 4, "no batch of 4, please");
    return linear->forward(x);
  }
  torch::nn::Linear linear = register_module("linear", torch::nn::Linear(3, 2));
};

struct Masks : torch::nn::Module {
  at::Tensor forward(const at::Tensor& x) {
    return conv->forward(x);
  }
  torch::nn::Conv2d conv =
      register_module("conv", torch::nn::Conv2d(1, 2, /*kernel_size=*/1));
};

class PageObserverTest : public TrainerFixture {
 protected:
  json details(const std::string& folder) {
    return json::parse(get(folder, "report.json"));
  }
  json last_start(const std::string& folder) {
    return json::parse(get(folder, "env.json"))["starts"].back();
  }
  TrainConfig own(const std::string& folder) {
    TrainConfig config = small(folder);
    config.max_train_samples = 0;
    config.max_eval_samples = 0;
    config.batch_size = 8;
    config.epochs = 1;
    return config;
  }
};

TEST_F(PageObserverTest, ClassesAndSamplesAreThoseOfTheTest) {
  const TrainResult result = train(small("run"));
  const json found = details("run");
  EXPECT_EQ(found["epoch"], 2);
  ASSERT_THAT(found["tables"], SizeIs(2));
  EXPECT_EQ(found["tables"][0]["name"], "per_class");
  const json& matrix = found["tables"][1];
  ASSERT_THAT(matrix["rows"], SizeIs(10));
  double all = 0;
  double right = 0;
  for (std::size_t i = 0; i < 10; ++i) {
    for (std::size_t k = 0; k < 10; ++k) {
      const double count = matrix["rows"][i]["values"][k];
      all += count;
      right += i == k ? count : 0;
    }
  }
  EXPECT_EQ(all, 128) << "each sample of the test once";
  EXPECT_NEAR(
      100 * right / all,
      result.test.value().metric("top1").value(),
      1e-9);
  ASSERT_THAT(found["samples"], SizeIs(12));
  EXPECT_THAT(
      found["samples"][0]["picture"].get<std::string>(),
      HasSubstr("data:image/png;base64,iVBOR"));
  EXPECT_TRUE(found["samples"][0]["right"].is_boolean());
  const std::string page = get("run", "report.html");
  EXPECT_THAT(page, HasSubstr("state finished"));
  EXPECT_THAT(page, HasSubstr("Confusion matrix"));
  EXPECT_THAT(page, HasSubstr("forward and loss"));
  EXPECT_THAT(page, HasSubstr("rank 0"));
}

TEST_F(PageObserverTest, WhatIsShownChangesNoBit) {
  // Two replicas of a net with random numbers, and a test that is looked at.
  TrainConfig config = small("seen");
  config.devices = "cpu*2";
  train(config);
  config.output = dir_ / "unseen";
  OwnParts parts = named_parts(config);
  parts.task = classification();
  parts.task.details = {accuracy({2})}; // no confusion
  train(config, {.own = std::move(parts)});
  EXPECT_THAT(details("unseen")["tables"], IsEmpty());
  EXPECT_EQ(get("seen", "steps.csv"), get("unseen", "steps.csv"));
}

TEST_F(PageObserverTest, PhasesAndMemoryAreInTheMetrics) {
  RecordingObserver observer;
  train(
      small("run"),
      {.observers = {
           std::shared_ptr<Observer>(std::shared_ptr<void>(), &observer)}});
  ASSERT_THAT(observer.epochs, SizeIs(2));
  for (const EpochRecord& epoch : observer.epochs) {
    const PhaseTimes& phases = epoch.phases;
    EXPECT_GT(phases.forward, 0);
    EXPECT_GT(phases.backward, 0);
    EXPECT_GT(phases.update, 0);
    EXPECT_GT(phases.test, 0);
    EXPECT_LE(
        phases.data + phases.forward + phases.backward + phases.update +
            phases.read + phases.test + phases.save,
        epoch.times.wall);
    ASSERT_THAT(epoch.rank_bytes, SizeIs(1));
    EXPECT_GT(epoch.rank_bytes[0], 1e6);
    EXPECT_THAT(epoch.shown, SizeIs(12));
  }
  EXPECT_THAT(get("run", "metrics.jsonl"), HasSubstr("\"backward_s\":"));
  EXPECT_THAT(get("run", "metrics.jsonl"), HasSubstr("\"rank0_bytes\":"));
}

TEST_F(PageObserverTest, ValuesAndMasksAreShownAsTheyAre) {
  torch::manual_seed(1);
  const at::Tensor x = at::rand({16, 3});
  const auto rows = as_dataset(make_dataset(x, x.narrow(1, 0, 2)));
  train(
      own("rows"),
      {.own = {
           .model = std::make_shared<Rows>(),
           .train_data = rows,
           .test_data = rows}});
  json found = details("rows");
  EXPECT_EQ(found["tables"][0]["name"], "per_output");
  EXPECT_THAT(found["samples"], SizeIs(12));
  EXPECT_FALSE(found["samples"][0].contains("picture"));
  EXPECT_THAT(get("rows", "report.html"), HasSubstr(">Values</h2>"));

  const at::Tensor images = at::rand({16, 1, 6, 5});
  const auto masks = as_dataset(
      make_dataset(images, images.squeeze(1).gt(0.5).to(at::kLong)),
      {.num_classes = 2});
  train(
      own("masks"),
      {.own = {
           .model = std::make_shared<Masks>(),
           .train_data = masks,
           .test_data = masks}});
  found = details("masks");
  EXPECT_THAT(found["samples"], SizeIs(6));
  EXPECT_EQ(found["samples_wide"], true);
  EXPECT_EQ(found["tables"][0]["columns"][0], "iou");
  EXPECT_EQ(found["tables"][1]["name"], "confusion");
}

// Twelve of them go through the net in batches of 8 and 4.
TEST_F(PageObserverTest, SamplesThatCannotBePredictedAreAWarningOnce) {
  torch::manual_seed(1);
  const at::Tensor x = at::rand({16, 3});
  const auto rows = as_dataset(make_dataset(x, x.narrow(1, 0, 2)));
  TrainConfig config = own("run");
  config.epochs = 2;
  RecordingLog log;
  train(
      config,
      {.log = &log,
       .own = {
           .model = std::make_shared<Picky>(),
           .train_data = rows,
           .test_data = rows}});
  EXPECT_THAT(
      log.lines[LogLevel::kWarning],
      testing::ElementsAre(
          "report.html shows no samples of the test: no batch of 4, please"));
  EXPECT_THAT(details("run")["samples"], IsEmpty());
  EXPECT_EQ(details("run")["epoch"], 2);
}

TEST_F(PageObserverTest, ALossThatThrowsIsToldWithItsPlace) {
  torch::manual_seed(1);
  const at::Tensor x = at::rand({20, 3});
  const auto rows = as_dataset(make_dataset(x, x.narrow(1, 0, 2)));
  int calls = 0;
  OwnParts parts{.model = std::make_shared<Rows>(), .train_data = rows};
  parts.task.loss = [&calls](const at::Tensor& y, const at::Tensor&) {
    if (++calls == 3) {
      throw std::out_of_range("map::at");
    }
    return y.sum();
  };
  try {
    train(own("run"), {.own = std::move(parts)});
    ADD_FAILURE() << "no error";
  } catch (const Exception& error) {
    EXPECT_EQ(error.error().detail, "E_LOSS_FAILED");
    EXPECT_THAT(
        error.error().message,
        HasSubstr(
            "the task's loss threw: map::at; in epoch 1, step 3 of 3, samples "
            "17 to 20 of the epoch, from '"));
  }
  const json end = last_start("run")["end"];
  EXPECT_EQ(end["how"], "failed");
  EXPECT_EQ(end["why"], "E_LOSS_FAILED");
  EXPECT_THAT(get("run", "report.html"), HasSubstr("state failed"));
  EXPECT_THAT(get("run", "report.html"), HasSubstr("map::at"));
  EXPECT_THAT(get("run", "log.txt"), HasSubstr("error: [train.loss]"));
}

TEST_F(PageObserverTest, HowARunEndedIsInItsStarts) {
  TrainConfig config = small("run");
  int steps = 0;
  train(config, {.should_stop = [&] { return ++steps > 2; }});
  EXPECT_EQ(last_start("run")["end"]["how"], "interrupted");
  EXPECT_EQ(last_start("run")["data"]["train_samples"], 256);
  EXPECT_THAT(
      last_start("run")["data"]["train_digest"].get<std::string>(),
      SizeIs(16));
  EXPECT_THAT(get("run", "report.html"), HasSubstr("state interrupted"));
  config.resume = "auto";
  train(config);
  EXPECT_EQ(last_start("run")["end"]["how"], "finished");
  EXPECT_THAT(get("run", "report.html"), HasSubstr(">interrupted</td>"));
  config.epochs = 3;
  config.lr = 1e30;
  config.output = dir_ / "nan";
  config.resume = "";
  EXPECT_THROW(train(config), Exception);
  EXPECT_THAT(
      last_start("nan")["end"]["why"].get<std::string>(),
      testing::AnyOf("loss nan", "loss inf", "weights not finite"));
}

TEST_F(PageObserverTest, WhereSettingsComeFromIsKept) {
  SettingSources sources;
  sources.set(*find_flag("--lr"), "recipe.yaml:3");
  TrainConfig config = small("run");
  train(config, {.sources = sources});
  const auto found = [&] {
    return json::parse(get("run", "env.json"))["sources"];
  };
  EXPECT_EQ(found(), json({{"lr", "recipe.yaml:3"}}));
  // A run that goes on has them from where the run before had them.
  sources.set(*find_flag("--lr"), "the checkpoint");
  sources.set(*find_flag("--seed"), "the checkpoint");
  config.resume = "auto";
  config.epochs = 3;
  train(config, {.sources = sources});
  EXPECT_EQ(found(), json({{"lr", "recipe.yaml:3"}}));
  EXPECT_THAT(get("run", "report.html"), HasSubstr("recipe.yaml:3"));
}

TEST_F(PageObserverTest, APageThatCannotBeWrittenIsAWarning) {
  TrainConfig config = small("run");
  train(config);
  // A folder lies where the page shall be.
  std::filesystem::remove(dir_ / "run/report.html");
  std::filesystem::create_directory(dir_ / "run/report.html");
  RecordingLog log;
  config.resume = "auto";
  config.epochs = 3;
  EXPECT_EQ(train(config, {.log = &log}).epochs, 3);
  EXPECT_THAT(
      log.lines[LogLevel::kWarning],
      testing::Contains(HasSubstr("report.html")));
}

} // namespace
} // namespace lockstep::train
