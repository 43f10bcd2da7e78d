// SPDX-License-Identifier: BSD-3-Clause
//
// Files of every kind of prefix and format into networks in every kind of
// wrapper; weights in unusual places; tied layers. Python writes the files.
#include <gmock/gmock.h>

#include "lockstep/tensor/checkpoint.h"
#include "tests/support/python.h"
#include "tests/support/scratch_dir.h"
#include "tests/tensor/modules.h"

namespace lockstep {
namespace {

namespace nn = torch::nn;
using test::Wrapper;

std::shared_ptr<nn::Module> network() {
  nn::Sequential net(nn::Linear(2, 2), nn::BatchNorm1d(2));
  return net.ptr();
}

/// Keeps a network under a name of its own.
struct Held : nn::Module {
  Held(const std::string& name, std::shared_ptr<nn::Module> net)
      : nn::Module("Held") {
    register_module(name, std::move(net));
  }
};

/// A layer under two names.
struct Tied : nn::Module {
  Tied() : a(register_module("a", nn::Linear(3, 2))) {
    register_module("b", a);
  }
  nn::Linear a;
};

class WrappedWeights : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder = std::make_unique<test::ScratchDir>();
    files = test::python_lines("tensor_wrapped.py", {folder->path()});
  }
  static void TearDownTestSuite() {
    folder.reset();
  }
  /// Loads into `module`, around `net`, and compares with Python's weights.
  static void expect_loaded(
      nn::Module& module,
      const nn::Module& net,
      const std::string& file,
      const LoadWeightsOptions& options = {}) {
    const StateDict expected =
        to_state_dict(lockstep::load(*folder / "bare.pt"));
    for (const auto& [key, tensor] : state_dict(net).entries) {
      const torch::NoGradGuard no_grad;
      tensor.zero_();
    }
    const LoadReport report = load_weights(module, *folder / file, options);
    EXPECT_EQ(report.taken, 7);
    EXPECT_TRUE(test::equal(state_dict(net), expected));
  }

  static std::unique_ptr<test::ScratchDir> folder;
  static std::vector<std::string> files;
};
std::unique_ptr<test::ScratchDir> WrappedWeights::folder;
std::vector<std::string> WrappedWeights::files;

TEST_F(WrappedWeights, OfEachKindGoIntoEachWrapper) {
  ASSERT_GT(files.size(), 35U);
  const auto net = network();
  const auto wrapped = std::make_shared<Wrapper>(net);
  const std::map<std::string, std::shared_ptr<nn::Module>> modules{
      {"bare", net},
      {"wrapped", wrapped},
      {"wrapped twice", std::make_shared<Wrapper>(wrapped)},
      {"held", std::make_shared<Held>("model", net)},
      {"wrapped, held", std::make_shared<Held>("model", wrapped)},
      {"held, wrapped",
       std::make_shared<Wrapper>(std::make_shared<Held>("net", net))}};
  for (const std::string& file : files) {
    for (const auto& [name, module] : modules) {
      SCOPED_TRACE(file + " into " + name);
      ASSERT_NO_THROW(expect_loaded(*module, *net, file));
    }
  }
}

// What is around them has a name of its own, and so has what they are to go in.
TEST_F(WrappedWeights, OfAnotherNameAreRefused) {
  const auto net = network();
  Held module("anything", std::make_shared<Wrapper>(net));
  for (const std::string& file : files) {
    SCOPED_TRACE(file);
    if (file.find("any") == std::string::npos) {
      ASSERT_NO_THROW(expect_loaded(module, *net, file));
    } else {
      EXPECT_EQ(
          test::error_of([&] { load_weights(module, *folder / file); }).detail,
          "E_STATE_DICT");
    }
  }
}

TEST_F(WrappedWeights, NotesSayWhatWasChosen) {
  const auto net = network();
  EXPECT_THAT(
      load_weights(*net, *folder / "compiled_module.pt").notes,
      testing::ElementsAre("7 of 7 names were fitted: "
                           "'_orig_mod.module.0.weight' -> '0.weight', ..."));
  EXPECT_THAT(
      load_weights(*net, *folder / "only_ema.pt").notes,
      testing::ElementsAre(
          "the weights are those of 'ema', the only ones in the file"));
  EXPECT_THAT(
      load_weights(*net, *folder / "bare.pt").notes,
      testing::IsEmpty());
}

TEST_F(WrappedWeights, OfSeveralEntriesOneIsNamed) {
  const auto net = network();
  const Error error =
      test::error_of([&] { load_weights(*net, *folder / "two.pt"); });
  EXPECT_EQ(error.code, ErrorCode::kNotFound);
  EXPECT_EQ(
      error.message,
      "several entries hold weights: 'params_ema', 'params'");
  EXPECT_EQ(error.hint, ".key = \"params_ema\" takes these");
  expect_loaded(*net, *net, "two.pt", {.key = "params_ema"});
  expect_loaded(*net, *net, "composer.pt", {.key = "state.model"});
  EXPECT_EQ(
      test::error_of([&] {
        load_weights(*net, *folder / "two.pt", {.key = "param_ema"});
      }).code,
      ErrorCode::kNotFound);
}

TEST_F(WrappedWeights, OfSeveralFrontsOneIsNamed) {
  const auto net = network();
  for (const bool strict : {true, false}) {
    const Error error = test::error_of(
        [&] { load_weights(*net, *folder / "pair.pt", {.strict = strict}); });
    EXPECT_EQ(error.detail, "E_AMBIGUOUS");
    EXPECT_EQ(
        error.message,
        "the file has weights for this module more than once, under "
        "'student', 'teacher'");
    EXPECT_EQ(error.hint, ".key = \"student\" takes these");
  }
  expect_loaded(*net, *net, "pair.pt", {.key = "student"});
}

TEST_F(WrappedWeights, TwoKeysForOneTensorAreRefused) {
  const auto net = network();
  StateDict twice = add_prefix(state_dict(*net), "module.");
  twice.entries.emplace_back("0.weight", torch::ones({2, 2}));
  save(twice, *folder / "twice_one.pt");
  const at::Tensor before = state_dict(*net).get("0.weight").clone();
  EXPECT_EQ(
      test::error_of([&] {
        load_weights(*net, *folder / "twice_one.pt");
      }).message,
      "'module.0.weight' and '0.weight' of the file are both '0.weight' of "
      "the module");
  EXPECT_TRUE(state_dict(*net).get("0.weight").equal(before));
}

TEST_F(WrappedWeights, TiedLayersAreInTheFileOnce) {
  const StateDict expected = to_state_dict(lockstep::load(*folder / "tied.pt"));
  for (const char* file :
       {"tied.safetensors",
        "tied_module.safetensors",
        "tied_unsaid.safetensors",
        "tied.pt"}) {
    SCOPED_TRACE(file);
    const auto net = std::make_shared<Tied>();
    const LoadReport report = load_weights(*net, *folder / file);
    EXPECT_TRUE(test::equal(state_dict(*net), expected));
    EXPECT_EQ(to_string(report), "<All keys matched successfully>");
    const auto other = std::make_shared<Tied>();
    Wrapper wrapped(other);
    load_weights(wrapped, *folder / file);
    EXPECT_TRUE(test::equal(state_dict(*other), expected));
  }
  // Two layers that are not tied: only the metadata says that they are equal.
  struct Untied : nn::Module {
    Untied() {
      register_module("a", nn::Linear(3, 2));
      register_module("b", nn::Linear(3, 2));
    }
  } untied;
  load_weights(untied, *folder / "tied.safetensors");
  EXPECT_TRUE(test::equal(state_dict(untied), expected));
  EXPECT_THAT(
      test::error_of([&] {
        load_weights(untied, *folder / "tied_unsaid.safetensors");
      }).message,
      testing::HasSubstr("Missing key(s) in state_dict: \"b.weight\""));
}

} // namespace
} // namespace lockstep
