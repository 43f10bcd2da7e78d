// SPDX-License-Identifier: BSD-3-Clause
//
// Runs that go on with data that are not those of the checkpoint.
#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/base/error.h"
#include "lockstep/data/made_dataset.h"
#include "tests/train/trainer_fixture.h"

namespace lockstep::train {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

// 64 points, of which two classes are made; `digest` stands for their bytes.
class KnownPoints : public Dataset {
 public:
  explicit KnownPoints(std::uint64_t digest) : digest_(digest) {}
  [[nodiscard]] std::int64_t size() const override {
    return 64;
  }
  [[nodiscard]] std::vector<std::int64_t> sample_shape() const override {
    return {1};
  }
  [[nodiscard]] std::int64_t num_classes() const override {
    return 2;
  }
  [[nodiscard]] std::uint64_t digest() const override {
    return digest_;
  }
  void read(
      std::span<const std::int64_t> indices,
      std::int64_t /*epoch*/,
      std::span<float> images,
      TargetRows targets) const override {
    for (std::size_t i = 0; i < indices.size(); ++i) {
      images[i] = static_cast<float>(indices[i]) / 32.0F - 1.0F;
      targets.classes[i] = indices[i] < 32 ? 0 : 1;
    }
  }

 private:
  std::uint64_t digest_;
};

class OtherData : public TrainerFixture {
 protected:
  TrainResult run(
      const TrainConfig& config,
      std::uint64_t train_digest,
      std::uint64_t test_digest,
      TrainerOptions options = {}) {
    torch::manual_seed(3);
    options.own = {
        .model = torch::nn::Linear(1, 2),
        .train_data = std::make_shared<KnownPoints>(train_digest),
        .test_data = std::make_shared<KnownPoints>(test_digest)};
    return train(config, std::move(options));
  }
  /// One epoch of data 1 and test data 2, in a folder that goes on.
  TrainConfig begun() {
    TrainConfig config = small("run");
    config.batch_size = 16;
    config.max_train_samples = 0;
    config.max_eval_samples = 0;
    config.epochs = 1;
    run(config, 1, 2);
    config.epochs = 2;
    config.resume = config.output;
    return config;
  }
  Error refused(
      const TrainConfig& config,
      std::uint64_t train_digest,
      std::uint64_t test_digest) {
    try {
      run(config, train_digest, test_digest);
    } catch (const Exception& exception) {
      return exception.error();
    }
    ADD_FAILURE() << "no error";
    return {};
  }
};

TEST_F(OtherData, OfTrainingIsToldAndNotExact) {
  TrainConfig config = begun();
  config.resume_exact = true;
  const Error error = refused(config, 7, 2);
  EXPECT_EQ(error.detail, "E_NOT_EXACT");
  EXPECT_THAT(
      error.message,
      HasSubstr("train_digest: '0000000000000001', now '0000000000000007'"));
  config.resume_exact = false;
  RecordingLog log;
  run(config, 7, 2, {.log = &log});
  EXPECT_THAT(
      log.lines[LogLevel::kWarning],
      Contains(HasSubstr("train_digest")));
}

TEST_F(OtherData, InsideAnEpochIsRefused) {
  TrainConfig config = begun();
  int steps = 0;
  run(config, 1, 2, {.should_stop = [&] { return ++steps == 2; }});
  EXPECT_EQ(refused(config, 7, 2).detail, "E_OTHER_SAMPLES");
  EXPECT_FALSE(run(config, 1, 7).was_stopped) << "the test's do not matter";
}

TEST_F(OtherData, OfTheTestChoosesTheBestAnew) {
  TrainConfig config = begun();
  RecordingLog log;
  const TrainResult result = run(config, 1, 7, {.log = &log});
  EXPECT_THAT(
      log.lines[LogLevel::kWarning],
      Contains(HasSubstr("the best is chosen anew")));
  EXPECT_EQ(result.best, result.test->metrics.front().value);
}

TEST_F(OtherData, ThatIsNotKnownIsNotCompared) {
  TrainConfig config = begun();
  config.resume_exact = true;
  RecordingLog log;
  run(config, 0, 0, {.log = &log});
  EXPECT_THAT(
      log.lines[LogLevel::kWarning],
      Not(Contains(HasSubstr("digest"))));
}

TEST_F(OtherData, ADataSetByNameHasADigest) {
  TrainConfig config = small("mnist");
  config.epochs = 1;
  train(config);
  const ckpt::Value saved = checkpoint("mnist");
  const ckpt::Value* const order = saved.find("lockstep")->find("order");
  ASSERT_NE(order, nullptr);
  EXPECT_EQ(order->find("train_digest")->text().size(), 16U);
}

class OtherMetric : public TrainerFixture {
 protected:
  /// A run that waits for `metric` to rise, for one epoch more than before.
  double plateau_after(
      const std::string& metric,
      std::int64_t epochs,
      RecordingLog& log) {
    TrainConfig config = uneven("run");
    config.lr_scheduler = "reducelronplateau";
    config.metric = metric;
    config.epochs = epochs;
    config.resume = "auto";
    result_ = train(config, {.log = &log});
    const ckpt::Value saved = checkpoint("run");
    return *saved.find("scheduler")->find("best")->number();
  }
  TrainResult result_ = {};
};

TEST_F(OtherMetric, APlateauWaitsAnewWithAWarning) {
  constexpr std::string_view kAnew = "begin to wait anew";
  RecordingLog first;
  const double top5 = plateau_after("top5", 1, first);
  EXPECT_EQ(top5, result_.test->metric("top5"));
  RecordingLog second;
  const double top1 = plateau_after("top1", 2, second);
  EXPECT_LT(top1, top5) << "which no top1 would be above";
  EXPECT_EQ(top1, result_.test->metric("top1"));
  EXPECT_THAT(second.lines[LogLevel::kWarning], Contains(HasSubstr(kAnew)));
  RecordingLog third;
  EXPECT_GE(plateau_after("top1", 3, third), top1);
  EXPECT_THAT(third.lines[LogLevel::kWarning], Not(Contains(HasSubstr(kAnew))));
}

} // namespace
} // namespace lockstep::train
