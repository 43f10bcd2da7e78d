// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/models/registry.h"

#include <array>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/models/resnet.h"
#include "lockstep/models/small.h"
#include "lockstep/models/vgg.h"

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

// For the 28 x 28 images of MNIST and FashionMNIST.
std::shared_ptr<Model> make_mlp(const ModelOptions& options) {
  return std::make_shared<MLP>(MLPOptions{
      .in_features = options.in_channels * 28 * 28,
      .num_classes = options.num_classes});
}

struct Row {
  std::string_view name = {};
  Factory factory = nullptr;
};

constexpr std::array kModels{
    Row{"resnet18", make<resnet18>},
    Row{"resnet34", make<resnet34>},
    Row{"resnet50", make<resnet50>},
    Row{"resnet101", make<resnet101>},
    Row{"resnet152", make<resnet152>},
    Row{"vgg11", make<vgg11>},
    Row{"vgg13", make<vgg13>},
    Row{"vgg16", make<vgg16>},
    Row{"vgg19", make<vgg19>},
    Row{"vgg11_bn", make<vgg11_bn>},
    Row{"vgg13_bn", make<vgg13_bn>},
    Row{"vgg16_bn", make<vgg16_bn>},
    Row{"vgg19_bn", make<vgg19_bn>},
    Row{"TheModelClass", make_the_model_class},
    Row{"mlp", make_mlp},
};

void check(const ModelOptions& options) {
  for (const auto& [field, value] :
       {std::pair{"num_classes", options.num_classes},
        std::pair{"in_channels", options.in_channels}}) {
    if (value < 1) {
      raise(
          {.code = ErrorCode::kInvalidArgument,
           .op = "models.make",
           .message = format("{}: expected 1 or more, got {}", field, value)});
    }
  }
}

} // namespace

std::shared_ptr<Model> make_model(
    std::string_view name,
    const ModelOptions& options) {
  check(options);
  for (const Row& row : kModels) {
    if (row.name == name) {
      return row.factory(options);
    }
  }
  const std::vector<std::string> names = model_names();
  const std::string near = nearest(name, names);
  raise(
      {.code = ErrorCode::kInvalidArgument,
       .op = "models.make",
       .message = format("no model is called '{}'", escape(name)),
       .hint = near.empty() ? "models are " + join(names, ", ")
                            : "did you mean '" + near + "'?"});
}

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  for (const Row& row : kModels) {
    names.emplace_back(row.name);
  }
  return names;
}

} // namespace lockstep
