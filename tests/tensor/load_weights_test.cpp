// SPDX-License-Identifier: BSD-3-Clause
//
// One call for any file. The files of real models, saved by Python on GPUs that
// are not here, are in tests/parallel/four_combinations_test.cpp.
#include <gmock/gmock.h>

#include "lockstep/tensor/checkpoint.h"
#include "lockstep/tensor/internal/prefix_fit.h"
#include "lockstep/tensor/state_dict.h"
#include "tests/support/scratch_dir.h"
#include "tests/tensor/modules.h"

namespace lockstep {
namespace {

using test::MyModule;
using Keys = std::vector<std::string>;

TEST(FitKeys, TakesTheNamesUnderWhichMostKeysFit) {
  struct Case {
    Keys model = {};
    Keys file = {};
    Keys fitted = {};
  };
  const std::vector<Case> cases{
      {{"a.w", "b.w"}, {"a.w", "b.w"}, {"a.w", "b.w"}},
      {{"a.w", "b.w"}, {"module.a.w", "module.b.w"}, {"a.w", "b.w"}},
      {{"module.a.w"}, {"a.w"}, {"module.a.w"}},
      // A layer that is really called module.
      {{"module.w", "module.b"},
       {"module.w", "module.b"},
       {"module.w", "module.b"}},
      {{"module.w"}, {"module.module.w"}, {"module.w"}},
      {{"w"}, {"module.module.w"}, {"w"}},
      {{"w", "module.w"}, {"module.w", "module.module.w"}, {"w", "module.w"}},
      // Another head, another number of layers: most keys decide, and what
      // fits nowhere keeps its name.
      {{"a.w", "b.w", "head.w"},
       {"module.a.w", "module.b.w", "module.fc.w"},
       {"a.w", "b.w", "module.fc.w"}},
      {{"a.w", "b.w"},
       {"encoder.a.w", "encoder.b.w", "head.w"},
       {"a.w", "b.w", "head.w"}},
      {{"net.a.w", "net.b.w", "head.w"},
       {"a.w", "b.w"},
       {"net.a.w", "net.b.w"}},
      // One prefix for another, where one of them says nothing.
      {{"module.0.w", "module.1.w"},
       {"model.0.w", "model.1.w"},
       {"module.0.w", "module.1.w"}},
      {{"module.net.a.w"}, {"x.y.a.w"}, {"module.net.a.w"}},
      // Wrappers of layers, on either side.
      {{"a.module.w", "b.w"}, {"a.w", "b.w"}, {"a.module.w", "b.w"}},
      {{"a.w", "b.w"}, {"a._orig_mod.w", "module.b.w"}, {"a.w", "b.w"}},
      // No layer takes the name of another one.
      {{"fc.w", "fc.b"}, {"linear.w", "linear.b"}, {"linear.w", "linear.b"}},
      {{"encoder.a.w"}, {"decoder.a.w"}, {"decoder.a.w"}},
      {{"encoder.a.w"}, {"decoder.module.a.w"}, {"decoder.module.a.w"}},
      {{"encoder._orig_mod.a.w"}, {"decoder.a.w"}, {"decoder.a.w"}},
      {{"encoder.module.a.w"}, {"decoder.module.a.w"}, {"decoder.module.a.w"}},
      {{"held.module.a.w"}, {"x.y.a.w"}, {"x.y.a.w"}},
      {{"a.w", "fc.w"}, {"a.w", "aux.fc.w"}, {"a.w", "aux.fc.w"}},
      {{"x"}, {"y"}, {"y"}},
      {{}, {"y"}, {"y"}},
      {{"x"}, {}, {}}};
  for (const Case& c : cases) {
    EXPECT_EQ(fit_keys(c.model, c.file), (KeyFit{.keys = c.fitted}))
        << testing::PrintToString(c.model) << " "
        << testing::PrintToString(c.file);
  }
}

TEST(FitKeys, SeveralPartsThatFitAsWellAreNamed) {
  const KeyFit fit = fit_keys(
      Keys{"a.w", "b.w"},
      Keys{"student.a.w", "student.b.w", "teacher.a.w", "teacher.b.w"});
  EXPECT_THAT(fit.rivals, testing::ElementsAre("student.", "teacher."));
  EXPECT_TRUE(fit_keys(Keys{"a.w"}, Keys{"a.w", "student.a.w"}).rivals.empty());
}

TEST(FitKeys, APartThatIsPartlyThereIsNamedToo) {
  EXPECT_THAT(
      fit_keys(
          Keys{"a.w", "b.w", "c.w"},
          Keys{
              "student.a.w",
              "student.b.w",
              "teacher.a.w",
              "teacher.b.w",
              "teacher.c.w"})
          .rivals,
      testing::ElementsAre("teacher.", "student."));
  // A few equal names, as numbers of layers have them, are no other network.
  EXPECT_EQ(
      fit_keys(
          Keys{"0.w", "2.w", "4.w"},
          Keys{
              "features.0.w",
              "features.2.w",
              "features.4.w",
              "classifier.0.w"}),
      (KeyFit{.keys = {"0.w", "2.w", "4.w", "classifier.0.w"}}));
}

TEST(FitKeys, SeveralPlacesInTheModuleAreNamed) {
  const auto places = [](const Keys& model, const Keys& file) {
    const KeyFit fit = fit_keys(model, file);
    EXPECT_EQ(fit.keys, file);
    EXPECT_TRUE(fit.rivals.empty());
    return fit.places;
  };
  EXPECT_EQ(
      places({"encoder.0.w", "target.0.w"}, {"0.w"}),
      (Keys{"encoder.", "target."}));
  EXPECT_EQ(
      places({"fc1.w", "fc1.b", "fc2.w", "fc2.b"}, {"w", "b"}),
      (Keys{"fc1.", "fc2."}));
  EXPECT_EQ(
      places({"encoder.0.w", "encoder.1.w", "target.0.w"}, {"0.w", "1.w"}),
      (Keys{"encoder.", "target."}))
      << "partly there";
  EXPECT_EQ(
      places({"module.encoder.0.w", "module.target.0.w"}, {"module.0.w"}),
      (Keys{"encoder.", "target."}));
  // All of both sides in one way is no matter of choice.
  EXPECT_EQ(
      fit_keys(Keys{"a.0.w", "a.0.0.w"}, Keys{"0.w", "0.0.w"}),
      (KeyFit{.keys = {"a.0.w", "a.0.0.w"}}));
}

TEST(PrefixHint, IsGivenOnlyWhereItHelps) {
  const Keys two_layers{"fc1.w", "fc1.b", "fc2.w", "fc2.b"};
  const Keys layer{"w", "b"};
  EXPECT_EQ(prefix_hint(layer, two_layers), "");
  EXPECT_EQ(prefix_hint(two_layers, layer), "");
  EXPECT_EQ(prefix_hint(layer, Keys{"fc1.w", "fc1.b", "out"}), "");
  EXPECT_EQ(
      prefix_hint(Keys{"a.w"}, Keys{"net.a.w", "loss.w"}),
      "all names of the module are in the file under 'net.', beside 1 more: "
      "load with "
      ".strip_prefix = \"net.\", .strict = false");
  EXPECT_EQ(
      prefix_hint(Keys{"net.a.w", "head.w"}, Keys{"a.w"}),
      "all names of the file are in the module under 'net.', beside 1 more: "
      "load with "
      ".add_prefix = \"net.\", .strict = false");
  EXPECT_EQ(prefix_hint(Keys{"a.w"}, Keys{"x.a.w", "y.a.w"}), "")
      << "which one?";
}

class LoadWeights : public testing::Test {
 protected:
  std::string file() const {
    return folder_ / "w.pth";
  }
  test::ScratchDir folder_;
};

TEST_F(LoadWeights, FindsThemUnderAKeyWithOrWithoutPrefix) {
  const MyModule trained;
  const StateDict weights = state_dict(trained);
  for (const StateDict& saved : {weights, add_prefix(weights, "module.")}) {
    for (const char* key : {"state_dict", "model", "net"}) {
      save({{"epoch", 3}, {key, saved}}, file());
      MyModule net;
      load_weights(net, file());
      EXPECT_TRUE(net.fc->weight.equal(trained.fc->weight)) << key;
    }
  }
}

TEST_F(LoadWeights, KeepsTheModuleOnErrors) {
  const MyModule trained(6);
  save(to_value(state_dict(trained)), file());
  MyModule net;
  const at::Tensor before = net.fc->weight.clone();
  EXPECT_THAT(
      test::error_of([&] { load_weights(net, file()); }).message,
      testing::HasSubstr("size mismatch for fc.weight"));
  EXPECT_TRUE(net.fc->weight.equal(before));
  save({{"epoch", 3}}, file());
  EXPECT_EQ(
      test::error_of([&] { load_weights(net, file()); }).code,
      ErrorCode::kNotFound);
  EXPECT_EQ(
      test::error_of([&] { load_weights(net, folder_ / "none"); }).code,
      ErrorCode::kNotFound);
}

TEST_F(LoadWeights, ByPositionAndNotStrictly) {
  const MyModule trained;
  save(to_value(add_prefix(state_dict(trained), "layers.0.")), file());
  MyModule net;
  const LoadReport report = load_weights(net, file(), {.by_position = true});
  EXPECT_EQ(report.mapping.size(), 2U);
  EXPECT_TRUE(net.fc->bias.equal(trained.fc->bias));
  save({{"fc.weight", trained.fc->weight.detach()}}, file());
  EXPECT_EQ(
      load_weights(net, file(), {.strict = false}).missing_keys,
      Keys{"fc.bias"});
}

/// A network of three layers, its ends as asked for.
struct Chain : torch::nn::Module {
  Chain(std::int64_t in, std::int64_t out, const std::string& last = "last") {
    register_module("first", torch::nn::Linear(in, 4));
    register_module("middle", torch::nn::Linear(4, 4));
    register_module(last, torch::nn::Linear(4, out));
  }
};

TEST_F(LoadWeights, NewEndsAreMadeAndTold) {
  const Chain trained(3, 1000, "head");
  save(to_value(add_prefix(state_dict(trained), "module.")), file());
  Chain net(1, 10);
  const at::Tensor first = state_dict(net).get("first.weight").clone();
  const LoadReport report =
      load_weights(net, file(), {.may_differ = MayDiffer::kEnds});
  EXPECT_THAT(
      to_lines(report),
      testing::ElementsAre(
          "taken 3 of 6 tensors",
          "4 of 6 names were fitted: 'module.first.weight' -> 'first.weight', "
          "...",
          "new   first.weight  (4, 1), the file has (4, 3)",
          "new   last.weight   not in the file",
          "new   last.bias     not in the file",
          "left  module.head.weight  not in the model",
          "left  module.head.bias    not in the model"));
  EXPECT_TRUE(state_dict(net).get("first.weight").equal(first));
  EXPECT_TRUE(state_dict(net)
                  .get("middle.weight")
                  .equal(state_dict(trained).get("middle.weight")));
}

TEST_F(LoadWeights, MoreThanNewEndsMustBeAskedFor) {
  StateDict weights = state_dict(Chain(1, 10));
  weights.entries[2].second = torch::zeros({9, 4}); // middle.weight
  save(to_value(weights), file());
  Chain net(1, 10);
  const Error error = test::error_of(
      [&] { load_weights(net, file(), {.may_differ = MayDiffer::kEnds}); });
  EXPECT_THAT(error.message, testing::HasSubstr("mismatch for middle.weight"));
  EXPECT_THAT(error.hint, testing::HasSubstr("takes the 5 of 6 tensors"));
  const LoadReport report =
      load_weights(net, file(), {.may_differ = MayDiffer::kAnything});
  EXPECT_EQ(report.taken, 5);
  EXPECT_THAT(report.made_new(), testing::ElementsAre("middle.weight"));
  // An extra layer in the file is no end of the module.
  StateDict extra = state_dict(Chain(1, 10));
  extra.entries.emplace_back("aux.weight", torch::ones({1}));
  save(to_value(extra), file());
  EXPECT_THAT(
      test::error_of([&] {
        load_weights(net, file(), {.may_differ = MayDiffer::kEnds});
      }).message,
      testing::HasSubstr("Unexpected key(s) in state_dict: \"aux.weight\""));
}

TEST_F(LoadWeights, AFileThatFitsInSeveralPlacesIsRefused) {
  struct Pair : torch::nn::Module {
    Pair() {
      register_module("encoder", std::make_shared<MyModule>());
      register_module("target", std::make_shared<MyModule>());
    }
  } pair;
  save(to_value(state_dict(MyModule())), file());
  for (const bool strict : {true, false}) {
    const Error error =
        test::error_of([&] { load_weights(pair, file(), {.strict = strict}); });
    EXPECT_EQ(error.detail, "E_AMBIGUOUS");
    EXPECT_EQ(
        error.message,
        "the file's weights fit the module in several places: 'encoder', "
        "'target'");
    EXPECT_EQ(error.hint, "load into the part that is meant: 'encoder'");
  }
}

// What metadata say of a tensor is a name only where the module has it.
TEST_F(LoadWeights, MetadataThatNamesATensorIsNoWeight) {
  const MyModule trained;
  for (const char* note :
       {"quantized_from", "base.weight", "weight", "module"}) {
    for (const char* prefix : {"", "module.", "backbone."}) {
      SCOPED_TRACE(std::string(note) + " " + prefix);
      ckpt::Value weights = to_value(add_prefix(state_dict(trained), prefix));
      ckpt::Dict dict = *weights.as_dict();
      dict.attributes.emplace_back(
          "__metadata__",
          ckpt::Value::dict({{note, std::string(prefix) + "fc.weight"}}));
      MyModule net;
      EXPECT_NO_THROW(load_fitting(net, ckpt::Value(std::move(dict))));
      EXPECT_TRUE(net.fc->weight.equal(trained.fc->weight));
    }
  }
}

TEST_F(LoadWeights, AFileOfWhichNothingFitsIsRefused) {
  save({{"other", torch::ones({1})}}, file());
  Chain net(1, 10);
  const Error error = test::error_of(
      [&] { load_weights(net, file(), {.may_differ = MayDiffer::kAnything}); });
  EXPECT_THAT(error.message, testing::HasSubstr("Missing key(s)"));
}

} // namespace
} // namespace lockstep
