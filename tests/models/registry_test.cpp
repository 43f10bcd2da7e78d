// SPDX-License-Identifier: BSD-3-Clause
#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/base/error.h"
#include "lockstep/models/classification.h"
#include "lockstep/models/model.h"
#include "lockstep/tensor/state_dict.h"

namespace lockstep {
namespace {

struct Counts {
  std::size_t entries = 0;
  std::size_t parameters = 0;
  std::int64_t numbers = 0;

  friend bool operator==(const Counts&, const Counts&) = default;
};

std::ostream& operator<<(std::ostream& out, const Counts& counts) {
  return out << counts.entries << " entries, " << counts.parameters
             << " parameters, " << counts.numbers << " numbers";
}

Counts counts(const Model& net) {
  Counts out{.entries = state_dict(net).entries.size()};
  for (const at::Tensor& parameter : net.parameters()) {
    ++out.parameters;
    out.numbers += parameter.numel();
  }
  return out;
}

TEST(MakeModel, HasTorchvisionsCounts) {
  EXPECT_EQ(counts(*make_model("resnet18")), (Counts{122, 62, 11689512}));
  EXPECT_EQ(counts(*make_model("resnet152")), (Counts{932, 467, 60192808}));
  EXPECT_EQ(counts(*make_model("vgg19")), (Counts{38, 38, 143667240}));
  EXPECT_EQ(
      counts(*make_model("resnet18", {.num_classes = 10, .in_channels = 1})),
      (Counts{122, 62, 11175370}));
}

TEST(MakeModel, GivesTheNotesEnds) {
  const auto net = resnet18({.num_classes = 10, .in_channels = 1});
  EXPECT_EQ(
      net->conv1->weight.sizes(),
      (std::vector<std::int64_t>{64, 1, 7, 7}));
  EXPECT_EQ(net->fc->weight.sizes(), (std::vector<std::int64_t>{10, 512}));
  EXPECT_EQ((*net->layer1)[0]->name(), "lockstep::BasicBlock");
  EXPECT_EQ(
      net->forward(torch::randn({2, 1, 28, 28})).sizes(),
      (std::vector<std::int64_t>{2, 10}));
}

TEST(MakeModel, MakesEverySmallModelByName) {
  EXPECT_THAT(
      model_names(),
      testing::IsSupersetOf({"resnet18", "vgg19_bn", "TheModelClass", "mlp"}));
  const auto net = make_model("mlp", {.num_classes = 10, .in_channels = 1});
  EXPECT_EQ(net->forward(torch::randn({3, 1, 28, 28})).size(1), 10);
}

Error error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Exception& exception) {
    return exception.error();
  }
  ADD_FAILURE() << "no error";
  return {};
}

TEST(MakeModel, NamesTheNearestModel) {
  const Error error = error_of([] { (void)make_model("resnet81"); });
  EXPECT_EQ(error.code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(error.message, "no model is called 'resnet81'");
  EXPECT_EQ(error.hint, "did you mean 'resnet18'?");
}

TEST(MakeModel, RefusesNoClasses) {
  const Error error =
      error_of([] { (void)make_model("resnet18", {.num_classes = 0}); });
  EXPECT_EQ(error.code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(error.message, "num_classes: expected 1 or more, got 0");
}

TEST(Forward, RefusesImagesThatAreTooSmall) {
  const ModelOptions options{.num_classes = 10, .in_channels = 1};
  const auto images = torch::randn({1, 1, 28, 28});
  const Error vgg =
      error_of([&] { (void)make_model("vgg11", options)->forward(images); });
  EXPECT_EQ(vgg.code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(vgg.message, testing::HasSubstr("at least 32 x 32, got 28 x 28"));
  const Error notes = error_of(
      [&] { (void)make_model("TheModelClass", options)->forward(images); });
  EXPECT_EQ(notes.code, ErrorCode::kInvalidArgument);
}

} // namespace
} // namespace lockstep
