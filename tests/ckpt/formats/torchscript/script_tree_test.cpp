// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/formats/torchscript/script_tree.h"

#include <gmock/gmock.h>

#include "lockstep/ckpt/core/budget.h"
#include "lockstep/ckpt/print.h"
#include "lockstep/ckpt/walk.h"
#include "tests/ckpt/pickle/pickle_fixture.h"
#include "tests/ckpt/value_fixture.h"

namespace lockstep::ckpt {
namespace {

Value object(const char* name, std::initializer_list<Item> items) {
  return Object{
      .global = name,
      .args = std::make_shared<Value>(Tuple{}),
      .state = std::make_shared<Value>(Value::dict(items))};
}

Value one() {
  return tensor_of<float>(DType::kFloat32, {1}, {1});
}

TEST(ScriptTree, KnowsItsContainers) {
  using enum ScriptContainer;
  EXPECT_EQ(script_container("__torch__.Module"), kModule);
  EXPECT_EQ(script_container("__torch__.___torch_mangle_12.Module"), kModule);
  EXPECT_EQ(script_container("__torch__.LockstepList"), kList);
  EXPECT_EQ(script_container("__torch__.Foo"), kNone);
  EXPECT_EQ(script_container("__torch__.___torch_mangle_.Module"), kNone);
  EXPECT_EQ(script_container("Module"), kNone);
}

TEST(ScriptTree, KnowsWhatLibTorchResolves) {
  EXPECT_TRUE(is_script_name("__torch__.___torch_mangle_3.Net"));
  EXPECT_TRUE(is_script_name("torch.jit._pickle.build_intlist"));
  EXPECT_FALSE(is_script_name("__torch__"));
  EXPECT_FALSE(is_script_name("torch.jit.load"));
}

TEST(ScriptTree, JoinsNamesOfModulesThatHoldTensorsAlone) {
  const Value root = object(
      "__torch__.Module",
      {{"w", one()},
       {"fc",
        object("__torch__.___torch_mangle_0.Module", {{"weight", one()}})}});
  const auto plain = plain_tree(root);
  ASSERT_TRUE(plain);
  EXPECT_EQ(
      to_text(*plain),
      "OrderedDict({\n  'w': tensor(float32 [1]),\n"
      "  'fc.weight': tensor(float32 [1]),\n})");
}

TEST(ScriptTree, KeepsNestingWhereOtherValuesAre) {
  const Value root = object(
      "__torch__.Module",
      {{"step", 3}, {"fc", object("__torch__.Module", {{"w", one()}})}});
  EXPECT_EQ(
      to_text(*plain_tree(root)),
      "{\n  'step': 3,\n  'fc': OrderedDict({\n"
      "    'w': tensor(float32 [1]),\n  }),\n}");
}

TEST(ScriptTree, KeepsClassesOfPrograms) {
  const Value root = object("__torch__.Net", {{"w", one()}});
  EXPECT_EQ((*(*plain_tree(root)).as_object()).global, "__torch__.Net");
  const Value broken = object("__torch__.Module", {{3, one()}});
  EXPECT_NE((*plain_tree(broken)).as_object(), nullptr);
}

TEST(ScriptTree, ProgramsFlattenToTheirTensors) {
  const Value root = object(
      "__torch__.Net",
      {{"fc", object("__torch__.Linear", {{"weight", one()}})}});
  const auto flat = flatten(root);
  ASSERT_TRUE(flat) << to_string(flat.error());
  ASSERT_EQ(flat->tensors.size(), 1U);
  EXPECT_EQ(flat->tensors[0].name, "fc.weight");
}

TEST(ScriptTree, LimitsWhatSharedModulesExpandTo) {
  Value node = object("__torch__.Module", {{"w", one()}});
  for (int i = 0; i < 40; ++i) {
    node = object("__torch__.Module", {{"a", node}, {"b", node}});
  }
  const auto plain = plain_tree(node);
  ASSERT_FALSE(plain);
  EXPECT_EQ(plain.error().detail, "E_LIMIT");
}

TEST(ScriptTree, LooksAtADictOnceHoweverManyModulesShareIt) {
  Dict tensors{.kind = Dict::Kind::kOrderedDict};
  for (int i = 0; i < 1000; ++i) {
    tensors.items.emplace_back(std::to_string(i), one());
  }
  const Value shared = std::move(tensors);
  Dict state;
  for (int i = 0; i < 1000; ++i) {
    state.items.emplace_back(std::to_string(i), shared);
  }
  state.items.emplace_back("step", 3); // so that nothing is joined
  const Value root = Object{
      .global = "__torch__.Module",
      .state = std::make_shared<Value>(std::move(state))};
  const Limits limits = counting(Limits{}, 0);
  const auto plain = plain_tree(root, limits);
  ASSERT_TRUE(plain) << to_string(plain.error());
  EXPECT_EQ(plain->as_dict()->items.size(), 1001U);
  EXPECT_GE(limits.budget->steps(), 2000U);
  EXPECT_LT(limits.budget->steps(), 4000U);
}

// `count` objects of one state of 100 entries, and `last`.
Value sharers(std::size_t count, const Value& last) {
  Dict state;
  for (int i = 0; i < 100; ++i) {
    state.items.emplace_back(std::to_string(i), i);
  }
  state.items.emplace_back(last, 0);
  const auto shared = std::make_shared<Value>(std::move(state));
  Dict modules;
  for (std::size_t i = 0; i < count; ++i) {
    modules.items.emplace_back(
        std::to_string(i),
        Object{.global = "__torch__.Module", .state = shared});
  }
  return Object{
      .global = "__torch__.Module",
      .state = std::make_shared<Value>(std::move(modules))};
}

std::string detail_of_tree(const Value& root, const Limits& limits) {
  const auto plain = plain_tree(root, limits);
  return plain ? "" : plain.error().detail;
}

TEST(ScriptTree, CountsAStateForEachObjectThatSharesIt) {
  Limits made;
  made.max_made_bytes = 10'000;
  EXPECT_EQ(detail_of_tree(sharers(1, "z"), made), "");
  EXPECT_EQ(detail_of_tree(sharers(100, "z"), made), "E_LIMIT");
  Limits steps;
  steps.max_steps = 1000;
  EXPECT_EQ(detail_of_tree(sharers(1, 7), steps), "");
  EXPECT_EQ(detail_of_tree(sharers(100, 7), steps), "E_LIMIT");
}

TEST(ScriptTree, TakesTypesOffContainers) {
  const auto tagged = [](const char* name, int arguments) {
    Pickle pickle;
    pickle.global("torch.jit._pickle", name).op(']').mark().int4(7).op('e');
    if (arguments == 2) {
      pickle.text("List[int]");
    }
    return read(pickle.tuple(arguments).op('R').stop());
  };
  for (const char* name : {"build_intlist", "build_tensorlist"}) {
    const auto list = tagged(name, 1);
    ASSERT_TRUE(list) << name;
    ASSERT_NE(list->root.as_list(), nullptr) << name;
    EXPECT_EQ(list->root.as_list()->items.size(), 1U);
  }
  ASSERT_NE(tagged("restore_type_tag", 2)->root.as_list(), nullptr);
  EXPECT_NE(tagged("restore_type_tag", 1)->root.as_object(), nullptr);
}

} // namespace
} // namespace lockstep::ckpt
