// SPDX-License-Identifier: BSD-3-Clause
//
// What every model here is: a torch::nn::Module with one forward and a `clone`
// that copies what the model holds now, replaced layers too. Models by name, as
// the flag --model takes them.
//   std::shared_ptr<Model> net = make_model("resnet18");
//   at::Tensor scores = net->forward(images);
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include "lockstep/tensor/modules.h"

#pragma GCC visibility push(default)
namespace lockstep {

/// What a model is adapted to: its ends.
struct ModelOptions {
  /// Units: classes, the width of the last layer.
  std::int64_t num_classes = 1000;
  /// Units: channels of the input images.
  std::int64_t in_channels = 3;
  /// Units: pixels of the input images. Only `mlp` is built for one size.
  std::int64_t image_height = 28;
  std::int64_t image_width = 28;
  /// Whether FCN and DeepLabV3 have their second head, as the weight files that
  /// torchvision publishes do: Note [Auxiliary classifier] in segmentation.h.
  bool aux_loss = false;
};

/// A network from one tensor to one tensor.
class Model : public torch::nn::Module {
 public:
  /// Shape: [N, C, H, W] float32 in for image models; [N, classes] out, or
  /// [N, classes, H, W] from those for segmentation (`model_task`).
  virtual at::Tensor forward(const at::Tensor& x) = 0;
};

/// `std::cout << *net`: as Python's `print(net)`.
inline std::ostream& operator<<(std::ostream& stream, const Model& model) {
  return stream << to_string(model);
}

/// Base of a module made of other modules, without parameters of its own.
/// `Derived` offers `each_child(visit)`, which calls
/// `visit("conv1", conv1)` for every member that holds a child, in PyTorch's
/// order, and is copyable; a copy's other members are the original's.
template <class Derived, class Base = torch::nn::Module>
class Composite : public Base {
 public:
  /// A deep copy as by `clone_module`, with all that is registered: draws no
  /// random numbers.
  /// Threads: as `clone_module`.
  std::shared_ptr<torch::nn::Module> clone(
      const std::optional<c10::Device>& device = std::nullopt) const override {
    auto copy = std::make_shared<Derived>(static_cast<const Derived&>(*this));
    OwnRegistrations own(*copy, device);
    copy->each_child([&](const char* name, auto& child) {
      using Child = typename std::decay_t<decltype(child)>::ContainedType;
      if (!child.is_empty()) {
        child = copy->replace_module(
            name,
            std::dynamic_pointer_cast<Child>(own.of(*child)));
      }
    });
    tie_alike(*this, *copy);
    return copy;
  }

 protected:
  /// Called once, at the end of the constructor of `Derived`.
  void register_children() {
    static_cast<Derived*>(this)->each_child(
        [this](const char* name, auto& child) {
          if (!child.is_empty()) {
            this->register_module(name, child);
          }
        });
  }
};

/// Builds a model with fresh weights from the default generator.
///
/// ResNet and VGG are built as torchvision does (3 channels, 1000 classes);
/// then the first convolution is replaced if `in_channels` differs, then the
/// last layer if `num_classes` differs, both with PyTorch's default
/// initialisation. Equal seeds give the bits that Python gets this way. FCN and
/// DeepLabV3 are built for `num_classes` at once, as torchvision's functions
/// are. What `num_classes` is if nothing is asked for is 1000, for all.
/// Errors: throws kInvalidArgument for an unknown name (with the nearest one)
/// (E_MODEL_NAME), a number below 1, or `aux_loss` where there is no second
/// head (E_MODEL_OPTION).
std::shared_ptr<Model> make_model(
    std::string_view name,
    const ModelOptions& options = {});

/// What a model says of an image.
enum class ModelTask {
  /// A score of each class: [N, num_classes].
  kClassification,
  /// A score of each class for each pixel, at the size of the images:
  /// [N, num_classes, H, W].
  kSegmentation,
};

/// What the model of this name is for. Errors: as `make_model`.
ModelTask model_task(std::string_view model);

/// Which images a model takes, in height and in width.
struct ImageSizes {
  /// Units: pixels.
  std::int64_t smallest = 1;
  /// Units: pixels; 0: no limit.
  std::int64_t largest = 0;

  [[nodiscard]] bool takes(std::int64_t size) const;
  /// "at least 32 x 32", "32 x 32 only".
  [[nodiscard]] std::string to_text() const;
};

/// What the model of this name takes. Errors: as `make_model`.
ImageSizes image_sizes(std::string_view model);

/// Names that `make_model` takes.
std::vector<std::string> model_names();

} // namespace lockstep
#pragma GCC visibility pop
