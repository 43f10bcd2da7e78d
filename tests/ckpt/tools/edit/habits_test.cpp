// SPDX-License-Identifier: BSD-3-Clause
//
// What people try first: names without their prefix, files with the arguments
// of a script, weights of another type.
#include <gmock/gmock.h>

#include "lockstep/ckpt/edit.h"
#include "lockstep/ckpt/inspect.h"
#include "lockstep/ckpt/load.h"
#include "lockstep/ckpt/walk.h"
#include "tests/ckpt/value_fixture.h"
#include "tests/support/memory_fs.h"

namespace lockstep::ckpt {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Tensor one_float() {
  return tensor_of<float>(DType::kFloat32, {1}, {1});
}

Value object_of_class(const std::string& name, Value state) {
  return Object{
      .global = name,
      .args = std::make_shared<Value>(Value::tuple({})),
      .state = std::make_shared<Value>(std::move(state))};
}

TEST(Habits, NamesAreFoundBelowAPrefix) {
  const Value root = Value::dict(
      {{"model.fc.weight", one_float()},
       {"model.layer1.0.conv.weight", one_float()}});
  EXPECT_EQ(near_name(root, "fc.weight"), "model.fc.weight");
  EXPECT_EQ(near_name(root, "layer1"), "model.layer1");
  EXPECT_EQ(near_name(root, "layer1.0"), "model.layer1.0");
  EXPECT_EQ(near_name(root, "model.fc.weigth"), "model.fc.weight");
  EXPECT_THAT(
      to_string(find_path(root, "fc.weight").error()),
      HasSubstr("did you mean 'model.fc.weight'?"));
}

TEST(Habits, ThePrefixOfAllKeysIsNamed) {
  const Value root = Value::dict(
      {{"model.fc.weight", one_float()}, {"model.fc.bias", one_float()}});
  EXPECT_THAT(
      to_string(strip_prefix(root, {}).error()),
      HasSubstr(
          "all of them start with 'model.': StripOptions::prefix model."));
  EXPECT_TRUE(strip_prefix(root, {.prefix = "model."}));
  const auto summary = summarize(Checkpoint{.root = root});
  ASSERT_TRUE(summary);
  EXPECT_THAT(summary->hints, testing::Contains(HasSubstr("'model.'")));
  const Value other = Value::dict({{"a.w", one_float()}, {"b.w", one_float()}});
  EXPECT_THAT(
      to_string(strip_prefix(other, {}).error()),
      HasSubstr("lists the keys"));
  EXPECT_TRUE(summarize(Checkpoint{.root = other})->hints.empty());
}

TEST(Habits, NamespacesBecomeDicts) {
  const Value inner =
      object_of_class("types.SimpleNamespace", Value::dict({{"x", 1}}));
  const Value args = object_of_class(
      "argparse.Namespace",
      Value::dict({{"lr", 0.1}, {"more", inner}}));
  const Value root = Value::dict(
      {{"state_dict", Value::dict({{"w", one_float()}})},
       {"args", args},
       {"again", args},
       {"list", Value::list({inner, 3})},
       {"other", object_of_class("my.Config", Value::dict({{"y", 2}}))}});
  const auto plain = plain_namespaces(root);
  ASSERT_TRUE(plain) << to_string(plain.error());
  const Value& made = *plain->find("args");
  EXPECT_EQ(*made.find("lr")->as_float(), 0.1);
  EXPECT_EQ(*made.find("more")->find("x")->as_int(), 1);
  EXPECT_EQ(made.address(), plain->find("again")->address());
  EXPECT_EQ(*plain->find("list")->as_list()->items[0].find("x")->as_int(), 1);
  // What is no namespace stays, and what holds none is the same node.
  EXPECT_NE(plain->find("other")->as_object(), nullptr);
  EXPECT_EQ(
      plain->find("state_dict")->address(),
      root.find("state_dict")->address());
  EXPECT_NE(root.find("args")->as_object(), nullptr);
}

TEST(Habits, NamespacesOfOneDictStayOneDict) {
  const Value more = object_of_class("types.SimpleNamespace", Value::dict({}));
  const Value attributes = Value::dict({{"lr", 0.1}, {"more", more}});
  const Value root = Value::list(
      {object_of_class("argparse.Namespace", attributes),
       object_of_class("argparse.Namespace", attributes)});
  const auto plain = plain_namespaces(root);
  ASSERT_TRUE(plain) << to_string(plain.error());
  const List& made = *plain->as_list();
  EXPECT_NE(made.items[0].find("more")->as_dict(), nullptr);
  EXPECT_EQ(made.items[0].address(), made.items[1].address());
}

TEST(Habits, AllThatCannotBeWrittenIsNamedAtOnce) {
  MemoryFs fs;
  const Value root = Value::dict(
      {{"args",
        object_of_class("argparse.Namespace", Value::dict({{"lr", 1}}))},
       {"w", one_float()},
       {"deep",
        Value::list(
            {1, object_of_class("my.Config", Value::dict({{"y", 2}}))})},
       {"fine", 3}});
  for (const char* format : {"pt", "pt-legacy"}) {
    const Status status = save("f", root, {.format = format}, fs);
    ASSERT_FALSE(status);
    const std::string text = to_string(status.error());
    EXPECT_EQ(status.error().detail, "E_NOT_SAFE");
    EXPECT_THAT(text, HasSubstr("'argparse.Namespace'"));
    EXPECT_THAT(text, HasSubstr("'my.Config'"));
    EXPECT_THAT(text, HasSubstr("plain_namespaces()"));
    EXPECT_FALSE(fs.stat("f"));
  }
  const Value whole =
      object_of_class("my.Net", Value::dict({{"_modules", Value::dict({})}}));
  EXPECT_THAT(
      to_string(save("f", Value::dict({{"model", whole}}), {}, fs).error()),
      HasSubstr("extract-model"));
  Value many = Value::dict({});
  for (int i = 0; i < 20; ++i) {
    many.set(i, object_of_class("my.Config", Value::dict({})));
  }
  EXPECT_THAT(to_string(save("f", many, {}, fs).error()), HasSubstr("12 more"));
}

TEST(Habits, ElementTypesMayBeIgnored) {
  const auto doubles = [](double value) {
    return Value::dict(
        {{"w", tensor_of<double>(DType::kFloat64, {value}, {1})}});
  };
  const Value floats = Value::dict({{"w", one_float()}});
  EXPECT_EQ(diff(floats, doubles(1))->rows.at(0).kind, DiffKind::kDType);
  EXPECT_TRUE(diff(floats, doubles(1), {.ignore_dtype = true})->rows.empty());
  EXPECT_EQ(
      diff(floats, doubles(2), {.ignore_dtype = true})->rows.at(0).kind,
      DiffKind::kValues);
}

} // namespace
} // namespace lockstep::ckpt
