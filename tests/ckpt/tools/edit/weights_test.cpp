// SPDX-License-Identifier: BSD-3-Clause
#include <vector>

#include <gtest/gtest.h>

#include "lockstep/ckpt/edit.h"
#include "lockstep/ckpt/inspect.h"
#include "tests/ckpt/value_fixture.h"

namespace lockstep::ckpt {
namespace {

Value weights() {
  return Value::ordered_dict(
      {{"fc.weight", tensor_of<float>(DType::kFloat32, {1, 2}, {2})}});
}

Value whole_model() {
  return Object{
      .global = "model.Net",
      .state = std::make_shared<Value>(
          Value::dict({{"_modules", Value::dict({})}}))};
}

// `torch.save(model.state_dict)`: the method, not its result.
Value uncalled() {
  return Object{
      .global = "builtins.getattr",
      .args =
          std::make_shared<Value>(Value::tuple({whole_model(), "state_dict"}))};
}

// Where the commands look and what the summary says.
class WeightsKey : public testing::TestWithParam<const char*> {};

TEST_P(WeightsKey, IsOneForCommandsAndSummary) {
  for (const Value& value : {weights(), whole_model(), uncalled()}) {
    const Value root = Value::dict({{"epoch", 3}, {GetParam(), value}});
    EXPECT_EQ(locate_weights(root).key, GetParam());
    EXPECT_EQ(summarize({.root = root})->weights_key, GetParam());
  }
}

INSTANTIATE_TEST_SUITE_P(
    Usual,
    WeightsKey,
    testing::Values(
        "state_dict",
        "model_state_dict",
        "model",
        "net",
        "module",
        "weights",
        "model_state",
        "params_ema",
        "params",
        "ema",
        "model_ema",
        "state_dict_ema",
        "ema_state_dict"),
    [](const auto& param) { return std::string(param.param); });

TEST(WeightsPlace, IsTheTopLevelWithoutAUsualKey) {
  EXPECT_EQ(locate_weights(weights()).key, "");
  const Value root = Value::dict({{"model", "resnet18"}, {"other", weights()}});
  EXPECT_EQ(locate_weights(root).key, "");
  EXPECT_EQ(summarize({.root = root})->weights_key, "");
}

TEST(WeightsPlace, IsWhereTheTensorsAre) {
  const Value config = Value::dict({{"name", "resnet18"}});
  const Value none = None();
  for (const Value& other : {config, none, Value("resnet18")}) {
    const Value root = Value::dict({{"net", other}, {"weights", weights()}});
    EXPECT_EQ(locate_weights(root).key, "weights");
    const Value average = Value::dict({{"model", other}, {"ema", weights()}});
    EXPECT_EQ(locate_weights(average).key, "ema");
  }
  EXPECT_EQ(locate_weights(Value::dict({{"net", config}})).key, "net");
  EXPECT_EQ(locate_weights(Value::dict({{"params", config}})).key, "");
}

struct Layout {
  const char* name = "";
  Value root = {};
  const char* key = "";
  bool is_usual = true;
};

Value nested() {
  return Value::dict({{"enc", weights()}, {"dec", weights()}});
}

// The model before its averages, however its tensors are arranged.
std::vector<Layout> layouts(const char* usual, const char* other) {
  const Value tensor = tensor_of<float>(DType::kFloat32, {1}, {1});
  const Value config = Value::dict({{"depth", 18}});
  return {
      {"both flat",
       Value::dict({{other, weights()}, {usual, weights()}}),
       usual},
      {"model nested",
       Value::dict({{other, weights()}, {usual, nested()}}),
       usual},
      {"both nested",
       Value::dict({{other, nested()}, {usual, nested()}}),
       usual},
      {"model beside a tensor",
       Value::dict({{usual, weights()}, {"rng_state", tensor}}),
       usual},
      {"nested model beside a tensor",
       Value::dict({{usual, nested()}, {"rng_state", tensor}}),
       usual},
      {"average alone", Value::dict({{other, weights()}}), other, false},
      {"average nested", Value::dict({{other, nested()}}), other, false},
      {"average and configuration",
       Value::dict({{usual, config}, {other, weights()}}),
       other,
       false},
      {"weights beside a part of that name",
       Value::dict({{other, weights()}, {"fc.weight", tensor}}),
       ""},
      {"weights beside a nested part",
       Value::dict({{other, nested()}, {"fc.weight", tensor}}),
       ""},
      {"weights beside a configuration",
       Value::dict({{usual, config}, {"fc.weight", tensor}}),
       ""},
      {"configuration alone", Value::dict({{usual, config}}), usual},
  };
}

TEST(WeightsPlace, IsTheModelBeforeItsAverages) {
  for (const char* usual :
       {"state_dict", "model_state_dict", "model", "net", "module"}) {
    for (const char* other : {"params_ema", "params", "ema", "model_ema"}) {
      for (const Layout& layout : layouts(usual, other)) {
        SCOPED_TRACE(
            testing::Message()
            << layout.name << ": " << usual << ", " << other);
        const auto place = locate_weights(layout.root);
        EXPECT_EQ(place.key, layout.key);
        EXPECT_EQ(place.is_usual, layout.is_usual);
      }
    }
  }
}

TEST(WeightsToEdit, TakesTheKeyThatReportsName) {
  const Value root = Value::dict(
      {{"model", weights()},
       {"state", Value::dict({{"model", weights()}, {"step", 7}})}});
  const auto place = weights_to_edit(root, "state.model");
  ASSERT_TRUE(place) << to_string(place.error());
  EXPECT_EQ(place->key, "state.model");
  const Value changed = with_weights(root, *place, Value::dict({{"w", 1}}));
  EXPECT_NE(changed.find("state")->find("model")->find("w"), nullptr);
  EXPECT_EQ(weights_to_edit(root, "state.none").error().detail, "E_NO_KEY");
}

TEST(WeightsPlace, OfComposerIsBelowAnotherKey) {
  const Value root = Value::dict(
      {{"rng", 1},
       {"state", Value::dict({{"model", weights()}, {"step", 7}})}});
  const auto place = weights_to_edit(root);
  ASSERT_TRUE(place);
  EXPECT_EQ(place->key, "state.model");
  const Value changed = with_weights(root, *place, Value::dict({{"w", 1}}));
  EXPECT_EQ(*changed.find("rng")->as_int(), 1);
  EXPECT_EQ(*changed.find("state")->find("step")->as_int(), 7);
  EXPECT_EQ(*changed.find("state")->find("model")->find("w")->as_int(), 1);
  EXPECT_EQ(root.find("state")->find("model")->find("w"), nullptr);
}

TEST(WeightsToEdit, SendsWholeModelsToExtractModel) {
  for (const Value& value : {whole_model(), uncalled()}) {
    const auto place = weights_to_edit(Value::dict({{"model", value}}));
    ASSERT_FALSE(place);
    EXPECT_EQ(place.error().detail, "E_NO_WEIGHTS");
    EXPECT_NE(place.error().hint.find("extract-model"), std::string::npos);
    EXPECT_NE(place.error().message.find("'model'"), std::string::npos);
  }
}

} // namespace
} // namespace lockstep::ckpt
