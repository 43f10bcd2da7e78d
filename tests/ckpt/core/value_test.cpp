// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/value.h"

#include <array>
#include <cmath>
#include <type_traits>

#include <gtest/gtest.h>

#include "lockstep/ckpt/print.h"

namespace lockstep::ckpt {
namespace {

// A pointer converts to bool; as a value it would silently be True.
static_assert(std::is_constructible_v<Value, bool>);
static_assert(std::is_convertible_v<bool, Value>);
static_assert(!std::is_constructible_v<Value, const int*>);
static_assert(!std::is_constructible_v<Value, const Value*>);
static_assert(!std::is_constructible_v<Value, Tensor*>);
static_assert(!std::is_constructible_v<Value, void (*)()>);
static_assert(!std::is_assignable_v<Value&, Dict*>);

// What is const gives nothing that could change it.
template <class V, class Node>
constexpr bool kGives = std::is_same_v<V, Ref<Node>>;
static_assert(
    kGives<decltype(std::declval<const Value&>().as_tensor()), const Tensor>);
static_assert(
    kGives<decltype(std::declval<const Value&>().as_storage()), const Storage>);
static_assert(
    kGives<decltype(std::declval<const Value&>().as_list()), const List>);
static_assert(
    kGives<decltype(std::declval<const Value&>().as_tuple()), const Tuple>);
static_assert(
    kGives<decltype(std::declval<const Value&>().as_set()), const Set>);
static_assert(
    kGives<decltype(std::declval<const Value&>().as_dict()), const Dict>);
static_assert(
    kGives<decltype(std::declval<const Value&>().as_object()), const Object>);
static_assert(
    kGives<decltype(std::declval<const Value&>().find("")), const Value>);
static_assert(kGives<decltype(std::declval<Value&>().as_tensor()), Tensor>);
static_assert(kGives<decltype(std::declval<Value&>().find("")), Value>);

TEST(Value, TakesBoolsAndTextsAsWhatTheyAre) {
  const bool yes = true;
  ASSERT_NE(Value(yes).as_bool(), nullptr);
  EXPECT_TRUE(*Value(yes).as_bool());
  EXPECT_EQ(Value("text").as_bool(), nullptr);
  EXPECT_EQ(*Value("text").as_string(), "text");
  EXPECT_EQ(*Value(1).as_int(), 1);
}

TEST(Value, MovedFromIsNone) {
  for (Value value : {Value(7), Value("text"), Value::list({1, 2})}) {
    const Value copy = value;
    const Value moved = std::move(value);
    // NOLINTNEXTLINE(bugprone-use-after-move): what is left is promised
    EXPECT_TRUE(value.is_none());
    EXPECT_EQ(moved.type(), copy.type());
    EXPECT_EQ(moved.address(), copy.address());
  }
}

TEST(Value, SharesWhatItHolds) {
  const Value text("shared");
  const std::array<Value, 1> copies{text};
  const Value& copy = copies[0];
  EXPECT_EQ(copy.as_string(), text.as_string());
  EXPECT_EQ(text.owners(), 2);
  EXPECT_EQ(text.shared_string().get(), text.as_string());
  EXPECT_EQ(Value(1).shared_string(), nullptr);
  EXPECT_EQ(Value(1).address(), nullptr);
  EXPECT_EQ(Value(1).owners(), 0);
}

// Every type comes to its own overload, and to that of no other.
TEST(Value, VisitsAsWhatItIs) {
  const auto is = [](const Value& value, const auto* wanted) {
    using Wanted = std::remove_cvref_t<decltype(*wanted)>;
    return value.visit([](const auto& part) {
      return std::is_same_v<std::remove_cvref_t<decltype(part)>, Wanted>;
    });
  };
  EXPECT_TRUE(is(None{}, static_cast<None*>(nullptr)));
  EXPECT_TRUE(is(true, static_cast<bool*>(nullptr)));
  EXPECT_TRUE(is(1, static_cast<std::int64_t*>(nullptr)));
  EXPECT_TRUE(is(0.5, static_cast<double*>(nullptr)));
  EXPECT_TRUE(is(DTypeValue{}, static_cast<DTypeValue*>(nullptr)));
  EXPECT_TRUE(is(BigInt{}, static_cast<BigInt*>(nullptr)));
  EXPECT_TRUE(is("a", static_cast<std::string*>(nullptr)));
  EXPECT_TRUE(is(Bytes{}, static_cast<Bytes*>(nullptr)));
  EXPECT_TRUE(is(Complex{}, static_cast<Complex*>(nullptr)));
  EXPECT_TRUE(is(Size{}, static_cast<Size*>(nullptr)));
  EXPECT_TRUE(is(Device{}, static_cast<Device*>(nullptr)));
  EXPECT_TRUE(is(std::make_shared<Storage>(), static_cast<Storage*>(nullptr)));
  EXPECT_TRUE(is(Tensor{}, static_cast<Tensor*>(nullptr)));
  EXPECT_TRUE(is(List{}, static_cast<List*>(nullptr)));
  EXPECT_TRUE(is(Tuple{}, static_cast<Tuple*>(nullptr)));
  EXPECT_TRUE(is(Set{}, static_cast<Set*>(nullptr)));
  EXPECT_TRUE(is(Dict{}, static_cast<Dict*>(nullptr)));
  EXPECT_TRUE(is(Object{}, static_cast<Object*>(nullptr)));
}

TEST(Value, NamesItsTypeAsPythonDoes) {
  EXPECT_EQ(Value().type_name(), "NoneType");
  EXPECT_EQ(Value(1).type_name(), "int");
  EXPECT_EQ(Value(BigInt{}).type_name(), "int");
  EXPECT_EQ(Value(DTypeValue{}).type_name(), "dtype");
  EXPECT_EQ(Value(std::make_shared<Storage>()).type_name(), "storage");
  EXPECT_EQ(Value(Object{}).type_name(), "object");
}

constexpr int kDeep = 200'000;

TEST(Value, DeepTreesDieWithoutRecursion) {
  Value list;
  Value dict;
  Value object;
  for (int i = 0; i < kDeep; ++i) {
    list = List{{1, std::move(list)}};
    dict = Dict{.items = {{"below", std::move(dict)}}};
    object = Object{.state = std::make_shared<Value>(std::move(object))};
  }
  EXPECT_TRUE(list.is_container() && dict.is_container());
  EXPECT_TRUE(object.is_container());
}

// The last of several references ends a node, wherever it is.
TEST(Value, SharedTreesDieWithoutRecursion) {
  Value twice = List{};
  for (int i = 0; i < kDeep; ++i) {
    twice = Tuple{{twice, twice}};
  }
  EXPECT_TRUE(twice.is_container());
}

// Looking through the list for each of its owners would take hours.
TEST(Value, ManyOwnersOfALongListDieInTurn) {
  constexpr std::size_t kMany = 1'000'000;
  Value owners = List{std::vector<Value>(
      kMany,
      Value(List{std::vector<Value>(kMany, Value(1))}))};
  EXPECT_EQ(owners.as_list()->items.size(), kMany);
  owners = None{};
  EXPECT_TRUE(owners.is_none());
}

TEST(Value, SharedPartsOutliveTheWhole) {
  const Value part = List{{"kept", Tuple{{1, 2}}}};
  { const Value whole = Dict{.items = {{"a", part}, {"b", Tuple{{part}}}}}; }
  ASSERT_EQ(part.as_list()->items.size(), 2U);
  EXPECT_EQ(*part.as_list()->items[0].as_string(), "kept");
  EXPECT_EQ(part.as_list()->items[1].as_tuple()->items.size(), 2U);
}

TEST(Value, TensorsAndScalarsAreNoContainers) {
  EXPECT_FALSE(Value(Tensor{}).is_container());
  EXPECT_FALSE(Value("text").is_container());
  EXPECT_FALSE(Value().is_container());
  EXPECT_TRUE(Value(List{}).is_container());
  EXPECT_TRUE(Value(Object{}).is_container());
}

std::string big_int(const std::string& bytes) {
  return to_text(BigInt{bytes});
}

// Texts of Python: -(2**70), 2**200, 2**63, -2**63 - 1, 256**20, 2**40.
TEST(Value, BigIntegersArePrintedInDecimal) {
  EXPECT_EQ(big_int(std::string(8, '\0') + "\xc0"), "-1180591620717411303424");
  EXPECT_EQ(
      big_int(std::string(25, '\0') + "\1"),
      "1606938044258990275541962092341162602522202993782792835301376");
  EXPECT_EQ(
      big_int(std::string(7, '\0') + "\x80" + '\0'),
      "9223372036854775808");
  EXPECT_EQ(
      big_int(std::string(7, '\xff') + "\x7f\xff"),
      "-9223372036854775809");
  EXPECT_EQ(
      big_int(std::string(20, '\0') + "\1"),
      "1461501637330902918203684832716283019655932542976");
  EXPECT_EQ(big_int(std::string(5, '\0') + "\1"), "1099511627776");
  EXPECT_EQ(
      big_int(std::string(64, '\0') + "\1"),
      "<int of 65 bytes, 0x01" + std::string(128, '0') + ">");
}

TEST(Value, ComplexNumbersArePrintedWithTheSignOfZero) {
  EXPECT_EQ(to_text(Complex{1.5, -0.0}), "(1.5-0j)");
  EXPECT_EQ(to_text(Complex{-0.0, 2}), "(-0+2j)");
  EXPECT_EQ(to_text(Complex{0, -std::nan("")}), "nanj");
}

} // namespace
} // namespace lockstep::ckpt
