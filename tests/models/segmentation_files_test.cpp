// SPDX-License-Identifier: BSD-3-Clause
//
// Weight files of torchvision's segmentation models: whole, and into a network
// for other classes.
#include <string>

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/base/error.h"
#include "lockstep/models/classification.h"
#include "lockstep/models/segmentation.h"
#include "lockstep/tensor/checkpoint.h"
#include "lockstep/tensor/state_dict.h"
#include "tests/models/formula_weights.h"
#include "tests/models/support.h"
#include "tests/support/python.h"
#include "tests/support/scratch_dir.h"

namespace lockstep {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::StartsWith;

const LoadWeightsOptions kNewEnds{.may_differ = MayDiffer::kEnds};

class SegmentationFiles : public testing::Test {
 protected:
  [[nodiscard]] std::string file() const {
    return dir_ / "weights.pth";
  }

  void write(const torch::nn::Module& net) const {
    save(to_value(state_dict(net)), file());
  }

  test::ScratchDir dir_;
};

TEST_F(SegmentationFiles, OfTorchvisionLoadWhole) {
  (void)test::run_python("segmentation_file.py", {"fcn_resnet50", file()});
  const auto net = fcn_resnet50({.num_classes = 21, .aux_loss = true});
  const auto expected = fcn_resnet50({.num_classes = 21, .aux_loss = true});
  test::fill(*expected);
  const LoadReport report = load_weights(*net, file());
  EXPECT_EQ(to_string(report), "<All keys matched successfully>");
  EXPECT_EQ(test::digest(*net), test::digest(*expected));

  // Without the second head its part is left, if it may be.
  const auto one_head = fcn_resnet50({.num_classes = 21});
  const LoadReport left = load_weights(*one_head, file(), kNewEnds);
  EXPECT_THAT(left.made_new(), IsEmpty());
  EXPECT_THAT(left.unexpected_keys, SizeIs(8));
  EXPECT_THAT(left.unexpected_keys, Each(StartsWith("aux_classifier.")));
  EXPECT_EQ(left.taken, std::ssize(state_dict(*one_head).entries));
}

TEST_F(SegmentationFiles, ForOtherClassesGetANewHead) {
  const auto trained =
      deeplabv3_resnet18({.num_classes = 21, .aux_loss = true});
  test::fill(*trained);
  write(*trained);
  const auto net = deeplabv3_resnet18({.num_classes = 3});
  const LoadReport report = load_weights(*net, file(), kNewEnds);
  EXPECT_THAT(
      to_lines(report, 2),
      ElementsAre(
          StartsWith("taken "),
          "new   classifier.4.weight  (3, 256, 1, 1), the file has (21, 256, "
          "1, 1)",
          "new   classifier.4.bias    (3,), the file has (21,)",
          "left  aux_classifier.0.weight  not in the model",
          "left  aux_classifier.1.weight  not in the model",
          "left  ... (8 in all)"));
  EXPECT_TRUE(
      state_dict(*net)
          .get("classifier.0.project.0.weight")
          .equal(state_dict(*trained).get("classifier.0.project.0.weight")));

  const auto both = deeplabv3_resnet18(
      {.num_classes = 3, .in_channels = 1, .aux_loss = true});
  EXPECT_THAT(
      load_weights(*both, file(), kNewEnds).made_new(),
      ElementsAre(
          "backbone.conv1.weight",
          "classifier.4.weight",
          "classifier.4.bias",
          "aux_classifier.4.weight",
          "aux_classifier.4.bias"));
}

TEST_F(SegmentationFiles, WithoutASecondHeadLeaveItNew) {
  const auto trained = fcn_resnet18({.num_classes = 2});
  test::fill(*trained);
  write(*trained);
  const auto net = fcn_resnet18({.num_classes = 2, .aux_loss = true});
  const LoadReport report = load_weights(*net, file(), kNewEnds);
  EXPECT_THAT(report.missing_keys, SizeIs(7));
  EXPECT_THAT(report.missing_keys, Each(StartsWith("aux_classifier.")));
}

// Nothing is left out without a word: PyTorch's rule is the default.
TEST_F(SegmentationFiles, AreRefusedWhereNothingMayDiffer) {
  write(*fcn_resnet18({.num_classes = 2, .aux_loss = true}));
  const auto net = fcn_resnet18({.num_classes = 2});
  try {
    load_weights(*net, file());
    ADD_FAILURE() << "no error";
  } catch (const Exception& exception) {
    EXPECT_EQ(exception.error().detail, "E_STATE_DICT");
    EXPECT_THAT(
        exception.error().message,
        HasSubstr("Unexpected key(s) in state_dict: "
                  "\"aux_classifier.0.weight\""));
  }
}

// Another head is no end.
TEST_F(SegmentationFiles, OfAnotherHeadAreRefused) {
  write(*fcn_resnet18({.num_classes = 2}));
  const auto net = deeplabv3_resnet18({.num_classes = 2});
  EXPECT_THROW(load_weights(*net, file(), kNewEnds), Exception);
}

TEST_F(SegmentationFiles, OfAClassifierGoIntoTheBackbone) {
  const auto classifier = resnet18();
  test::fill(*classifier);
  write(*classifier);
  const auto net = fcn_resnet18({.num_classes = 2});
  const LoadReport report =
      load_weights(*net->backbone, file(), {.strict = false});
  EXPECT_THAT(report.missing_keys, IsEmpty());
  EXPECT_THAT(report.unexpected_keys, ElementsAre("fc.weight", "fc.bias"));
  EXPECT_TRUE(net->backbone->conv1->weight.equal(classifier->conv1->weight));

  // As `lockstep ckpt prefix` and --partial do.
  save(to_value(add_prefix(state_dict(*classifier), "backbone.")), file());
  const auto whole = fcn_resnet18({.num_classes = 2});
  const LoadReport partial =
      load_weights(*whole, file(), {.may_differ = MayDiffer::kAnything});
  EXPECT_EQ(partial.taken, 120);
  EXPECT_THAT(partial.made_new(), Each(StartsWith("classifier.")));
  EXPECT_TRUE(whole->backbone->conv1->weight.equal(classifier->conv1->weight));
}

} // namespace
} // namespace lockstep
