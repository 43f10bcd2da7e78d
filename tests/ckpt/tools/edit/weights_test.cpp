// SPDX-License-Identifier: BSD-3-Clause
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
  }
}

} // namespace
} // namespace lockstep::ckpt
