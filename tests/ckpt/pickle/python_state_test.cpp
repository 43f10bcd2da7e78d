// SPDX-License-Identifier: BSD-3-Clause
//
// State that is set on what has some: Python keeps both. That tensors in them
// are seen is in tests/ckpt/tools/inspect/tensor_slots_test.cpp.
#include <functional>

#include <gmock/gmock.h>

#include "lockstep/ckpt/load.h"
#include "lockstep/ckpt/print.h"
#include "tests/ckpt/bad_inputs/builders.h"

namespace lockstep::ckpt {
namespace {

using Put = std::function<void(Pickle&)>;

Put entry(std::string_view key, std::int64_t value) {
  return [key, value](Pickle& p) { p.op('}').text(key).int8(value).op('s'); };
}

void put_list(Pickle& p) {
  p.op(']').int8(1).op('a');
}

Put slots_of(const Put& attributes, const Put& slots) {
  return [=](Pickle& p) {
    attributes(p);
    slots(p);
    p.tuple(2);
  };
}

void put_none(Pickle& p) {
  p.op('N');
}

Result<Value> loaded(const Put& put) {
  Pickle pickle;
  put(pickle);
  pickle.stop();
  const std::string file = bad_inputs::checkpoint(pickle.bytes());
  auto loaded = load(make_source(as_byte_span(file)), "state.pt");
  return loaded ? Result(loaded->root) : Result<Value>(loaded.error());
}

// The state as JSON, or the detail of the error.
std::string answer(const Result<Value>& root) {
  if (!root) {
    return root.error().detail;
  }
  const Object* object = root->as_object();
  const auto& state =
      object != nullptr ? object->state : root->as_tensor()->attributes;
  return to_json(*state)->dump();
}

std::string built(const Put& first, const Put& second) {
  return answer(loaded([&](Pickle& p) {
    p.global("rl", "Step").op(')').op(0x81);
    first(p);
    p.op('b');
    second(p);
    p.op('b');
  }));
}

// `_rebuild_from_type_v2` of `function` with `args`.
Put typed(const Put& function, const Put& args, const Put& state) {
  return [=](Pickle& p) {
    function(p);
    p.global("torch", "Tensor");
    args(p);
    state(p);
  };
}

void put_type_function(Pickle& p) {
  p.global("torch._tensor", "_rebuild_from_type_v2");
}

Put in_tuple(const Put& items) {
  return [=](Pickle& p) {
    p.mark();
    items(p);
    p.op('t');
  };
}

std::string typed_twice(const Put& first, const Put& second, int levels = 2) {
  Put items = typed(
      [](Pickle& p) { p.global("torch._utils", "_rebuild_tensor_v2"); },
      [](Pickle& p) {
        p.mark().storage("FloatStorage", "0", 4).int8(0);
        bad_inputs::put_ints(p, {4});
        bad_inputs::put_ints(p, {1});
        p.op(0x89).hooks().op('t');
      },
      first);
  for (int level = 1; level < levels; ++level) {
    items = typed(put_type_function, in_tuple(items), second);
  }
  return answer(loaded([&](Pickle& p) {
    put_type_function(p);
    in_tuple(items)(p);
    p.op('R');
  }));
}

struct StateRow {
  std::string_view name = {};
  Put first = {};
  Put second = {};
  std::string_view expected = {};
};

const std::vector<StateRow>& state_rows() {
  static const auto& all = *new std::vector<StateRow>{
      {"both", entry("a", 1), entry("b", 2), R"({"a":1,"b":2})"},
      {"the later of one name", entry("a", 1), entry("a", 2), R"({"a":2})"},
      {"none first", put_none, entry("b", 2), R"({"b":2})"},
      {"none second", entry("a", 1), put_none, R"({"a":1})"},
      {"slots second",
       entry("a", 1),
       slots_of(put_none, entry("s", 2)),
       R"([{"a":1},{"s":2}])"},
      {"slots twice",
       slots_of(entry("a", 1), entry("s", 2)),
       slots_of(entry("b", 3), entry("t", 4)),
       R"([{"a":1,"b":3},{"s":2,"t":4}])"},
      {"a list first", put_list, entry("b", 2), "E_PICKLE_TYPE"},
      {"a list second", entry("a", 1), put_list, "E_PICKLE_TYPE"},
  };
  return all;
}

TEST(PythonState, IsJoinedByASecondBuild) {
  for (const StateRow& row : state_rows()) {
    EXPECT_EQ(built(row.first, row.second), row.expected) << row.name;
  }
}

TEST(PythonState, IsJoinedOnATensorThatHasSome) {
  for (const StateRow& row : state_rows()) {
    EXPECT_EQ(typed_twice(row.first, row.second), row.expected) << row.name;
  }
  EXPECT_EQ(typed_twice(entry("a", 1), entry("b", 2), 3), "E_PICKLE_TYPE");
}

} // namespace
} // namespace lockstep::ckpt
