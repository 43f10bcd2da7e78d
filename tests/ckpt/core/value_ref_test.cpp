// SPDX-License-Identifier: BSD-3-Clause
//
// Every accessor of a value x every type of value: it gives what is there, and
// what is not there is an error in words, for a value with a name and for one
// that ends with the statement.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include <gmock/gmock.h>

#include "lockstep/base/error.h"
#include "lockstep/ckpt/load.h"
#include "lockstep/ckpt/print.h"
#include "lockstep/ckpt/value.h"
#include "lockstep/ckpt/value_parts.h"

namespace lockstep::ckpt {
namespace {

using testing::HasSubstr;
using Type = Value::Type;

std::vector<Value> one_of_each() {
  return {
      None(),
      true,
      7,
      2.5,
      DTypeValue{DType::kFloat16},
      BigInt{std::string(9, '\1')},
      "text",
      Bytes{"ab"},
      Complex{1, 2},
      Size{{2, 3}},
      Device{"cuda", 1},
      std::make_shared<Storage>(),
      Tensor{},
      List{{1}},
      Tuple{{1, 2}},
      Set{{1}},
      Value::dict({{"a", 1}}),
      Object{.global = "m.C"}};
}

// What an accessor did: gave something, or the error's text.
std::string outcome(const std::function<void()>& use) {
  try {
    use();
    return "given";
  } catch (const Exception& e) {
    return std::string(
               e.error().code == ErrorCode::kInvalidArgument ? "" : "?") +
           e.error().message;
  }
}

// An accessor, of a value with a name and of a temporary one.
struct Accessor {
  const char* wanted;
  std::vector<Type> types;
  std::function<bool(const Value&)> has;
  std::function<void(const Value&)> use;
  std::function<bool(const Value&)> has_of_temporary;
  std::function<void(const Value&)> use_of_temporary;
};

#define ACCESSOR(name, wanted, ...)                                        \
  Accessor {                                                               \
    wanted, {__VA_ARGS__},                                                 \
        [](const Value& v) { return static_cast<bool>(v.name()); },        \
        [](const Value& v) { (void)*v.name(); },                           \
        [](const Value& v) { return static_cast<bool>(Value(v).name()); }, \
        [](const Value& v) { (void)*Value(v).name(); }                     \
  }

std::vector<Accessor> accessors() {
  return {
      ACCESSOR(as_bool, "bool", Type::kBool),
      ACCESSOR(as_int, "int", Type::kInt),
      ACCESSOR(as_float, "float", Type::kFloat, Type::kInt, Type::kBigInt),
      ACCESSOR(number, "float", Type::kFloat, Type::kInt, Type::kBigInt),
      ACCESSOR(as_dtype, "dtype", Type::kDType),
      ACCESSOR(as_big_int, "int", Type::kBigInt),
      ACCESSOR(as_string, "str", Type::kString),
      ACCESSOR(as_bytes, "bytes", Type::kBytes),
      ACCESSOR(as_complex, "complex", Type::kComplex),
      ACCESSOR(as_size, "Size", Type::kSize),
      ACCESSOR(as_device, "device", Type::kDevice),
      ACCESSOR(as_storage, "storage", Type::kStorage),
      ACCESSOR(as_tensor, "Tensor", Type::kTensor),
      ACCESSOR(as_list, "list", Type::kList),
      ACCESSOR(as_tuple, "tuple", Type::kTuple),
      ACCESSOR(as_set, "set", Type::kSet),
      ACCESSOR(as_dict, "dict", Type::kDict),
      ACCESSOR(as_object, "object", Type::kObject),
      ACCESSOR(elements, "list", Type::kList, Type::kTuple)};
}
#undef ACCESSOR

TEST(ValueAccessors, GiveWhatIsThereAndSayWhatIsNot) {
  for (const Accessor& accessor : accessors()) {
    for (const Value& value : one_of_each()) {
      const bool is_there = std::ranges::find(accessor.types, value.type()) !=
                            accessor.types.end();
      const std::string expected =
          is_there
              ? "given"
              : "expected a value of type " + std::string(accessor.wanted) +
                    ", got " + std::string(value.type_name());
      SCOPED_TRACE(expected);
      EXPECT_EQ(accessor.has(value), is_there);
      EXPECT_EQ(accessor.has_of_temporary(value), is_there);
      EXPECT_EQ(outcome([&] { accessor.use(value); }), expected);
      EXPECT_EQ(outcome([&] { accessor.use_of_temporary(value); }), expected);
    }
  }
}

TEST(ValueAccessors, ThatFindSayWhatIsMissing) {
  for (const Value& value : one_of_each()) {
    const bool is_dict = value.as_dict() != nullptr;
    EXPECT_EQ(value.find("a") != nullptr, is_dict);
    EXPECT_EQ(value.find(1), nullptr);
    EXPECT_EQ(Value(value).find(1), nullptr);
    const std::string missing = is_dict
                                    ? "?the dict has no such key"
                                    : "?expected a dict with the key, got " +
                                          std::string(value.type_name());
    EXPECT_EQ(outcome([&] { (void)value.find("b")->type(); }), missing);
    EXPECT_EQ(outcome([&] { (void)(*Value(value).find(1)).type(); }), missing);
    EXPECT_EQ(value.text(), value.type() == Type::kString ? "text" : "");
  }
}

TEST(ValueAccessors, OfAnIntGiveAFloatAsPythonReckons) {
  EXPECT_EQ(*Value(3).as_float(), 3.0);
  EXPECT_EQ(
      *Value(std::numeric_limits<std::int64_t>::max()).as_float(),
      0x1p63);
  const auto of = [](std::string bytes) {
    return Value(BigInt{std::move(bytes)}).as_float();
  };
  // float(n) of 2**70, -(2**70), 2**64 + 2**11, 2**64 + 2**11 + 1, 10**30.
  EXPECT_EQ(*of(std::string(8, '\0') + "\x40"), 0x1p70);
  EXPECT_EQ(*of(std::string(8, '\0') + "\xc0"), -0x1p70);
  EXPECT_EQ(*of(std::string("\0\x08\0\0\0\0\0\0\1", 9)), 0x1p64);
  EXPECT_EQ(*of(std::string("\1\x08\0\0\0\0\0\0\1", 9)), 0x1.0000000000001p64);
  EXPECT_EQ(
      *of(std::string("\0\0\0\x40\xea\xed\x74\x46\xd0\x9c\x2c\x9f\x0c", 13)),
      1e30);
  // 2**1024 - 1 and 2**1024 round beyond the largest; 2**1023 does not.
  EXPECT_EQ(of(std::string(128, '\xff') + '\0'), nullptr);
  EXPECT_EQ(of(std::string(128, '\0') + '\1'), nullptr);
  EXPECT_EQ(*of(std::string(127, '\0') + "\x80" + '\0'), 0x1p1023);
}

TEST(ValueAccessors, OfATemporaryGiveWhatOutlivesIt) {
  const auto read = [] {
    return Value::dict({{"a", Value::list({1, 2})}, {"b", "text"}});
  };
  std::string keys;
  for (const auto& [key, value] : (*read().as_dict()).items) {
    keys += key.text();
  }
  EXPECT_EQ(keys, "ab");
  const auto list = (*read().find("a")).as_list();
  EXPECT_EQ(list->items.size(), 2U);
  const auto text = (*read().find("b")).text();
  EXPECT_EQ(text, "text");
  // The nodes are those of the tree.
  const Value whole = read();
  const auto copy = Value(whole).as_dict();
  EXPECT_EQ(copy->items[0].second.address(), whole.find("a")->address());
}

TEST(ValueSet, ReplacesTheEntryWhoseKeyIsEqualInPython) {
  const double nan = std::nan("");
  const std::vector<std::vector<Value>> equal{
      {None()},
      {1, 1.0, true},
      {0, false, 0.0, -0.0},
      {2.5},
      {std::int64_t{1} << 53, 0x1p53},
      {"1"},
      {Bytes{"1"}},
      {BigInt{std::string(9, '\1')}},
      {Value::tuple({1, "a"}), Value::tuple({1.0, "a"})},
      {Value::tuple({})},
      {std::numeric_limits<double>::infinity()}};
  Value dict = Value::dict({});
  for (std::size_t i = 0; i < equal.size(); ++i) {
    for (const Value& key : equal[i]) {
      dict.set(key, static_cast<std::int64_t>(i));
      EXPECT_EQ(dict.as_dict()->items.size(), i + 1) << to_text(key);
    }
  }
  for (std::size_t i = 0; i < equal.size(); ++i) {
    const Item& item = dict.as_dict()->items[i];
    EXPECT_EQ(to_text(item.first), to_text(equal[i][0])); // the first key stays
    EXPECT_EQ(*item.second.as_int(), static_cast<std::int64_t>(i));
  }
  const std::int64_t odd = (std::int64_t{1} << 53) + 1; // not the double
  for (const Value& other : {Value(nan), Value(nan), Value(odd)}) {
    const std::size_t before = dict.as_dict()->items.size();
    dict.set(other, 0);
    EXPECT_EQ(dict.as_dict()->items.size(), before + 1) << to_text(other);
  }
}

TEST(ValueSet, OfWhatIsNoDictIsAnError) {
  Value list = Value::list({});
  EXPECT_EQ(
      outcome([&] { list.set("a", 1); }),
      "expected a value of type dict, got list");
}

TEST(Result, WithoutAValueThrowsItsError) {
  const auto file = load("/nowhere/m.pt");
  ASSERT_FALSE(file);
  EXPECT_THAT(
      outcome([&] { (void)file->root.type(); }),
      HasSubstr("No such file"));
  EXPECT_THAT(outcome([&] { (void)*file; }), HasSubstr("No such file"));
  EXPECT_THAT(
      outcome([] { (void)(*load("/nowhere/m.pt")).root; }),
      HasSubstr("No such file"));
}

} // namespace
} // namespace lockstep::ckpt
