// SPDX-License-Identifier: BSD-3-Clause
//
// Against torchvision's FCN and DeepLabV3 and the U-Net of
// milesial/Pytorch-UNet, whose numbers tests/oracle/segmentation_golden.py
// wrote to tests/models/golden.
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <libdeflate.h>
#include <nlohmann/json.hpp>
#include <torch/torch.h>

#include "lockstep/base/strings.h"
#include "lockstep/models/model.h"
#include "lockstep/models/segmentation.h"
#include "lockstep/tensor/state_dict.h"
#include "tests/models/formula_weights.h"

namespace lockstep {
namespace {

using nlohmann::json;

constexpr const char* kGolden = LOCKSTEP_SOURCE_DIR "/tests/models/golden/";
constexpr std::int64_t kBatch = 3;
constexpr std::int64_t kHeight = 65;
constexpr std::int64_t kWidth = 49;

json golden_models() {
  std::ifstream file(std::string(kGolden) + "segmentation.json");
  return json::parse(file).at("models");
}

// "fcn_resnet50_1x2": a name, channels and classes.
std::string title(const json& row) {
  return format(
      "{}_{}x{}",
      row.at("name").get<std::string>(),
      row.at("in_channels").get<int>(),
      row.at("num_classes").get<int>());
}

std::shared_ptr<Model> made(const json& row) {
  return make_model(
      row.at("name").get<std::string>(),
      {.num_classes = row.at("num_classes"),
       .in_channels = row.at("in_channels"),
       .aux_loss = row.at("aux_loss")});
}

at::Tensor images(const json& row) {
  const std::int64_t channels = row.at("in_channels");
  const std::int64_t count = kBatch * channels * kHeight * kWidth;
  return (test::mixed("images", count) * 4 - 2)
      .view({kBatch, channels, kHeight, kWidth});
}

at::Tensor targets(std::int64_t classes) {
  return (test::mixed("targets", kBatch * kHeight * kWidth) *
          static_cast<double>(classes))
      .to(torch::kLong)
      .view({kBatch, kHeight, kWidth});
}

// By torchvision's names.
std::map<std::string, at::Tensor> outputs_of(Model& net, const at::Tensor& x) {
  auto* segmentation = dynamic_cast<SegmentationModel*>(&net);
  if (segmentation == nullptr || segmentation->aux_classifier.is_empty()) {
    return {{"out", net.forward(x)}};
  }
  auto [out, aux] = segmentation->forward_with_aux(x);
  return {{"out", out}, {"aux", aux}};
}

std::string dtype_text(const at::Tensor& tensor) {
  return tensor.scalar_type() == torch::kFloat  ? "float32"
         : tensor.scalar_type() == torch::kLong ? "int64"
                                                : "other";
}

// "[64, 3, 7, 7]".
std::string shape_text(const at::Tensor& tensor) {
  std::vector<std::string> sizes;
  for (const std::int64_t size : tensor.sizes()) {
    sizes.push_back(std::to_string(size));
  }
  return "[" + join(sizes, ", ") + "]";
}

// One line for each module: its name, then each tensor's.
std::string compact(const StateDict& state) {
  std::string text;
  std::string module;
  for (const auto& [key, tensor] : state.entries) {
    const std::size_t dot = key.rfind('.');
    const bool is_same = !text.empty() && key.substr(0, dot) == module;
    module = key.substr(0, dot);
    const std::string dtype = dtype_text(tensor);
    text += is_same ? "; " : format("{}{}: ", text.empty() ? "" : "\n", module);
    text += format(
        "{}{} {}",
        key.substr(dot + 1),
        dtype == "float32" ? "" : " " + dtype,
        shape_text(tensor));
  }
  return text + "\n";
}

void expect_near(double found, double expected, double tolerance) {
  EXPECT_NEAR(found, expected, tolerance);
}

// The row of a title.
class Golden : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    for (const json& row : golden_models()) {
      if (title(row) == GetParam()) {
        row_ = row;
      }
    }
    ASSERT_FALSE(row_.is_null());
  }

  json row_ = {};
};

class GoldenTraining : public Golden {};

TEST_P(Golden, HasTheNamesShapesAndDtypes) {
  const json& row = row_;
  const auto net = made(row);
  const StateDict state = state_dict(*net);
  std::string lines;
  for (const auto& [key, tensor] : state.entries) {
    lines += format("{} {} {}\n", key, dtype_text(tensor), shape_text(tensor));
  }
  EXPECT_EQ(state.entries.size(), row.at("entries").get<std::size_t>());
  EXPECT_EQ(
      libdeflate_crc32(0, lines.data(), lines.size()),
      row.at("names_crc").get<std::uint32_t>());
  std::int64_t numbers = 0;
  for (const at::Tensor& parameter : net->parameters()) {
    numbers += parameter.numel();
  }
  EXPECT_EQ(numbers, row.at("numbers").get<std::int64_t>());
}

TEST_P(Golden, HasTheInitialWeights) {
  const json& row = row_;
  torch::manual_seed(4);
  const auto net = made(row);
  const auto next = torch::randint(0, std::int64_t{1} << 62, {}, torch::kLong);
  EXPECT_EQ(next.item<std::int64_t>(), row.at("next").get<std::int64_t>())
      << "draws";
  const StateDict state = state_dict(*net);
  for (const auto& [key, expected] : row.at("initial").items()) {
    SCOPED_TRACE(key);
    const at::Tensor weight = state.get(key);
    ASSERT_TRUE(weight.defined());
    // Sums of millions of float32 numbers, each within a rounding of Python's.
    expect_near(
        weight.to(torch::kDouble).sum().item<double>(),
        expected.at(0).get<double>(),
        1e-4);
    expect_near(
        weight.flatten()[-1].item<double>(),
        expected.at(1).get<double>(),
        1e-6);
  }
}

TEST_P(Golden, GivesTheOutputs) {
  const json& row = row_;
  const auto net = made(row);
  test::fill(*net);
  net->eval();
  const torch::NoGradGuard no_grad;
  const auto outputs = outputs_of(*net, images(row));
  ASSERT_EQ(outputs.size(), row.at("outputs").size());
  for (const auto& [name, output] : outputs) {
    SCOPED_TRACE(name);
    const json& expected = row.at("outputs").at(name);
    EXPECT_EQ(
        output.sizes().vec(),
        expected.at("shape").get<std::vector<std::int64_t>>());
    const at::Tensor flat = output.flatten().to(torch::kDouble);
    // float32 over a hundred layers, in another order of sums.
    const double tolerance = 1e-4 * expected.at("largest").get<double>();
    expect_near(
        flat.abs().max().item<double>(),
        expected.at("largest").get<double>(),
        tolerance);
    expect_near(
        flat.mean().item<double>(),
        expected.at("mean").get<double>(),
        tolerance);
    const json& samples = expected.at("samples");
    for (std::size_t i = 0; i < samples.size(); ++i) {
      const std::int64_t at =
          static_cast<std::int64_t>(i) * 7919 % flat.numel();
      expect_near(
          flat[at].item<double>(),
          samples.at(i).get<double>(),
          tolerance);
    }
  }
}

TEST_P(GoldenTraining, GivesTheGradients) {
  const json& row = row_;
  const auto net = made(row);
  test::fill(*net);
  net->to(torch::kDouble);
  for (const auto& module : net->modules()) {
    module->train(module->as<torch::nn::Dropout>() == nullptr);
  }
  const auto outputs = outputs_of(*net, images(row).to(torch::kDouble));
  const at::Tensor y = targets(row.at("num_classes"));
  at::Tensor loss = torch::cross_entropy_loss(outputs.at("out"), y);
  if (outputs.contains("aux")) {
    loss = loss + 0.5 * torch::cross_entropy_loss(outputs.at("aux"), y);
  }
  loss.backward();
  const json& training = row.at("training");
  const double expected_loss = training.at("loss");
  expect_near(loss.item<double>(), expected_loss, 1e-7 * expected_loss);
  const json& gradients = training.at("gradients");
  std::size_t compared = 0;
  for (const auto& item : net->named_parameters()) {
    const at::Tensor gradient = item.value().grad();
    ASSERT_TRUE(gradient.defined()) << item.key();
    if (item.value().dim() == 4) {
      SCOPED_TRACE(item.key());
      const double norm = gradients.at(item.key());
      expect_near(gradient.norm().item<double>(), norm, 1e-6 * norm);
      ++compared;
    }
  }
  EXPECT_EQ(compared, gradients.size());
}

const std::vector<std::string> kTrained{
    "deeplabv3_resnet50_3x21",
    "fcn_resnet50_3x21",
    "unet_3x3"};
const std::vector<std::string> kOthers{
    "deeplabv3_resnet101_3x21",
    "fcn_resnet101_3x5",
    "fcn_resnet50_1x2"};

std::string own_title(const testing::TestParamInfo<std::string>& test) {
  return test.param;
}

INSTANTIATE_TEST_SUITE_P(
    Trained,
    Golden,
    testing::ValuesIn(kTrained),
    own_title);
INSTANTIATE_TEST_SUITE_P(Others, Golden, testing::ValuesIn(kOthers), own_title);
INSTANTIATE_TEST_SUITE_P(
    Trained,
    GoldenTraining,
    testing::ValuesIn(kTrained),
    own_title);

TEST(GoldenFile, HasNoOtherModels) {
  EXPECT_EQ(golden_models().size(), kTrained.size() + kOthers.size());
}

// All names, to read where a checksum differs.
TEST(GoldenFile, HasAllNames) {
  std::string text;
  for (const json& row : golden_models()) {
    if (row.contains("training")) {
      text += format("# {}\n", row.at("name").get<std::string>()) +
              compact(state_dict(*made(row)));
    }
  }
  std::ifstream file(std::string(kGolden) + "names.txt");
  const std::string expected(std::istreambuf_iterator<char>(file), {});
  EXPECT_EQ(split(text, '\n'), split(expected, '\n'));
}

} // namespace
} // namespace lockstep
