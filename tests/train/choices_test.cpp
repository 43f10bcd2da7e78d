// SPDX-License-Identifier: BSD-3-Clause
//
// What a run decides by itself: devices, the size of images.
#include <gmock/gmock.h>

#include "lockstep/base/error.h"
#include "lockstep/models/model.h"
#include "lockstep/train/step/device_choice.h"
#include "lockstep/train/step/image_fit.h"

namespace lockstep::train {
namespace {

using ::testing::HasSubstr;

template <class Action>
Error error_of(const Action& action) {
  try {
    action();
  } catch (const Exception& exception) {
    return exception.error();
  }
  ADD_FAILURE() << "no error";
  return {};
}

TEST(ChooseDevices, SaysWhatIsNotUsed) {
  struct Case {
    std::string devices = {};
    bool cuda = true;
    int count = 0;
    std::string spec = {};
    std::string warning = {};
  };
  const std::string notes =
      "WARNING: It looks like you have a CUDA device, but aren't using "
      "CUDA.\nRun with --cuda for optimal training speed.";
  const std::vector<Case> cases{
      {"", true, 0, "cpu", ""},
      {"", false, 0, "cpu", ""},
      {"", true, 2, "cuda", ""},
      {"", false, 2, "cpu", notes},
      {"cpu*2",
       true,
       1,
       "cpu*2",
       "--devices cpu*2: 1 CUDA device is here and not used"},
      {"cpu",
       false,
       3,
       "cpu",
       "--devices cpu: 3 CUDA devices are here and not used"},
      {"cuda:1", true, 2, "cuda:1", ""},
  };
  for (const Case& c : cases) {
    TrainConfig config;
    config.devices = c.devices;
    config.cuda = c.cuda;
    const DeviceChoice choice = choose_devices(config, c.count);
    EXPECT_EQ(choice.spec, c.spec) << c.devices;
    EXPECT_EQ(choice.warning, c.warning) << c.devices;
  }
}

TEST(ChooseDevices, NoCudaContradictsACudaDevice) {
  TrainConfig config;
  config.devices = "cuda:0";
  config.cuda = false;
  const Error error = error_of([&] { choose_devices(config, 1); });
  EXPECT_EQ(error.detail, "E_FLAGS");
  EXPECT_EQ(error.message, "--no-cuda contradicts --devices cuda:0");
}

using Shape = std::vector<std::int64_t>;

TEST(FitImages, ChoosesWhatTheModelTakes) {
  struct Case {
    std::string model = {};
    std::int64_t img_size = 0;
    Shape shape = {};
    std::int64_t size = 0;
    std::string text = {};
  };
  const std::vector<Case> cases{
      {"resnet18", 0, {1, 28, 28}, 28, ""},
      {"resnet18", 28, {1, 28, 28}, 28, ""},
      {"resnet18", 64, {1, 28, 28}, 64, "images 28x28 resized to 64x64"},
      {"vgg11", 0, {1, 28, 28}, 32, "images 28x28 resized to 32x32"},
      {"vgg11", 0, {3, 224, 224}, 224, ""},
      {"TheModelClass", 0, {3, 64, 64}, 32, "images 64x64 resized to 32x32"},
      {"mlp", 0, {1, 20, 30}, 0, ""},
      {"vgg11", 0, {1, 20, 40}, 40, "images 20x40 resized to 40x40"},
      {"", 0, {1, 7, 9}, 0, ""},
      {"", 14, {1, 28, 28}, 14, "images 28x28 resized to 14x14"},
      {"", 0, {5}, 0, ""},
  };
  for (const Case& c : cases) {
    const ImageFit fit = fit_images(c.img_size, c.model, c.shape);
    EXPECT_EQ(fit.size, c.size) << c.model << " " << c.text;
    EXPECT_EQ(fit.text, c.text) << c.model;
  }
}

TEST(FitImages, RefusesWhatTheModelDoesNotTake) {
  const Shape shape{1, 28, 28};
  const Error vgg = error_of([&] { fit_images(28, "vgg16_bn", shape); });
  EXPECT_EQ(vgg.detail, "E_IMAGE_SIZE");
  EXPECT_EQ(
      vgg.message,
      "--img-size 28: vgg16_bn takes images of at least 32 x 32");
  EXPECT_THAT(
      error_of([&] { fit_images(33, "TheModelClass", shape); }).message,
      HasSubstr("takes images of 32 x 32 only"));
  EXPECT_THAT(
      error_of([&] { fit_images(32, "", Shape{5}); }).message,
      HasSubstr("the samples are not images"));
}

} // namespace
} // namespace lockstep::train
