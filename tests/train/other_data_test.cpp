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

} // namespace
} // namespace lockstep::train
