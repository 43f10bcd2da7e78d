// SPDX-License-Identifier: BSD-3-Clause
#include <chrono>

#include <gmock/gmock.h>

#include "lockstep/ckpt/walk.h"
#include "tests/ckpt/value_fixture.h"

namespace lockstep::ckpt {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Names = std::vector<std::string>;

std::vector<std::string> members_of(const Value& state) {
  std::vector<std::string> names;
  const Status status = for_each_member(
      state,
      [&names](MemberKind kind, const Value& key, const Value& /*value*/) {
        names.push_back(
            std::to_string(static_cast<int>(kind)) + " " + key_text(key));
        return Status();
      });
  EXPECT_TRUE(status) << to_string(status.error());
  return names;
}

// Else all bytes would be one key.
TEST(KeyText, IsWhatPythonWrites) {
  struct Row {
    Value key = {};
    std::string text = {};
  };
  for (const Row& row :
       {Row{Bytes{"w"}, "b'w'"},
        Row{Bytes{""}, "b''"},
        Row{Bytes{std::string("\0\n\\\xff", 4)}, R"(b'\x00\n\\\xff')"},
        Row{Bytes{"it's"}, R"(b"it's")"},
        Row{Bytes{"'\""}, R"(b'\'"')"},
        Row{Value::tuple({Bytes{"a"}, "b", 1}), "(b'a', 'b', 1)"},
        Row{0.5, "0.5"},
        Row{true, "True"},
        Row{None{}, "None"},
        Row{DTypeValue{DType::kFloat32}, "torch.float32"},
        Row{Set{}, "<set>"}}) {
    EXPECT_EQ(key_text(row.key), row.text);
  }
}

TEST(ForEachMember, LeavesOutWhatAStateDictDoes) {
  const Value state = Value::dict({
      {"_modules", Value::dict({{"fc", 1}, {"none", None{}}})},
      {"_buffers",
       Value::dict(
           {{"kept", floats({1})},
            {"hidden", floats({2})},
            {7, floats({3})},
            {"none", None{}}})},
      {"_parameters", Value::dict({{"hidden", floats({4})}, {"none", None{}}})},
      {"_non_persistent_buffers_set", Set{{"hidden", "fc", "", 7}}},
  });
  EXPECT_THAT(
      members_of(state),
      ElementsAre("0 hidden", "1 kept", "1 7", "2 fc"));
}

TEST(ForEachMember, TakesStatesOfAnyShape) {
  EXPECT_THAT(members_of(Value(1)), ElementsAre());
  EXPECT_THAT(
      members_of(Value::dict(
          {{"_buffers", Value::list({1})},
           {"_parameters", Value::dict({{"w", floats({1})}})},
           {"_non_persistent_buffers_set", Value::list({"w"})}})),
      ElementsAre("0 w"));
}

TEST(ForEachMember, StopsAtTheFirstError) {
  int visits = 0;
  const Status status = for_each_member(
      Value::dict({{"_parameters", Value::dict({{"a", 1}, {"b", 2}})}}),
      [&visits](MemberKind, const Value&, const Value&) -> Status {
        ++visits;
        return Error{.code = ErrorCode::kCorrupt, .message = "enough"};
      });
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message, "enough");
  EXPECT_EQ(visits, 1);
}

// Notes the name of everything, or stops at texts that say so.
class Noter final : public ValueWalk {
 public:
  explicit Noter(const WalkBounds& bounds = {}) : ValueWalk(bounds) {}
  Names names;

 private:
  Status visit(const Value& value) override {
    names.push_back(name());
    if (value.text() == "stop") {
      return Error{.code = ErrorCode::kCorrupt, .message = "enough"};
    }
    return value.text() == "below" ? below(7, Value("inner")) : enter(value);
  }
};

Names names_below(const Value& root) {
  Noter noter;
  const Status status = noter.walk(root);
  EXPECT_TRUE(status) << to_string(status.error());
  return noter.names;
}

Value object(Value state, std::vector<Item> items = {}) {
  return Object{
      .global = "m.C",
      .args = std::make_shared<Value>(Value::tuple({"not visited"})),
      .state = std::make_shared<Value>(std::move(state)),
      .items = std::move(items)};
}

TEST(ValueWalk, NamesWhatIsInContainers) {
  EXPECT_THAT(names_below(1), ElementsAre(""));
  EXPECT_THAT(
      names_below(
          Value::dict({{"a", Value::list({1, Value::tuple({2})})}, {3, 4}})),
      ElementsAre("", "a", "a.0", "a.1", "a.1.0", "3"));
  EXPECT_THAT(
      names_below(Value::dict({{"", Value::dict({{"x", 1}})}})),
      ElementsAre("", "", "x"));
  EXPECT_THAT(names_below(Set{{1, 2}}), ElementsAre(""));
}

TEST(ValueWalk, EntersObjectsAndModules) {
  EXPECT_THAT(
      names_below(
          Value::dict({{"o", object(Value::dict({{"s", 1}}), {{"i", 2}})}})),
      ElementsAre("", "o", "o", "o.s", "o.i"));
  EXPECT_THAT(
      names_below(object(Value::dict(
          {{"training", true},
           {"_modules", Value::dict({{"fc", 1}})},
           {"_parameters", Value::dict({{"w", 2}})}}))),
      ElementsAre("", "w", "fc"));
}

TEST(ValueWalk, GoesOnWhereTheVisitorSays) {
  EXPECT_THAT(
      names_below(Value::dict({{"a", "below"}, {"b", 1}})),
      ElementsAre("", "a", "a.7", "b"));
}

TEST(ValueWalk, EndsWithTheErrorOfTheVisitor) {
  Noter noter;
  const Status status = noter.walk(Value::list({1, "stop", 3}));
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message, "enough");
  EXPECT_THAT(noter.names, ElementsAre("", "0", "1"));
}

TEST(ValueWalk, IsBoundedInDepthAndVisits) {
  const Value root =
      Value::dict({{"a", Value::list({1})}, {"b", Value::list({2})}});
  EXPECT_TRUE(Noter({.max_depth = 3}).walk(root));
  const Status deep = Noter({.max_depth = 2, .op = "ckpt.x"}).walk(root);
  ASSERT_FALSE(deep);
  EXPECT_EQ(deep.error().detail, "E_DEPTH");
  EXPECT_EQ(deep.error().code, ErrorCode::kUnsafe);
  EXPECT_EQ(deep.error().op, "ckpt.x");
  EXPECT_THAT(deep.error().message, HasSubstr("'a.0'"));
  EXPECT_TRUE(Noter({.max_visits = 5}).walk(root));
  const Status many = Noter({.max_visits = 4}).walk(root);
  ASSERT_FALSE(many);
  EXPECT_EQ(many.error().detail, "E_LIMIT");
}

// Names that are kept take memory: long ones count more.
TEST(ValueWalk, CountsLongNamesSeveralTimes) {
  const std::string key(2 * kVisitBytes, 'k');
  const Value root = Value::dict({{key, Value::list({1, 2})}});
  const std::uint64_t visits = 1 + 3 * (1 + 2);
  EXPECT_TRUE(Noter({.max_visits = visits}).walk(root));
  const Status many = Noter({.max_visits = visits - 1}).walk(root);
  ASSERT_FALSE(many);
  EXPECT_EQ(many.error().detail, "E_LIMIT");
}

// One long key at every level: the name grows with the square of the depth.
TEST(ValueWalk, BoundsTheNamesOfKeysInKeys) {
  const Value key(std::string(1'000'000, 'k'));
  Value root = floats({1});
  for (int i = 0; i < 100; ++i) {
    root = Value::dict({{key, root}});
  }
  const Status status =
      for_each_tensor(root, [](const std::string&, const Tensor&) {});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().detail, "E_LIMIT");
}

// Notes the paths of numbers.
class Paths final : public ValueWalk {
 public:
  std::vector<std::vector<PathStep>> paths;

 private:
  Status visit(const Value& value) override {
    if (value.as_int() != nullptr) {
      paths.push_back(path());
    }
    return enter(value);
  }
};

TEST(ValueWalk, KnowsItsPathAsStepsToo) {
  using Path = std::vector<PathStep>;
  Paths walk;
  EXPECT_TRUE(walk.walk(Value::dict(
      {{"", Value::dict({{"", 1}, {"x.y", Value::list({2, 3})}})},
       {7, Value::tuple({4})},
       {"end", 5}})));
  const std::int64_t first = 0;
  const std::int64_t second = 1;
  EXPECT_THAT(
      walk.paths,
      ElementsAre(
          Path{"", ""},
          Path{"", "x.y", first},
          Path{"", "x.y", second},
          Path{"7", first},
          Path{"end"}));
}

// Deeper than any reader goes: a tree of the program's own.
TEST(ForEachTensor, StopsBeforeTheStackEnds) {
  Value tree = floats({1});
  for (int i = 0; i < 200'000; ++i) {
    tree = i % 2 == 0 ? Value::list({tree}) : object(tree);
  }
  const Status status =
      for_each_tensor(tree, [](const std::string&, const Tensor&) {});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().detail, "E_DEPTH");
}

TEST(ForEachTensor, GoesAsDeepAsItsBound) {
  Value tree = floats({1});
  for (std::uint64_t i = 1; i < kMaxTreeDepth; ++i) {
    tree = i % 2 == 0 ? object(tree) : Value::dict({{"", tree}});
  }
  Names names;
  EXPECT_TRUE(for_each_tensor(
      tree,
      [&](const std::string& name, const Tensor&) { names.push_back(name); }));
  EXPECT_THAT(names, ElementsAre(""));
}

// A list that reaches `value` this many times.
Value repeated(const Value& value, std::size_t times) {
  List list;
  list.items.assign(times, value);
  return list;
}

// What a state_dict leaves out takes time as well, under each name.
TEST(ForEachTensor, CountsWhatAModuleHidesEachTime) {
  Set hidden;
  for (std::int64_t i = 0; i < 1000; ++i) {
    hidden.items.emplace_back(i);
  }
  const Value state = Value::dict(
      {{"_modules", Value::dict({})},
       {"_non_persistent_buffers_set", std::move(hidden)}});
  EXPECT_EQ(member_cost(state), 1004U); // two keys with their values
  const auto walk = [&state](std::size_t times) {
    // The state is looked through once more for what it hides, and so are the
    // arguments: noted, their tuple, what is in it.
    constexpr std::uint64_t kMaxVisits = 1 + 4 + 10 * 1005 + 4 + 3;
    const Status status = for_each_tensor(
        repeated(object(state), times),
        [](const std::string&, const Tensor&) {},
        {.max_visits = kMaxVisits});
    return status ? "" : status.error().detail;
  };
  EXPECT_EQ(walk(10), "");
  EXPECT_EQ(walk(11), "E_LIMIT");
}

// Looking through the state at each of its names would take minutes.
TEST(ForEachTensor, LooksAtTheStateOfASharedObjectOnce) {
  constexpr std::int64_t kMany = 100'000;
  Dict state;
  for (std::int64_t i = 0; i < kMany; ++i) {
    state.items.emplace_back(i, i);
  }
  state.items.emplace_back("w", floats({1}));
  const Value root = repeated(object(std::move(state)), kMany);
  Names names;
  // Each name, the state's keys and values twice, its values by name.
  constexpr std::uint64_t kMaxVisits = kMany + 4 * kMany + kMany + 12;
  EXPECT_TRUE(for_each_tensor(
      root,
      [&](const std::string& name, const Tensor&) { names.push_back(name); },
      {.max_visits = kMaxVisits}));
  EXPECT_THAT(names, ElementsAre("0.w"));
}

// Each object is asked whether it is a module.
TEST(ValueWalk, CountsAStateForEachObjectThatSharesIt) {
  const auto state = std::make_shared<Value>(List{});
  for (std::int64_t i = 0; i < 100; ++i) {
    state->as_list()->items.emplace_back(i);
  }
  const auto status = [&state](std::size_t count) {
    List objects;
    for (std::size_t i = 0; i < count; ++i) {
      objects.items.emplace_back(Object{.global = "m.C", .state = state});
    }
    return Noter({.max_visits = 1000}).walk(Value(std::move(objects)));
  };
  EXPECT_TRUE(status(1));
  const Status many = status(9);
  ASSERT_FALSE(many);
  EXPECT_EQ(many.error().detail, "E_LIMIT");
}

TEST(ForEachTensor, VisitsASharedModuleUnderEachName) {
  const Value module = object(Value::dict(
      {{"_modules", Value::dict({})},
       {"_parameters", Value::dict({{"w", floats({1})}})}}));
  Names names;
  EXPECT_TRUE(for_each_tensor(
      repeated(module, 2),
      [&](const std::string& name, const Tensor&) { names.push_back(name); }));
  EXPECT_THAT(names, ElementsAre("0.w", "1.w"));
}

TEST(NodeWalk, LooksAtSharedNodesOnceParentsFirst) {
  const Value shared = Value::list({"leaf"});
  const Value root = Value::tuple({shared, 1, Set{{shared}}, Value::dict({})});
  Names types;
  NodeWalk walk;
  const auto note = [&types](const Value& node) {
    types.emplace_back(node.type_name());
    return true;
  };
  walk.run(root, note);
  EXPECT_THAT(types, ElementsAre("tuple", "list", "str", "set", "dict"));
  types.clear();
  walk.run(root, note);
  walk.run(Value(1), note);
  EXPECT_THAT(types, ElementsAre());
}

TEST(NodeWalk, LeavesOutWhatItIsTold) {
  const Value known = Value::list({"below"});
  Names types;
  NodeWalk walk;
  walk.leave_out(known);
  walk.run(Value::tuple({known, Value::list({"x"})}), [&](const Value& node) {
    types.emplace_back(node.type_name());
    return node.as_list() == nullptr;
  });
  EXPECT_THAT(types, ElementsAre("tuple", "list"));
}

TEST(NodeWalk, NeedsNoStack) {
  Value tree = 1;
  for (int i = 0; i < 200'000; ++i) {
    tree = Value::list({tree});
  }
  std::size_t nodes = 0;
  NodeWalk().run(tree, [&nodes](const Value& /*node*/) {
    ++nodes;
    return true;
  });
  EXPECT_EQ(nodes, 200'000U);
}

} // namespace
} // namespace lockstep::ckpt
