// SPDX-License-Identifier: BSD-3-Clause
//
// LibTorch's own files: it reads the archives we write, we read its archives
// of modules, tensors, values and optimizers.
#include <fstream>

#include <gmock/gmock.h>
#include <torch/csrc/jit/serialization/pickle.h>
#include <torch/torch.h>

#include "lockstep/ckpt/core/quantizer.h"
#include "lockstep/ckpt/load.h"
#include "lockstep/ckpt/optim.h"
#include "lockstep/ckpt/print.h"
#include "lockstep/tensor/state_dict.h"
#include "tests/support/scratch_dir.h"
#include "tests/tensor/modules.h"

namespace lockstep {
namespace {

namespace nn = torch::nn;
namespace optim = torch::optim;

nn::Sequential small_net() {
  nn::Sequential net(nn::Linear(3, 4), nn::ReLU(), nn::Linear(4, 2));
  return net;
}

void train(nn::Sequential& net, optim::Optimizer& optimizer) {
  for (int i = 0; i < 3; ++i) {
    optimizer.zero_grad();
    net->forward(torch::ones({5, 3})).square().sum().backward();
    optimizer.step();
  }
}

class LibtorchArchive : public testing::Test {
 protected:
  ckpt::Value read(const std::string& name) {
    auto file = ckpt::load(dir_ / name);
    EXPECT_TRUE(file) << to_string(file.error());
    return file ? file->root : ckpt::Value();
  }
  void write(const std::string& name, const ckpt::Value& root) {
    const Status status = ckpt::save(dir_ / name, root, {.format = "libtorch"});
    EXPECT_TRUE(status) << to_string(status.error());
  }
  ckpt::Value pickled(const c10::IValue& value) {
    const std::vector<char> bytes = torch::pickle_save(value);
    std::ofstream(dir_ / "p.pt", std::ios::binary)
        .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    return read("p.pt");
  }

  test::ScratchDir dir_;
};

TEST_F(LibtorchArchive, OfOursLoadsIntoModules) {
  const auto saved = test::fill(std::make_shared<test::Net>());
  write("net.pt", to_value(state_dict(*saved)));
  auto loaded = std::make_shared<test::Net>();
  torch::load(loaded, dir_ / "net.pt");
  EXPECT_TRUE(test::equal(state_dict(*loaded), state_dict(*saved)));

  nn::Sequential net = small_net();
  write("sequential.pt", to_value(state_dict(*net)));
  nn::Sequential other = small_net();
  torch::load(other, dir_ / "sequential.pt");
  EXPECT_TRUE(test::equal(state_dict(*other), state_dict(*net)));
}

TEST_F(LibtorchArchive, OfOursLoadsTensors) {
  const at::Tensor first = torch::arange(6).reshape({2, 3}).t();
  const at::Tensor second = torch::ones({2}, torch::kBFloat16);
  write("one.pt", to_value(first));
  at::Tensor one;
  torch::load(one, dir_ / "one.pt");
  EXPECT_TRUE(one.equal(first));
  write("two.pt", ckpt::Value::list({to_value(first), to_value(second)}));
  std::vector<at::Tensor> two;
  torch::load(two, dir_ / "two.pt");
  ASSERT_EQ(two.size(), 2U);
  EXPECT_TRUE(two[1].equal(second));
}

TEST_F(LibtorchArchive, OfModulesReadsAsAStateDict) {
  const auto net = test::fill(std::make_shared<test::Net>());
  torch::save(std::static_pointer_cast<nn::Module>(net), dir_ / "net.pt");
  const StateDict read_back = to_state_dict(read("net.pt"));
  const StateDict expected = state_dict(*net);
  EXPECT_EQ(read_back.entries.size(), expected.entries.size());
  for (const auto& [key, tensor] : expected.entries) {
    EXPECT_TRUE(read_back.get(key).equal(tensor)) << key;
  }
}

TEST_F(LibtorchArchive, OfPickledValuesReads) {
  const auto text = [](const ckpt::Value& value) {
    return ckpt::to_text(value);
  };
  EXPECT_EQ(text(pickled(std::vector<std::int64_t>{1, 2})), "[1, 2]");
  c10::Dict<std::string, at::Tensor> dict;
  dict.insert("a", torch::ones({2}));
  EXPECT_EQ(text(pickled(dict)), "{\n  'a': tensor(float32 [2]),\n}");
  EXPECT_EQ(
      text(pickled(torch::eye(3).to_sparse())),
      "sparse_coo float32 [3, 3](indices=tensor(int64 [2, 3]), "
      "values=tensor(float32 [3]))");
  EXPECT_EQ(
      text(pickled(
          torch::quantize_per_tensor(torch::ones({2}), 0.5, 1, torch::kQInt8))),
      "tensor(qint8 [2], scale 0.5, zero point 1)");
  for (const auto type :
       {at::ScalarType::UInt16,
        at::ScalarType::Float8_e5m2,
        at::ScalarType::ComplexHalf}) {
    const at::Tensor tensor = torch::arange(4).to(type);
    const ckpt::Value value = pickled(tensor);
    ASSERT_NE(value.as_tensor(), nullptr);
    EXPECT_TRUE(to_tensor(*value.as_tensor())
                    .view(torch::kByte)
                    .equal(tensor.view(torch::kByte)));
  }
}

// There and back through Python's form; LibTorch reads the result.
template <class Optimizer, class Options>
void expect_converts(
    const test::ScratchDir& dir,
    const Options& options,
    const std::string& algorithm) {
  nn::Sequential net = small_net();
  Optimizer optimizer(net->parameters(), options);
  train(net, optimizer);
  torch::save(optimizer, dir / "o.pt");
  const auto archive = ckpt::load(dir / "o.pt");
  ASSERT_TRUE(archive) << to_string(archive.error());
  const auto python = ckpt::optim_to_python(archive->root);
  ASSERT_TRUE(python) << to_string(python.error());
  EXPECT_EQ(python->algorithm, algorithm);
  EXPECT_EQ(python->states, 4U);
  const auto cpp = ckpt::optim_to_cpp(python->root);
  ASSERT_TRUE(cpp) << to_string(cpp.error());
  ASSERT_TRUE(ckpt::save(dir / "c.pt", cpp->root, {.format = "libtorch"}));

  // Both go on to the same weights.
  nn::Sequential copy = small_net();
  load_state_dict(*copy, state_dict(*net));
  Optimizer other(copy->parameters(), Options(0.5));
  torch::load(other, dir / "c.pt");
  train(net, optimizer);
  train(copy, other);
  EXPECT_TRUE(test::equal(state_dict(*copy), state_dict(*net))) << algorithm;
}

TEST_F(LibtorchArchive, OfOptimizersConvertsBothWays) {
  expect_converts<optim::SGD>(
      dir_,
      optim::SGDOptions(0.01).momentum(0.9).nesterov(true),
      "SGD");
  expect_converts<optim::Adam>(
      dir_,
      optim::AdamOptions(0.01).amsgrad(true).betas({0.8, 0.9}),
      "Adam");
  expect_converts<optim::AdamW>(dir_, optim::AdamWOptions(0.01), "Adam");
  expect_converts<optim::RMSprop>(
      dir_,
      optim::RMSpropOptions(0.01).momentum(0.5).centered(true),
      "RMSprop");
  expect_converts<optim::Adagrad>(dir_, optim::AdagradOptions(0.1), "Adagrad");
}

} // namespace
} // namespace lockstep
