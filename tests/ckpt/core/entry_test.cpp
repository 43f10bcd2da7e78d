// SPDX-License-Identifier: BSD-3-Clause
//
// Values read as in Python: every type of value x every type of C++, places in
// errors, loops, and the way back.
#include "lockstep/ckpt/entry.h"

#include <array>
#include <cmath>
#include <complex>
#include <limits>
#include <map>
#include <sstream>
#include <unordered_map>

#include <gmock/gmock.h>

#include "lockstep/base/error.h"
#include "lockstep/ckpt/convert.h"
#include "lockstep/ckpt/print.h"
#include "tests/ckpt/value_fixture.h"

namespace lockstep::ckpt {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Value tree() {
  return Value::dict(
      {{"epoch", 3},
       {"best_mIoU", 0.5},
       {"optimizer",
        Value::dict(
            {{"state", Value::dict({{0, Value::dict({{"step", 7}})}})},
             {"param_groups",
              Value::list(
                  {Value::dict({{"lr", 0.1}, {"params", std::vector{0, 1}}}),
                   Value::dict({{"lr", "fast"}})})}})}});
}

template <class F>
Error error_of_call(const F& call) {
  try {
    call();
  } catch (const Exception& e) {
    return e.error();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

TEST(Entry, IsFoundByKeyAndIndex) {
  const Value root = tree();
  EXPECT_EQ(root["epoch"].to<int>(), 3);
  EXPECT_EQ(root["optimizer"]["param_groups"][0]["lr"].to<double>(), 0.1);
  EXPECT_EQ(
      root["optimizer"]["param_groups"][-1]["lr"].to<std::string>(),
      "fast");
  EXPECT_EQ(root["optimizer"]["state"][0]["step"].to<std::int64_t>(), 7);
  EXPECT_EQ(root["optimizer"]["param_groups"].size(), 2);
  EXPECT_TRUE(root["optimizer"].contains("state"));
  EXPECT_FALSE(root["optimizer"].contains("stat"));
  EXPECT_THAT(root.keys(), ElementsAre("epoch", "best_mIoU", "optimizer"));
}

TEST(Entry, SaysWhereNothingIs) {
  const Value root = tree();
  const Error key = error_of_call([&] { (void)root["best_miou"]; });
  EXPECT_EQ(key.code, ErrorCode::kNotFound);
  EXPECT_THAT(key.message, HasSubstr("the dict has no key 'best_miou'"));
  EXPECT_THAT(key.hint, HasSubstr("did you mean 'best_mIoU'?"));
  const Error far = error_of_call([&] { (void)root["optimizer"]["zzz"]; });
  EXPECT_THAT(far.message, HasSubstr("'optimizer' has no key 'zzz'"));
  EXPECT_THAT(far.hint, HasSubstr("its keys are state, param_groups"));
  const Error index =
      error_of_call([&] { (void)root["optimizer"]["param_groups"][2]; });
  EXPECT_EQ(index.code, ErrorCode::kNotFound);
  EXPECT_THAT(
      index.message,
      HasSubstr("'optimizer.param_groups': expected an element 2, got a list "
                "of 2"));
  const Error scalar = error_of_call([&] { (void)root["epoch"]["x"]; });
  EXPECT_EQ(scalar.code, ErrorCode::kMismatch);
  EXPECT_THAT(
      scalar.message,
      HasSubstr("'epoch': expected a dict with 'x', got int 3"));
}

TEST(Entry, SaysWhatIsThereInstead) {
  const Value root = tree();
  const Error error = error_of_call(
      [&] { (void)root["optimizer"]["param_groups"][1]["lr"].to<double>(); });
  EXPECT_EQ(error.code, ErrorCode::kMismatch);
  EXPECT_THAT(
      error.message,
      HasSubstr("'optimizer.param_groups.1.lr': expected a float, got str "
                "'fast'"));
  EXPECT_THAT(error.hint, HasSubstr("std::string"));
  const Error nested = error_of_call([&] {
    (void)root["optimizer"]["param_groups"]
        .to<std::vector<std::map<std::string, double>>>();
  });
  EXPECT_THAT(
      nested.message,
      HasSubstr("'optimizer.param_groups.0.params': expected a float, got list "
                "with 2 elements"));
  const Entry of_file(root, "", std::make_shared<const std::string>("a.pth"));
  EXPECT_EQ(
      error_of_call([&] { (void)of_file["optimizer"]["x"]; }).path,
      "a.pth");
}

// Row: a value; column: what it is asked for. What `to` gave, or "-".
template <class T>
std::string given(const Value& value) {
  try {
    std::ostringstream out;
    out << Value(value.to<T>());
    return out.str();
  } catch (const Exception& e) {
    EXPECT_EQ(e.error().code, ErrorCode::kMismatch);
    return "-";
  }
}

std::vector<std::string> row_of(const Value& value) {
  return {
      given<bool>(value),
      given<int>(value),
      given<std::uint8_t>(value),
      given<double>(value),
      given<std::complex<double>>(value),
      given<std::string>(value),
      given<std::vector<int>>(value),
      given<std::pair<int, int>>(value),
      given<std::map<std::string, int>>(value),
      given<std::optional<bool>>(value)};
}

Value one_element(DType dtype, const std::string& bytes) {
  Tensor tensor = bytes_tensor(bytes, {});
  tensor.dtype = dtype;
  tensor.storage->dtype = dtype;
  return tensor;
}

TEST(Entry, ConvertsEachTypeToEachTypeOfCpp) {
  const std::string n = "-";
  const std::vector<std::pair<Value, std::vector<std::string>>> rows = {
      // bool, int, uint8, double, complex, string, vector, pair, map, optional
      {None(), {n, n, n, n, n, n, n, n, n, "None"}},
      {true, {"True", n, n, n, n, n, n, n, n, "True"}},
      {7, {n, "7", "7", "7.0", "(7+0j)", n, n, n, n, n}},
      {-1, {n, "-1", n, "-1.0", "(-1+0j)", n, n, n, n, n}},
      {300, {n, "300", n, "300.0", "(300+0j)", n, n, n, n, n}},
      {2.5, {n, n, n, "2.5", "(2.5+0j)", n, n, n, n, n}},
      {3.0, {n, n, n, "3.0", "(3+0j)", n, n, n, n, n}},
      {DTypeValue{DType::kFloat16}, {n, n, n, n, n, n, n, n, n, n}},
      {"text", {n, n, n, n, n, "text", n, n, n, n}},
      {Bytes{"ab"}, {n, n, n, n, n, n, n, n, n, n}},
      {Complex{1, 2}, {n, n, n, n, "(1+2j)", n, n, n, n, n}},
      {Size{{2, 3}}, {n, n, n, n, n, n, "[2, 3]", "(2, 3)", n, n}},
      {Device{"cuda", 1}, {n, n, n, n, n, n, n, n, n, n}},
      {List{{1}}, {n, n, n, n, n, n, "[1]", n, n, n}},
      {Tuple{{1, 2}}, {n, n, n, n, n, n, "[1, 2]", "(1, 2)", n, n}},
      {Set{{1}}, {n, n, n, n, n, n, "[1]", n, n, n}},
      {List{{"x"}}, {n, n, n, n, n, n, n, n, n, n}},
      {Value::dict({{"a", 1}}), {n, n, n, n, n, n, n, n, "{  'a': 1,}", n}},
      {Value::dict({{1, 1}}), {n, n, n, n, n, n, n, n, n, n}},
      {Object{.global = "m.C"}, {n, n, n, n, n, n, n, n, n, n}},
      {one_element(DType::kBool, std::string(1, '\1')),
       {"True", n, n, n, n, n, n, n, n, "True"}},
      {one_element(DType::kInt16, std::string("\7\0", 2)),
       {n, "7", "7", "7.0", "(7+0j)", n, n, n, n, n}},
      {one_element(DType::kFloat32, std::string("\0\0\40\100", 4)),
       {n, n, n, "2.5", "(2.5+0j)", n, n, n, n, n}},
      {bytes_tensor("\1\2", {2}), {n, n, n, n, n, n, n, n, n, n}},
  };
  for (const auto& [value, expected] : rows) {
    std::vector<std::string> row = row_of(value);
    for (std::string& cell : row) {
      std::erase(cell, '\n');
    }
    EXPECT_EQ(row, expected) << value;
  }
}

// What goes in comes out, at both ends of each type.
template <class T>
void expect_round_trip(const T& value) {
  EXPECT_EQ(Value(value).template to<T>(), value);
}

template <class... T>
void expect_ends() {
  (expect_round_trip(std::numeric_limits<T>::max()), ...);
  (expect_round_trip(std::numeric_limits<T>::lowest()), ...);
}

TEST(Entry, TakesEveryArithmeticType) {
  expect_ends<
      bool,
      signed char,
      unsigned char,
      short,
      unsigned short,
      int,
      unsigned,
      long,
      unsigned long,
      long long,
      unsigned long long,
      float,
      double>();
  const Value big = std::numeric_limits<std::uint64_t>::max();
  EXPECT_EQ(to_text(big), "18446744073709551615");
  EXPECT_EQ(
      error_of_call([&] { (void)big.to<std::int64_t>(); }).message,
      "expected an int from -9223372036854775808 to 9223372036854775807, got "
      "int 18446744073709551615");
}

TEST(Entry, TakesContainersOfCpp) {
  expect_round_trip(std::vector<std::vector<float>>{{1, 2}, {}});
  expect_round_trip(std::vector<bool>{true, false});
  expect_round_trip(std::array{1, 2, 3});
  expect_round_trip(std::map<std::string, std::int64_t>{{"b", 1}, {"a", 2}});
  expect_round_trip(std::map<int, double>{{3, 1.5}});
  expect_round_trip(
      std::unordered_map<std::string, std::string>{{"b", "x"}, {"a", "y"}});
  expect_round_trip(std::tuple<int, std::string, bool>{1, "a", true});
  expect_round_trip(std::pair<std::optional<int>, std::optional<int>>{{}, 4});
  EXPECT_EQ(
      to_text(Value(std::unordered_map<int, int>{{2, 1}, {1, 1}, {3, 1}})),
      "{\n  1: 1,\n  2: 1,\n  3: 1,\n}");
}

TEST(Entry, IsLoopedOverAsInPython) {
  const Value root = tree();
  std::vector<std::string> keys;
  for (const auto& key : root) {
    keys.push_back(key.to<std::string>());
  }
  EXPECT_THAT(keys, ElementsAre("epoch", "best_mIoU", "optimizer"));
  std::vector<std::string> places;
  // The temporaries in the range live as long as the loop.
  for (const auto& group : root["optimizer"]["param_groups"]) {
    places.push_back(group["lr"].place());
  }
  EXPECT_THAT(
      places,
      ElementsAre(
          "optimizer.param_groups.0.lr",
          "optimizer.param_groups.1.lr"));
  std::string text;
  for (const auto& [key, value] : root["optimizer"]["state"].items()) {
    text += std::to_string(key.to<int>()) + value.place();
  }
  EXPECT_EQ(text, "0optimizer.state.0");
  EXPECT_EQ(
      error_of_call([&] {
        for (const auto& element : root["epoch"]) {
          (void)element;
        }
      }).message,
      "'epoch': expected a dict, list, tuple or set, got int 3");
}

TEST(Entry, ReadsObjectsAsTheirEntriesOrAttributes) {
  const Value args = Object{
      .global = "argparse.Namespace",
      .state = std::make_shared<Value>(Value::dict({{"lr", 0.1}}))};
  const Value counts = Object{
      .global = "collections.defaultdict",
      .items = {{"x", 1}, {2, "two"}}};
  const Value root = Value::dict({{"args", args}, {"counts", counts}});
  EXPECT_EQ(root["args"]["lr"].to<double>(), 0.1);
  EXPECT_TRUE(root["args"].contains("lr"));
  EXPECT_THAT(root["args"].keys(), ElementsAre("lr"));
  EXPECT_EQ(root["counts"]["x"].to<int>(), 1);
  EXPECT_EQ(root["counts"][2].to<std::string>(), "two");
  EXPECT_EQ(root["counts"].size(), 2);
  EXPECT_EQ(
      error_of_call([&] { (void)root["args"]["epochs"]; }).message,
      "'args' has no key 'epochs'");
}

TEST(Entry, TakesTheKeysOfItsOwnLoops) {
  const Value state = Value::dict({{0, 1.5}, {"a", 2.5}, {true, 3.5}});
  double sum = 0;
  for (const auto& key : state) {
    sum += Entry(state)[key].to<double>();
  }
  EXPECT_EQ(sum, 7.5);
  EXPECT_TRUE(Entry(state).contains(0));
  EXPECT_FALSE(Entry(state).contains(2));
  EXPECT_TRUE(state.contains(0));
  EXPECT_TRUE(state.contains("a"));
  EXPECT_EQ(
      error_of_call([&] { (void)state["0"]; }).hint,
      "the key is of type int");
  const Error key = error_of_call([&] {
    const Value root = Value::dict({{"state", state}});
    (void)root["state"].to<std::map<std::string, double>>();
  });
  EXPECT_EQ(key.message, "'state (a key)': expected a str, got int 0");
  EXPECT_EQ(
      error_of_call([&] {
        (void)Value::dict({{16777216, 1}, {16777217, 2}})
            .to<std::map<float, int>>();
      }).message,
      "'(a key)': expected keys that differ, got int 16777217");
}

TEST(Entry, ReadsWhatWasAppendedToAnObjectAsAList) {
  const Value deque = Object{
      .global = "collections.deque",
      .items = {{0, 0.5}, {1, 1.5}},
      .is_sequence = true};
  double sum = 0;
  for (const auto& element : deque) {
    sum += element.to<double>();
  }
  EXPECT_EQ(sum, 2);
  EXPECT_EQ(deque[-1].to<double>(), 1.5);
  EXPECT_THAT(deque.to<std::vector<double>>(), ElementsAre(0.5, 1.5));
  EXPECT_FALSE(deque.contains(0));
  EXPECT_EQ(
      error_of_call([&] { (void)deque.keys(); }).message,
      "expected a dict, got collections.deque");
}

TEST(Entry, OutlivesWhatItWasTakenFrom) {
  const Entry& first = *tree()["optimizer"]["param_groups"].begin();
  EXPECT_EQ(first["lr"].to<double>(), 0.1);
  const std::string& place = tree()["optimizer"]["param_groups"][0].place();
  EXPECT_EQ(place, "optimizer.param_groups.0");
}

TEST(Entry, OfNoTextIsAnError) {
  const char* nothing = nullptr;
  EXPECT_EQ(
      error_of_call([&] { (void)Value(nothing); }).message,
      "a text is null");
  static_assert(!std::is_constructible_v<Value, std::nullptr_t>);
}

TEST(Entry, ANumberBeyondItsTypeIsAnError) {
  EXPECT_EQ(Value(1e38).to<float>(), 1e38F);
  EXPECT_TRUE(
      std::isinf(Value(std::numeric_limits<double>::infinity()).to<float>()));
  EXPECT_EQ(
      error_of_call([] { (void)Value(1e39).to<float>(); }).message,
      "expected a number that fits, got float 1e+39");
}

TEST(Entry, ALoopEndsWhereItsListWasCut) {
  Value list = std::vector{1, 2, 3};
  int sum = 0;
  for (const auto& element : list) {
    sum += element.to<int>();
    list.as_list()->items.resize(1);
  }
  EXPECT_EQ(sum, 1);
}

TEST(Entry, PrintsATextAsItIsAndTheRestAsPythonDoes) {
  std::ostringstream out;
  out << Value("a\x1b[2J") << " " << Value(0.1) << " " << Value(None());
  EXPECT_EQ(out.str(), R"(a\x1b[2J 0.1 None)");
  std::ostringstream dict;
  dict << Value::dict({{"a", "x"}});
  EXPECT_EQ(dict.str(), "{\n  'a': 'x',\n}");
}

} // namespace
} // namespace lockstep::ckpt
