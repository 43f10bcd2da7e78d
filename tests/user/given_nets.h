// SPDX-License-Identifier: BSD-3-Clause
//
// Nets that register layers they were given, or copy themselves.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include <torch/torch.h>

// Outside of Lockstep, whose own classes keep nothing.
namespace program {

namespace nn = torch::nn;
using torch::Tensor;

struct Siamese : nn::Cloneable<Siamese> {
  explicit Siamese(nn::Linear encoder_) : encoder(std::move(encoder_)) {
    reset();
  }
  void reset() override {
    register_module("left", encoder);
    register_module("right", encoder);
    head = register_module("head", nn::Linear(4, 2));
  }
  Tensor forward(const Tensor& x) {
    return head(torch::tanh(encoder(x)) * encoder(-x));
  }
  nn::Linear encoder;
  nn::Linear head = nullptr;
};

struct Branch : nn::Cloneable<Branch> {
  explicit Branch(nn::Linear layer_) : layer(std::move(layer_)) {
    reset();
  }
  void reset() override {
    register_module("shared", layer);
    own = register_module("own", nn::Linear(4, 4));
  }
  Tensor forward(const Tensor& x) {
    return own(layer(x));
  }
  nn::Linear layer;
  nn::Linear own = nullptr;
};

/// Two branches that share a given layer.
struct Branches : nn::Cloneable<Branches> {
  explicit Branches(nn::Linear layer_) : layer(std::move(layer_)) {
    reset();
  }
  void reset() override {
    a = register_module("a", std::make_shared<Branch>(layer));
    b = register_module("b", std::make_shared<Branch>(layer));
  }
  Tensor forward(const Tensor& x) {
    return b->forward(torch::tanh(a->forward(x)));
  }
  nn::Linear layer;
  std::shared_ptr<Branch> a;
  std::shared_ptr<Branch> b;
};

/// A list with one layer twice.
struct Listed : nn::Cloneable<Listed> {
  explicit Listed(const nn::Linear& layer) : layers{layer, layer} {
    reset();
  }
  void reset() override {
    for (std::size_t i = 0; i < layers.size(); ++i) {
      register_module("l" + std::to_string(i), layers[i]);
    }
  }
  Tensor forward(Tensor x) {
    for (auto& layer : layers) {
      x = torch::tanh(layer(x));
    }
    return x;
  }
  std::vector<nn::Linear> layers;
};

/// A stack under two names.
struct Twice : nn::Cloneable<Twice> {
  explicit Twice(nn::Sequential stack_) : stack(std::move(stack_)) {
    reset();
  }
  void reset() override {
    register_module("stack", stack);
    register_module("again", stack);
  }
  Tensor forward(const Tensor& x) {
    return stack->forward(stack->forward(x));
  }
  nn::Sequential stack;
};

/// The same, given to another.
struct Outer : nn::Cloneable<Outer> {
  explicit Outer(std::shared_ptr<Twice> inner_) : inner(std::move(inner_)) {
    reset();
  }
  void reset() override {
    register_module("inner", inner);
    head = register_module("head", nn::Linear(4, 3));
  }
  Tensor forward(const Tensor& x) {
    return head(inner->forward(x));
  }
  std::shared_ptr<Twice> inner;
  nn::Linear head = nullptr;
};

/// reset() initialises what it was given, and train() switches it.
struct Writing : nn::Cloneable<Writing> {
  Writing(nn::Linear head_, nn::BatchNorm1d norm_, Tensor scale_, Tensor shift_)
      : head(std::move(head_)),
        norm(std::move(norm_)),
        scale(std::move(scale_)),
        shift(std::move(shift_)) {
    reset();
  }
  void reset() override {
    register_module("head", head);
    nn::init::zeros_(head->bias);
    register_module("norm", norm);
    norm->running_mean.fill_(3);
    register_parameter("scale", scale);
    nn::init::constant_(scale, 0.5);
    register_buffer("shift", shift);
    shift.data().zero_();
    norm->eval();
    if (fails) {
      throw std::runtime_error("reset fails");
    }
  }
  void train(bool on = true) override {
    Module::train(on);
    norm->eval();
  }
  Tensor forward(const Tensor& x) {
    return head(norm(x) * scale + shift);
  }
  nn::Linear head;
  nn::BatchNorm1d norm;
  Tensor scale;
  Tensor shift;
  bool fails = false;
};

/// Keeps its features from one line to the next, as many backbones do.
struct Backbone : nn::Cloneable<Backbone> {
  Backbone() {
    reset();
  }
  void reset() override {
    a = register_module("a", nn::Linear(4, 4));
    b = register_module("b", nn::Linear(4, 4));
  }
  Tensor forward(const Tensor& x) {
    firsts.push_back(x[0][0].item<float>());
    features = torch::relu(a(x));
    for (int i = 0; i < 200; ++i) {
      std::this_thread::yield();
    }
    return b(features);
  }
  nn::Linear a = nullptr;
  nn::Linear b = nullptr;
  Tensor features;
  std::vector<float> firsts = {};
};
TORCH_MODULE_IMPL(BackboneHolder, Backbone);

template <class Body>
struct Given : nn::Cloneable<Given<Body>> {
  explicit Given(Body body_) : body(std::move(body_)) {
    reset();
  }
  void reset() override {
    this->register_module("body", body);
    head = this->register_module("head", nn::Linear(4, 2));
  }
  Tensor forward(const Tensor& x) {
    return head(body->forward(x));
  }
  Body body;
  nn::Linear head = nullptr;
};

/// Given layers in a container, called and looked at by members.
enum class Where : std::uint8_t { kList, kDict, kStack };

template <class Layer>
struct GivenList : nn::Cloneable<GivenList<Layer>> {
  GivenList(std::vector<Layer> layers_, Where where_, bool has_names_)
      : layers(std::move(layers_)), where(where_), has_names(has_names_) {
    reset();
  }
  void reset() override {
    for (std::size_t i = 0; has_names && i < layers.size(); ++i) {
      this->register_module("l" + std::to_string(i), layers[i]);
    }
    nn::ModuleList list;
    nn::ModuleDict dict;
    nn::Sequential stack;
    for (std::size_t i = 0; i < layers.size(); ++i) {
      using Named = std::pair<std::string, std::shared_ptr<nn::Module>>;
      list->push_back(layers[i]);
      dict->update(std::vector<Named>{{std::to_string(i), layers[i].ptr()}});
      stack->push_back(layers[i]);
    }
    if (where == Where::kStack) {
      called = this->register_module("layers", stack);
      return;
    }
    container = where == Where::kDict ? std::shared_ptr<nn::Module>(dict.ptr())
                                      : list.ptr();
    this->register_module("layers", container);
  }
  Tensor forward(Tensor x) {
    if (!called.is_empty()) {
      x = called->forward(x);
    }
    for (Layer& layer : layers) {
      x = torch::tanh(layer(x));
      if constexpr (!std::is_same_v<Layer, nn::Linear>) {
        x = x + layer->features;
      }
    }
    return x;
  }
  std::vector<Layer> layers;
  Where where;
  bool has_names;
  nn::Sequential called = nullptr;
  std::shared_ptr<nn::Module> container;
};

/// A buffer that a given child was given.
struct Shifted : nn::Cloneable<Shifted> {
  explicit Shifted(Tensor shift_) : shift(std::move(shift_)) {
    reset();
  }
  void reset() override {
    register_buffer("shift", shift);
  }
  Tensor forward(const Tensor& x) {
    return x + shift;
  }
  Tensor shift;
};

/// Copies itself by what it registers.
struct ByArchive : nn::Module {
  ByArchive() {
    fc = register_module("fc", nn::Linear(4, 4));
  }
  std::shared_ptr<Module> clone(
      const std::optional<torch::Device>& /*device*/ = {}) const override {
    auto copy = std::make_shared<ByArchive>();
    torch::serialize::OutputArchive out;
    save(out);
    std::stringstream file;
    out.save_to(file);
    torch::serialize::InputArchive in;
    in.load_from(file);
    copy->load(in);
    return copy;
  }
  Tensor forward(const Tensor& x) {
    return fc(x);
  }
  nn::Linear fc = nullptr;
};
struct ByPlace : nn::Module {
  ByPlace() {
    fc = register_module("fc", nn::Linear(4, 4));
  }
  std::shared_ptr<Module> clone(
      const std::optional<torch::Device>& /*device*/ = {}) const override {
    const torch::NoGradGuard no_grad;
    auto copy = std::make_shared<ByPlace>();
    const auto from = parameters();
    const auto to = copy->parameters();
    for (std::size_t i = 0; i < to.size(); ++i) {
      to[i].copy_(from.at(i));
    }
    return copy;
  }
  Tensor forward(const Tensor& x) {
    return fc(x);
  }
  nn::Linear fc = nullptr;
};
struct ByClass : nn::Module {
  ByClass() {
    fc = register_module("fc", nn::Linear(4, 4));
  }
  std::shared_ptr<Module> clone(
      const std::optional<torch::Device>& /*device*/ = {}) const override {
    const torch::NoGradGuard no_grad;
    auto copy = std::make_shared<ByClass>();
    const auto& mine = dynamic_cast<const nn::LinearImpl&>(*children().at(0));
    copy->fc->weight.copy_(mine.weight);
    copy->fc->bias.copy_(mine.bias);
    return copy;
  }
  Tensor forward(const Tensor& x) {
    return fc(x);
  }
  nn::Linear fc = nullptr;
};
/// With LibTorch's clone() below it.
struct BySave : nn::Cloneable<BySave> {
  BySave() {
    reset();
  }
  void reset() override {
    fc = register_module("fc", nn::Linear(4, 4));
  }
  std::shared_ptr<Module> clone(
      const std::optional<torch::Device>& /*device*/ = {}) const override {
    const torch::NoGradGuard no_grad;
    auto copy = std::make_shared<BySave>();
    for (const auto& item : copy->named_parameters()) {
      item.value().copy_(named_parameters()[item.key()]);
    }
    return copy;
  }
  Tensor forward(const Tensor& x) {
    return fc(x);
  }
  nn::Linear fc = nullptr;
};

/// Made of children of class `M`.
template <class M>
struct Parent : nn::Cloneable<Parent<M>> {
  Parent() {
    reset();
  }
  void reset() override {
    child = this->register_module("child", std::make_shared<M>());
  }
  Tensor forward(const Tensor& x) {
    return child->forward(x);
  }
  std::shared_ptr<M> child;
};

/// A member that is computed from a parameter.
struct View : nn::Cloneable<View> {
  explicit View(bool uses_table_, bool is_view_ = true)
      : uses_table(uses_table_), is_view(is_view_) {
    reset();
  }
  void reset() override {
    table = register_parameter("table", torch::linspace(-1, 1, 8));
    half = table.narrow(0, 0, 4);
    half = is_view ? half : half * 2;
  }
  Tensor forward(const Tensor& x) {
    return uses_table ? x * half + table.sum() : x * half;
  }
  bool uses_table;
  bool is_view;
  Tensor table;
  Tensor half;
};

} // namespace program
