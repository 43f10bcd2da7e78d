// SPDX-License-Identifier: BSD-3-Clause
#include <gmock/gmock.h>

#include "lockstep/ckpt/load.h"
#include "lockstep/ckpt/model.h"
#include "lockstep/ckpt/tools/model/module_version.h"
#include "lockstep/ckpt/verify.h"
#include "tests/ckpt/value_fixture.h"

namespace lockstep::ckpt {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Value module(const std::string& name, const std::vector<Item>& parts) {
  Dict state;
  for (const char* part : {"_parameters", "_buffers", "_modules"}) {
    state.items.emplace_back(part, Value::dict({}));
  }
  Value dict = std::move(state);
  for (const auto& [key, value] : parts) {
    dict.set(key, value);
  }
  return Object{
      .global = name,
      .args = std::make_shared<Value>(Value::tuple({})),
      .state = std::make_shared<Value>(dict)};
}

Value weight() {
  Tensor tensor = tensor_of<float>(DType::kFloat32, {1, 2}, {2});
  tensor.is_parameter = true;
  tensor.requires_grad = true;
  return tensor;
}

Value linear() {
  return module(
      "torch.nn.modules.linear.Linear",
      {{"_parameters", Value::dict({{"weight", weight()}, {"bias", None{}}})}});
}

// A model whose layer is really called `module`.
Value trap() {
  return module(
      "model.Net",
      {{"_modules", Value::dict({{"module", linear()}})}});
}

Value data_parallel(const Value& inner) {
  return module(
      "torch.nn.parallel.data_parallel.DataParallel",
      {{"_modules", Value::dict({{"module", inner}})},
       {"device_ids", Value::list({0, Device{"cuda", 3}})},
       {"output_device", 0}});
}

TEST(ExtractModel, GivesTensorsAsStateDictDoes) {
  const auto model = extract_model(linear());
  ASSERT_TRUE(model) << to_string(model.error());
  EXPECT_THAT(keys_of(model->state_dict), ElementsAre("weight"));
  const Tensor* tensor = model->state_dict.find("weight")->as_tensor();
  EXPECT_FALSE(tensor->is_parameter);
  EXPECT_FALSE(tensor->requires_grad);
  EXPECT_EQ(model->parameters, 1U);
  EXPECT_EQ(model->buffers, 0U);
}

// LSTM lists its parameters in an attribute, too; quantized layers hold their
// weights in one alone.
TEST(ExtractModel, CountsTensorsThatAStateDictDoesNotHave) {
  EXPECT_TRUE(extract_model(trap())->left_out.empty());
  const Value shared = weight();
  const Value child = linear();
  const Value model = module(
      "model.Net",
      {{"_parameters", Value::dict({{"weight", shared}})},
       {"_modules", Value::dict({{"fc", child}})},
       {"_flat_weights", Value::list({shared, child})},
       {"packed",
        Object{
            .global = "torch.ScriptObject",
            .state = std::make_shared<Value>(
                Value::tuple({weight(), Value::list({weight()})}))}}});
  const auto extracted = extract_model(model);
  ASSERT_TRUE(extracted) << to_string(extracted.error());
  EXPECT_EQ(extracted->parameters, 2U);
  EXPECT_THAT(
      extracted->left_out,
      ElementsAre("<state>.packed.0", "<state>.packed.1.0"));
}

TEST(ExtractModel, UnwrapsOnlyTheWrapper) {
  const Value file = data_parallel(trap());
  EXPECT_THAT(
      keys_of(extract_model(file)->state_dict),
      ElementsAre("module.module.weight"));
  const auto bare = extract_model(file, {.unwrap = true});
  ASSERT_TRUE(bare);
  EXPECT_THAT(keys_of(bare->state_dict), ElementsAre("module.weight"));
  EXPECT_THAT(
      keys_of(extract_model(trap(), {.unwrap = true})->state_dict),
      ElementsAre("module.weight"));
}

TEST(ExtractModel, SaysWhatWrapsTheModelAndForWhichDevices) {
  const ModuleFacts facts = module_facts(data_parallel(trap()));
  EXPECT_EQ(facts.inner_class, "model.Net");
  EXPECT_THAT(facts.device_ids, ElementsAre("0", "cuda:3"));
  EXPECT_EQ(facts.output_device, "0");
  EXPECT_EQ(
      to_text(facts),
      "model.Net in torch.nn.parallel.data_parallel.DataParallel, device_ids "
      "[0, cuda:3], output_device 0");
}

TEST(ExtractModel, SeesTheModelBehindAMethodThatWasNotCalled) {
  const Value saved = Object{
      .global = "builtins.getattr",
      .args = std::make_shared<Value>(Value::tuple({linear(), "state_dict"}))};
  const auto model = extract_model(saved);
  ASSERT_TRUE(model) << to_string(model.error());
  EXPECT_TRUE(model->facts.is_uncalled);
  EXPECT_THAT(keys_of(model->state_dict), ElementsAre("weight"));
}

TEST(ExtractModel, FindsTheOnlyModelOfACheckpoint) {
  const Value file = Value::dict({{"epoch", 3}, {"net", linear()}});
  EXPECT_EQ(extract_model(file)->key, "net");
  const Value two = Value::dict({{"ema", linear()}, {"net", trap()}});
  const auto either = extract_model(two);
  ASSERT_FALSE(either);
  EXPECT_EQ(either.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(either.error().message, HasSubstr("'ema', 'net'"));
  const auto chosen = extract_model(two, {.key = "net"});
  ASSERT_TRUE(chosen);
  EXPECT_EQ(chosen->facts.class_name, "model.Net");
}

TEST(ExtractModel, FindsTheOnlyModelAtAnyDepth) {
  const Value deep = Value::dict({{"run", Value::list({1, linear()})}});
  EXPECT_EQ(extract_model(deep)->key, "run.1");
  const auto two = extract_model(
      Value::dict({{"run", Value::list({linear(), trap()})}, {"epoch", 3}}));
  ASSERT_FALSE(two);
  EXPECT_EQ(two.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(two.error().message, HasSubstr("'run.0', 'run.1'"));
}

// A model among hyperparameters is none that was trained.
TEST(ExtractModel, TakesNoModelBesideWeightsUnlessItIsNamed) {
  const Value file = Value::dict(
      {{"state_dict", Value::dict({{"w", weight()}})},
       {"hyper_parameters", Value::dict({{"net", linear()}})}});
  const auto model = extract_model(file);
  ASSERT_FALSE(model);
  EXPECT_THAT(
      model.error().hint,
      HasSubstr("ExtractOptions::key hyper_parameters.net"));
  EXPECT_TRUE(extract_model(file, {.key = "hyper_parameters.net"}));
}

TEST(ExtractModel, SaysWhoseArgumentAModelIs) {
  const Object call{
      .global = "net.rebuild",
      .args = std::make_shared<Value>(Value::tuple({linear()}))};
  const Value file = Value::dict({{"net", call}});
  EXPECT_THAT(extract_model(file).error().hint, HasSubstr("'net.rebuild'"));
  EXPECT_EQ(
      keys_of(extract_model(file, {.key = "net.<args>.0"})->state_dict),
      std::vector<std::string>{"weight"});
}

TEST(ExtractModel, RefusesFilesWithoutAModel) {
  for (const Value& root : {Value::dict({{"w", weight()}}), Value(3)}) {
    const auto model = extract_model(root);
    ASSERT_FALSE(model);
    EXPECT_EQ(model.error().detail, "E_NO_MODEL");
    EXPECT_EQ(model.error().code, ErrorCode::kNotFound);
  }
  EXPECT_EQ(
      extract_model(Value::dict({{"w", weight()}}), {.key = "w"})
          .error()
          .detail,
      "E_NO_MODEL");
  EXPECT_EQ(extract_model(linear(), {.key = "x"}).error().detail, "E_NO_KEY");
}

TEST(ExtractModel, GivesOldNormsTheVersionOfTheirKeys) {
  const std::string name = "torch.nn.modules.batchnorm.BatchNorm2d";
  const Value old_norm =
      module(name, {{"_buffers", Value::dict({{"running_mean", weight()}})}});
  const Value new_norm = module(
      name,
      {{"_buffers", Value::dict({{"num_batches_tracked", None{}}})}});
  EXPECT_EQ(module_version(old_norm), 1);
  EXPECT_EQ(module_version(new_norm), 2);
  EXPECT_EQ(module_version(linear()), 1);
}

TEST(ExtractModel, StopsWhereSharedPartsExpandWithoutEnd) {
  Value level = linear();
  for (int i = 0; i < 40; ++i) {
    level = module(
        "Net",
        {{"_modules", Value::dict({{"a", level}, {"b", level}})}});
  }
  const auto model = extract_model(level);
  ASSERT_FALSE(model);
  EXPECT_EQ(model.error().detail, "E_LIMIT");
}

TEST(ExtractModel, StopsWhereSharedModulesHideTooMuch) {
  Set hidden;
  Dict shared;
  for (std::int64_t i = 0; i < 5000; ++i) {
    hidden.items.emplace_back(i);
  }
  const Value layer =
      module("Layer", {{"_non_persistent_buffers_set", std::move(hidden)}});
  for (std::int64_t i = 0; i < 5000; ++i) {
    shared.items.emplace_back(std::to_string(i), layer);
  }
  const auto model =
      extract_model(module("Net", {{"_modules", std::move(shared)}}));
  ASSERT_FALSE(model);
  EXPECT_EQ(model.error().detail, "E_LIMIT");
}

TEST(ExtractModel, KeepsTheDigestOfTheFile) {
  for (const char* path :
       {"testdata/valid/whole_model.pt",
        "testdata/valid/legacy_model.pt",
        "testdata/valid/legacy_whole_2017.pt",
        "testdata/valid/tar_whole_model.pth"}) {
    const auto file = load(path);
    ASSERT_TRUE(file) << path;
    const auto model = extract_model(file->root);
    ASSERT_TRUE(model) << path;
    EXPECT_EQ(*digest(model->state_dict), *digest(file->root)) << path;
  }
}

} // namespace
} // namespace lockstep::ckpt
