// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/models/classification.h"
#include "lockstep/models/model.h"
#include "lockstep/models/segmentation.h"
#include "lockstep/models/unet.h"

namespace lockstep {
namespace {

using Factory = std::shared_ptr<Model> (*)(const ModelOptions&);

template <auto Function>
std::shared_ptr<Model> make(const ModelOptions& options) {
  return Function(options);
}

std::shared_ptr<Model> make_the_model_class(const ModelOptions& options) {
  return std::make_shared<TheModelClass>(options);
}

std::shared_ptr<Model> make_mlp(const ModelOptions& options) {
  return std::make_shared<MLP>(MLPOptions{
      .in_features =
          options.in_channels * options.image_height * options.image_width,
      .num_classes = options.num_classes});
}

struct Row {
  std::string_view name = {};
  Factory factory = nullptr;
  ImageSizes sizes = {};
  ModelTask task = ModelTask::kClassification;
  /// Whether `ModelOptions::aux_loss` makes a second head.
  bool has_aux_loss = false;
};

constexpr ImageSizes kFivePoolings{.smallest = 32};
constexpr ImageSizes kFourPoolings{.smallest = 16};
constexpr ImageSizes kOnly32{.smallest = 32, .largest = 32};

constexpr Row with_aux_loss(std::string_view name, Factory factory) {
  return {name, factory, {}, ModelTask::kSegmentation, true};
}

constexpr std::array kModels{
    Row{"resnet18", make<resnet18>},
    Row{"resnet34", make<resnet34>},
    Row{"resnet50", make<resnet50>},
    Row{"resnet101", make<resnet101>},
    Row{"resnet152", make<resnet152>},
    Row{"vgg11", make<vgg11>, kFivePoolings},
    Row{"vgg13", make<vgg13>, kFivePoolings},
    Row{"vgg16", make<vgg16>, kFivePoolings},
    Row{"vgg19", make<vgg19>, kFivePoolings},
    Row{"vgg11_bn", make<vgg11_bn>, kFivePoolings},
    Row{"vgg13_bn", make<vgg13_bn>, kFivePoolings},
    Row{"vgg16_bn", make<vgg16_bn>, kFivePoolings},
    Row{"vgg19_bn", make<vgg19_bn>, kFivePoolings},
    Row{"TheModelClass", make_the_model_class, kOnly32},
    Row{"mlp", make_mlp},
    with_aux_loss("fcn_resnet18", make<fcn_resnet18>),
    with_aux_loss("fcn_resnet34", make<fcn_resnet34>),
    with_aux_loss("fcn_resnet50", make<fcn_resnet50>),
    with_aux_loss("fcn_resnet101", make<fcn_resnet101>),
    with_aux_loss("deeplabv3_resnet18", make<deeplabv3_resnet18>),
    with_aux_loss("deeplabv3_resnet34", make<deeplabv3_resnet34>),
    with_aux_loss("deeplabv3_resnet50", make<deeplabv3_resnet50>),
    with_aux_loss("deeplabv3_resnet101", make<deeplabv3_resnet101>),
    Row{"unet", make<unet>, kFourPoolings, ModelTask::kSegmentation},
    Row{"unet_small",
        make<unet_small>,
        kFourPoolings,
        ModelTask::kSegmentation},
};

void check(const Row& row, const ModelOptions& options) {
  for (const auto& [field, value] :
       {std::pair{"num_classes", options.num_classes},
        std::pair{"in_channels", options.in_channels},
        std::pair{"image_height", options.image_height},
        std::pair{"image_width", options.image_width}}) {
    if (value < 1) {
      raise(
          {.code = ErrorCode::kInvalidArgument,
           .op = "models.make",
           .message = format("{}: expected 1 or more, got {}", field, value),
           .detail = "E_MODEL_OPTION"});
    }
  }
  if (options.aux_loss && !row.has_aux_loss) {
    raise(
        {.code = ErrorCode::kInvalidArgument,
         .op = "models.make",
         .message = format("aux_loss: {} has one head only", row.name),
         .hint = "FCN and DeepLabV3 can have a second one",
         .detail = "E_MODEL_OPTION"});
  }
}

const Row& row_of(std::string_view name) {
  const auto* found = std::ranges::find(kModels, name, &Row::name);
  if (found != kModels.end()) {
    return *found;
  }
  const std::vector<std::string> names = model_names();
  const std::string near = nearest(name, names);
  raise(
      {.code = ErrorCode::kInvalidArgument,
       .op = "models.make",
       .message = format("no model is called '{}'", escape(name)),
       .hint = near.empty() ? "models are " + join(names, ", ")
                            : "did you mean '" + near + "'?",
       .detail = "E_MODEL_NAME"});
}

} // namespace

bool ImageSizes::takes(std::int64_t size) const {
  return size >= smallest && (largest == 0 || size <= largest);
}

std::string ImageSizes::to_text() const {
  if (largest == smallest) {
    return format("{0} x {0} only", smallest);
  }
  return format("at least {0} x {0}", smallest);
}

ImageSizes image_sizes(std::string_view model) {
  return row_of(model).sizes;
}

ModelTask model_task(std::string_view model) {
  return row_of(model).task;
}

std::shared_ptr<Model> make_model(
    std::string_view name,
    const ModelOptions& options) {
  const Row& row = row_of(name);
  check(row, options);
  return row.factory(options);
}

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  names.reserve(kModels.size());
  for (const Row& row : kModels) {
    names.emplace_back(row.name);
  }
  return names;
}

} // namespace lockstep
