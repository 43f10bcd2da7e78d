// SPDX-License-Identifier: BSD-3-Clause
#include <gmock/gmock.h>

#include "lockstep/train/loop/smallest_batch.h"
#include "tests/train/trainer_fixture.h"

namespace lockstep::train {
namespace {

using ::testing::HasSubstr;

class BadInputTest : public TrainerFixture {
 protected:
  Error refused(const TrainConfig& config) {
    try {
      train(config);
    } catch (const Exception& error) {
      return error.error();
    }
    ADD_FAILURE() << "the run was not refused";
    return {};
  }
  std::string put(const std::string& name, const ckpt::Value& root) {
    ckpt::save(dir_ / name, root).value();
    return dir_ / name;
  }
};

TEST_F(BadInputTest, ResumeOfAForeignFileNamesWhatIsMissing) {
  TrainConfig config = small("run");
  config.resume = put(
      "foreign.pth",
      ckpt::Value::dict({{"epoch", 3}, {"weights", ckpt::Value::dict({})}}));
  const Error error = refused(config);
  EXPECT_EQ(error.code, ErrorCode::kMismatch);
  EXPECT_THAT(error.message, HasSubstr("missing 'state_dict', 'optimizer'"));
  EXPECT_THAT(error.hint, HasSubstr("lockstep ckpt"));
  EXPECT_FALSE(real_fs().stat(dir_ / "run")) << "no folder for a refused run";
}

TEST_F(BadInputTest, ResumeOfBareWeightsPointsToInitialCheckpoint) {
  TrainConfig config = small("run");
  train(config);
  const ckpt::Value root = checkpoint("run");
  config.resume = put("weights.pth", *root.find("state_dict"));
  const Error error = refused(config);
  EXPECT_EQ(error.code, ErrorCode::kMismatch);
  EXPECT_THAT(error.message, HasSubstr("weights only"));
  EXPECT_THAT(error.hint, HasSubstr("--initial-checkpoint"));
}

TEST_F(BadInputTest, ResumeOfAnotherModelNamesBoth) {
  TrainConfig config = small("run");
  config.epochs = 1;
  train(config);
  config.resume = config.output;
  config.model = "resnet18";
  const Error error = refused(config);
  EXPECT_EQ(error.detail, "E_OTHER_MODEL");
  EXPECT_EQ(
      error.message,
      "the checkpoint is arch 'mlp', the run asks for 'resnet18'");
}

TEST_F(BadInputTest, ResumeOfTextIsCorruptOrUnsupported) {
  TrainConfig config = small("run");
  config.resume = dir_ / "notes.txt";
  real_fs()
      .create(config.resume, 0644)
      .value()
      ->write(as_byte_span("not a checkpoint"))
      .value();
  const int status = error_info(refused(config).code).exit_code;
  EXPECT_EQ(status, 3);
}

// ResNet18 makes one pixel of 28x28.
TEST_F(BadInputTest, ALastBatchOfOneImageIsRefusedBeforeTheFirst) {
  TrainConfig config = small("run");
  config.model = "resnet18";
  config.max_train_samples = 129; // 64, 64, 1
  const Error error = refused(config);
  EXPECT_EQ(error.code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(error.message, HasSubstr("has one image on a device"));
  EXPECT_FALSE(real_fs().stat(dir_ / "run")) << "no folder for a refused run";
  config.test_only = true;
  train(config);
}

TEST_F(BadInputTest, ALastBatchOfOneImageIsNoErrorWithNothingLeftToTrain) {
  TrainConfig config = small("run");
  config.model = "resnet18";
  config.epochs = 1;
  config.max_train_samples = 66;
  train(config);
  config.resume = config.output;
  config.batch_size = 65;
  EXPECT_EQ(train(config).epochs, 1);
  config.epochs = 2;
  EXPECT_THAT(refused(config).message, HasSubstr("has one image on a device"));
}

TEST_F(BadInputTest, ALastBatchOfOneImageIsNoErrorWithoutNorms) {
  TrainConfig config = small("run");
  config.epochs = 1;
  config.max_train_samples = 129;
  EXPECT_EQ(train(config).steps, 3);
}

TEST(SmallestShare, IsWhatTheLastDeviceGets) {
  EXPECT_EQ(smallest_share(60000, 128, 1), 96);
  EXPECT_EQ(smallest_share(129, 64, 1), 1);
  EXPECT_EQ(smallest_share(128, 64, 1), 64);
  EXPECT_EQ(smallest_share(1, 64, 1), 1);
  EXPECT_EQ(smallest_share(64, 64, 4), 16);
  EXPECT_EQ(smallest_share(74, 64, 4), 1); // 10 rows: 3, 3, 3, 1
  EXPECT_EQ(smallest_share(66, 64, 4), 1); // 2 rows: 1, 1
  EXPECT_EQ(smallest_share(128, 5, 4), 1); // of each: 2, 2, 1
}

TEST_F(BadInputTest, MissingDataIsNotFound) {
  TrainConfig config = small("run");
  config.data_dir = dir_ / "nowhere";
  const Error error = refused(config);
  EXPECT_EQ(error_info(error.code).exit_code, 4);
  EXPECT_THAT(error.path, HasSubstr("nowhere"));
}

TEST_F(BadInputTest, UnknownDataAndModelNameTheNearest) {
  TrainConfig config = small("run");
  config.data = "fashion-mnis";
  EXPECT_THAT(refused(config).hint, HasSubstr("fashion-mnist"));
  config = small("run");
  config.model = "resnet19";
  const Error error = refused(config);
  EXPECT_EQ(error.code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(error.hint, HasSubstr("resnet18"));
}

TEST_F(BadInputTest, SingleStrategyRefusesTwoDevices) {
  TrainConfig config = small("run");
  config.devices = "cpu*2";
  config.strategy = "single";
  EXPECT_EQ(refused(config).code, ErrorCode::kInvalidArgument);
}

TEST_F(BadInputTest, OptionsOfTheOptimizerAreChecked) {
  TrainConfig config = small("run");
  config.nesterov = true;
  config.momentum = 0.0;
  EXPECT_EQ(refused(config).code, ErrorCode::kInvalidArgument);
}

} // namespace
} // namespace lockstep::train
