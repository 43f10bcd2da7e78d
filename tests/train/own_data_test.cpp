// SPDX-License-Identifier: BSD-3-Clause
//
// A program's own data are used as they are, or not without a word.
#include <ATen/ops/arange.h>
#include <ATen/ops/rand.h>
#include <gmock/gmock.h>
#include <torch/nn/modules/conv.h>

#include "lockstep/base/error.h"
#include "lockstep/data/made_dataset.h"
#include "tests/train/trainer_fixture.h"

namespace lockstep::train {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

/// Takes images of any size, and remembers which.
struct AnySize : torch::nn::Module {
  at::Tensor forward(const at::Tensor& x) {
    sizes[is_training() ? "train" : "test"] = x.sizes().slice(2).vec();
    return conv->forward(x).mean({2, 3});
  }
  std::map<std::string, std::vector<std::int64_t>> sizes = {};
  torch::nn::Conv2d conv = register_module(
      "conv",
      torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 2, 3)));
};

std::shared_ptr<Dataset> images_of(std::int64_t count, std::int64_t side) {
  return as_dataset(
      make_dataset(
          at::rand({count, 3, side, side}),
          at::arange(count).remainder(2)),
      {.num_classes = 2});
}

/// Such as a folder that a program lists itself, and that is empty.
class SomeImages final : public Dataset {
 public:
  explicit SomeImages(std::int64_t size) : size_(size) {}
  [[nodiscard]] std::int64_t size() const override {
    return size_;
  }
  [[nodiscard]] std::vector<std::int64_t> sample_shape() const override {
    return {3, 8, 8};
  }
  [[nodiscard]] std::int64_t num_classes() const override {
    return 2;
  }
  void read(
      std::span<const std::int64_t> indices,
      std::int64_t /*epoch*/,
      std::span<float> images,
      TargetRows targets) const override {
    std::ranges::fill(images, 0.5F);
    std::ranges::copy(indices, targets.classes.begin());
  }

 private:
  std::int64_t size_;
};

/// A metric by another name.
struct Named final : Metric {
  explicit Named(std::string text) : name(std::move(text)) {}
  std::vector<MetricInfo> infos() const override {
    return {{.name = name}};
  }
  std::int64_t size() const override {
    return 1;
  }
  at::Tensor sums(const at::Tensor& outputs, const at::Tensor&) const override {
    return outputs.sum().to(at::kDouble).reshape({1});
  }
  std::vector<double> values(std::span<const double> sums) const override {
    return {sums[0]};
  }
  std::string name;
};

class OwnData : public TrainerFixture {
 protected:
  TrainConfig config(const std::string& folder) {
    TrainConfig config = small(folder);
    config.epochs = 1;
    config.batch_size = 4;
    config.max_train_samples = config.max_eval_samples = 0;
    return config;
  }
  std::string refusal(
      const TrainConfig& config,
      std::int64_t train_count,
      std::int64_t test_count) {
    try {
      train(
          config,
          {.own = {
               .model = std::make_shared<AnySize>(),
               .train_data = std::make_shared<SomeImages>(train_count),
               .test_data = std::make_shared<SomeImages>(test_count)}});
    } catch (const Exception& exception) {
      EXPECT_EQ(exception.error().detail, "E_OWN_PARTS");
      return exception.error().message;
    }
    return {};
  }
};

TEST_F(OwnData, KeepTheirSize) {
  const auto net = std::make_shared<AnySize>();
  OwnParts own{
      .model = net,
      .train_data = images_of(8, 16),
      .test_data = images_of(4, 20)};
  TrainConfig wanted = config("run");
  RecordingLog log;
  train(wanted, {.log = &log, .own = own});
  EXPECT_EQ(net->sizes["train"], (std::vector<std::int64_t>{16, 16}));
  EXPECT_EQ(net->sizes["test"], (std::vector<std::int64_t>{20, 20}));
  EXPECT_THAT(log.lines[LogLevel::kInfo], Not(Contains(HasSubstr("resized"))));
  wanted.epochs = 2;
  wanted.resume = wanted.output;
  train(wanted, {.own = own});
  EXPECT_EQ(net->sizes["test"], (std::vector<std::int64_t>{20, 20}));
}

TEST_F(OwnData, HaveTheSizeThatIsGiven) {
  const auto net = std::make_shared<AnySize>();
  TrainConfig wanted = config("run");
  wanted.img_size = 16;
  RecordingLog log;
  train(
      wanted,
      {.log = &log,
       .own = {
           .model = net,
           .train_data = images_of(8, 16),
           .test_data = images_of(4, 20)}});
  EXPECT_EQ(net->sizes["test"], (std::vector<std::int64_t>{16, 16}));
  EXPECT_THAT(
      log.lines[LogLevel::kInfo],
      Contains("test images 20x20 resized to 16x16"));
}

TEST_F(OwnData, WithoutSamplesAreRefused) {
  EXPECT_EQ(refusal(config("a"), 0, 2), "the training data have no samples");
  TrainConfig test = config("");
  test.output = "";
  test.test_only = true;
  EXPECT_EQ(refusal(test, 0, 2), "") << "nothing is trained";
  EXPECT_EQ(refusal(config("b"), 2, 0), "") << "no test";
}

TEST_F(OwnData, AreMeasuredByMetricsThatAreOneColumnEach) {
  OwnParts own{
      .model = std::make_shared<AnySize>(),
      .train_data = images_of(8, 16),
      .task = {.loss = [](const at::Tensor& outputs, const at::Tensor&) {
        return outputs.sum();
      }}};
  for (const char* name : {"iou, car", "iou\n", "\"iou\""}) {
    own.task.metrics = {std::make_shared<Named>(name)};
    try {
      train(config("run"), {.own = own});
      ADD_FAILURE() << name;
    } catch (const Exception& exception) {
      EXPECT_EQ(exception.error().detail, "E_OWN_PARTS");
      EXPECT_THAT(
          exception.error().message,
          HasSubstr("a column of results.csv"));
    }
  }
}

} // namespace
} // namespace lockstep::train
