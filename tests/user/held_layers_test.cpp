// SPDX-License-Identifier: BSD-3-Clause
//
// Layers that a net holds in several members: all of them in one list, the last
// one that ran, another layer's input layer; and lists to which reset()
// appends.
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/parallel/data_parallel.h"
#include "lockstep/tensor/modules.h"
#include "tests/user/as_alone.h"
#include "tests/user/support.h"

namespace program {

namespace nn = torch::nn;
using torch::Tensor;

/// The constructor lists what reset() registered.
struct AllListed : nn::Cloneable<AllListed> {
  AllListed() {
    reset();
    all = children();
  }
  void reset() override {
    fc = register_module("fc", nn::Linear(4, 8));
    norm = register_module("norm", nn::BatchNorm1d(8));
    drop = register_module("drop", nn::Dropout(0.5));
  }
  Tensor forward(const Tensor& x) {
    return drop(norm(fc(x)));
  }
  nn::Linear fc = nullptr;
  nn::BatchNorm1d norm = nullptr;
  nn::Dropout drop = nullptr;
  std::vector<std::shared_ptr<nn::Module>> all;
};

/// The same layers, run through the list.
struct RunByList : nn::Cloneable<RunByList> {
  RunByList() {
    reset();
    all = {fc, second};
  }
  void reset() override {
    fc = register_module("fc", nn::Linear(4, 4));
    second = register_module("second", nn::Linear(4, 4));
  }
  Tensor forward(Tensor x) {
    for (auto& layer : all) {
      x = torch::tanh(layer(x));
    }
    return x;
  }
  nn::Linear fc = nullptr;
  nn::Linear second = nullptr;
  std::vector<nn::Linear> all;
};

/// forward keeps the layer that ran last.
struct LastRun : nn::Cloneable<LastRun> {
  LastRun() {
    reset();
  }
  void reset() override {
    fc = register_module("fc", nn::Linear(4, 8));
    drop = register_module("drop", nn::Dropout(0.5));
  }
  Tensor forward(const Tensor& x) {
    last = drop.ptr();
    return drop(fc(x));
  }
  nn::Linear fc = nullptr;
  nn::Dropout drop = nullptr;
  std::shared_ptr<nn::Module> last;
};

/// Ties its output to an encoder that its parent registers.
struct DecoderImpl : nn::Cloneable<DecoderImpl> {
  explicit DecoderImpl(nn::Linear encoder_ = nullptr)
      : encoder(std::move(encoder_)) {
    reset();
  }
  void reset() override {
    fc = register_module("fc", nn::Linear(4, 4));
  }
  Tensor forward(const Tensor& x) {
    return fc(encoder(x));
  }
  nn::Linear encoder = nullptr;
  nn::Linear fc = nullptr;
};
TORCH_MODULE(Decoder);

struct Siblings : nn::Cloneable<Siblings> {
  Siblings() {
    reset();
  }
  void reset() override {
    encoder = register_module("encoder", nn::Linear(4, 4));
    decoder = register_module("decoder", Decoder(encoder));
  }
  Tensor forward(const Tensor& x) {
    return decoder(torch::tanh(encoder(x)));
  }
  nn::Linear encoder = nullptr;
  Decoder decoder = nullptr;
};

/// reset() does not clear the list first. With an argument, DataParallel cannot
/// construct it again.
template <class... Arguments>
struct AppendsLayers : nn::Cloneable<AppendsLayers<Arguments...>> {
  explicit AppendsLayers(Arguments... /*unused*/) {
    reset();
  }
  void reset() override {
    layers.push_back(this->register_module("a", nn::Linear(4, 4)));
    layers.push_back(this->register_module("b", nn::Linear(4, 4)));
  }
  Tensor forward(Tensor x) {
    for (auto& layer : layers) {
      x = torch::tanh(layer(x));
    }
    return x;
  }
  std::vector<nn::Linear> layers;
};

template <class... Arguments>
struct AppendsTensors : nn::Cloneable<AppendsTensors<Arguments...>> {
  explicit AppendsTensors(Arguments... /*unused*/) {
    reset();
  }
  void reset() override {
    tensors.push_back(this->register_parameter("a", torch::randn({4})));
    tensors.push_back(this->register_buffer("b", torch::randn({4})));
  }
  Tensor forward(Tensor x) {
    for (const Tensor& tensor : tensors) {
      x = x * tensor;
    }
    return x;
  }
  std::vector<Tensor> tensors;
};

/// A sound list of a child's.
template <class Child>
struct Around : nn::Cloneable<Around<Child>> {
  explicit Around(int /*unused*/) {
    reset();
  }
  void reset() override {
    child = this->register_module("child", std::make_shared<Child>(1));
  }
  Tensor forward(const Tensor& x) {
    return child->forward(x);
  }
  std::shared_ptr<Child> child;
};

} // namespace program

namespace lockstep {
namespace {

using test::close;
using test::error_of;
using test::seeded;
using test::Warnings;
using testing::HasSubstr;

class HeldLayers : public test::AsAlone {
 protected:
  /// In evaluation and in training, in turns.
  template <class Net>
  void expect_modes_followed() {
    const auto net = seeded<Net>();
    SCOPED_TRACE(net->name());
    net->to(home());
    net->forward(batch());
    Warnings warnings;
    DataParallel<Net> model(net, {.devices = GetParam()});
    for (int turn = 0; turn < 2; ++turn) {
      model->train();
      const auto trained = model->forward(batch());
      EXPECT_EQ(trained[-1].eq(0).any().item().toBool(), true) << "no dropout";
      model->eval();
      EXPECT_TRUE(close(model->forward(batch()), net->forward(batch())));
    }
    EXPECT_EQ(warnings.text, "");
  }
  template <template <class...> class Net>
  void expect_append_named(const char* name) {
    expect_wrapped_as_alone(seeded<Net<>>());
    expect_named(seeded<Net<int>>(1), name);
    expect_named(
        seeded<program::Around<Net<int>>>(1),
        std::string("child.") + name);
    expect_wrapped_as_alone(seeded<Net<int>>(1), [] {
      return seeded<Net<int>>(1);
    });
  }

 private:
  template <class Net>
  void expect_named(const std::shared_ptr<Net>& net, const std::string& name) {
    net->to(home());
    const Error error = error_of(
        [&] { DataParallel<Net> model(net, {.devices = GetParam()}); });
    EXPECT_EQ(error.code, ErrorCode::kUnsupported);
    EXPECT_THAT(error.message, HasSubstr("'" + name + "'"));
    EXPECT_THAT(error.message, HasSubstr("clear the list"));
    EXPECT_THAT(
        test::torch_error([&] { clone_module(*net); }),
        HasSubstr("clear the list"));
  }
};
INSTANTIATE_TEST_SUITE_P(
    Programs,
    HeldLayers,
    testing::Values("cpu*2", "sim*2"),
    [](const auto& param) { return test::name_of_devices(param.param); });

TEST_P(HeldLayers, AreSwitchedToEvaluation) {
  expect_modes_followed<program::AllListed>();
  expect_modes_followed<program::LastRun>();
}

TEST_P(HeldLayers, ComputeAsAlone) {
  Warnings warnings;
  expect_as_alone(seeded<program::AllListed>());
  expect_as_alone(seeded<program::RunByList>());
  expect_as_alone(seeded<program::LastRun>());
  expect_as_alone(seeded<program::Siblings>());
  EXPECT_THAT(warnings.text, testing::Not(HasSubstr("beside")));
}

TEST_P(HeldLayers, OfBothModulesInAListAreNamed) {
  expect_append_named<program::AppendsLayers>("a");
  expect_append_named<program::AppendsTensors>("a");
}

} // namespace
} // namespace lockstep
