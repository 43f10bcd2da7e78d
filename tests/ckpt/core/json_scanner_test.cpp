// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/core/json_scanner.h"

#include <vector>

#include <gmock/gmock.h>

namespace lockstep::ckpt {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::uint64_t kBase = 100;

JsonScanner scanner(std::string_view text) {
  return {
      text,
      {.detail = "E_JSON",
       .duplicate_detail = "E_TWICE",
       .what = "the text",
       .base_offset = kBase}};
}

// Detail and place of what is wrong with `text` as one value; "" if nothing is.
std::string fault_of(std::string_view text) {
  JsonScanner json = scanner(text);
  Status status = json.skip_value();
  if (status) {
    status = json.end();
  }
  return status ? ""
                : status.error().detail + "@" +
                      std::to_string(status.error().offset.value() - kBase);
}

std::string string_in(std::string_view text) {
  JsonScanner json = scanner(text);
  const auto string = json.string();
  return string ? *string : string.error().message;
}

TEST(JsonScanner, SkipsEveryKindOfValue) {
  for (const char* text :
       {"null",
        " true ",
        "false",
        "0",
        "-0",
        "12.5e-3",
        "1E+2",
        R"("a\"b")",
        "[]",
        "{ }",
        R"([1, [2, {}], {"a": [null]}, "x"])",
        R"({"a": {"b": {"c": []}}, "d": -1})"}) {
    EXPECT_EQ(fault_of(text), "") << text;
  }
}

TEST(JsonScanner, NamesThePlaceOfAFault) {
  EXPECT_EQ(fault_of(""), "E_JSON@0");
  EXPECT_EQ(fault_of("  x"), "E_JSON@2");
  EXPECT_EQ(fault_of("nul"), "E_JSON@0");
  EXPECT_EQ(fault_of("[1 2]"), "E_JSON@3");
  EXPECT_EQ(fault_of("[1,]"), "E_JSON@3");
  EXPECT_EQ(fault_of("[1}"), "E_JSON@2");
  EXPECT_EQ(fault_of("[1"), "E_JSON@2");
  EXPECT_EQ(fault_of(R"({"a" 1})"), "E_JSON@5");
  EXPECT_EQ(fault_of(R"({"a": 1,})"), "E_JSON@8");
  EXPECT_EQ(fault_of("{1: 2}"), "E_JSON@1");
  EXPECT_EQ(fault_of("1 2"), "E_JSON@2");
  EXPECT_EQ(fault_of(std::string("1\0", 2)), "E_JSON@1");
  for (const char* number : {"01", "-", "1.", ".5", "1e", "+1", "1e+", "NaN"}) {
    EXPECT_EQ(fault_of(number), "E_JSON@0") << number;
  }
}

TEST(JsonScanner, BoundsItsDepth) {
  const auto nested = [](std::size_t levels) {
    return std::string(levels, '[') + std::string(levels, ']');
  };
  EXPECT_EQ(fault_of(nested(125)), "");
  EXPECT_EQ(fault_of(nested(126)), "E_JSON@125");
  // Depth, not number: closed ones do not count.
  std::string wide = "[[]";
  for (int i = 0; i < 100; ++i) {
    wide += ",[{}]";
  }
  EXPECT_EQ(fault_of(wide + "]"), "");
}

TEST(JsonScanner, DecodesStrings) {
  EXPECT_EQ(string_in(R"("a\"\\\/\b\f\n\r\t")"), "a\"\\/\b\f\n\r\t");
  EXPECT_EQ(string_in(R"("\u0041\u00e4\u20AC")"), "A\xc3\xa4\xe2\x82\xac");
  EXPECT_EQ(string_in(R"("\ud83d\ude00")"), "\xf0\x9f\x98\x80");
  EXPECT_EQ(string_in("\"\xc3\xa4\""), "\xc3\xa4");
  EXPECT_EQ(string_in(R"("\u0000x")"), std::string("\0x", 2));
}

TEST(JsonScanner, RefusesBrokenStrings) {
  EXPECT_THAT(string_in("x"), HasSubstr("the text: expected a string"));
  EXPECT_THAT(string_in("\"a"), HasSubstr("unterminated string"));
  EXPECT_THAT(string_in("\"a\\"), HasSubstr("unknown escape"));
  EXPECT_THAT(string_in(R"("\x41")"), HasSubstr("unknown escape"));
  EXPECT_THAT(string_in("\"\n\""), HasSubstr("control character"));
  EXPECT_THAT(string_in(R"("\u12g4")"), HasSubstr("four hex digits"));
  EXPECT_THAT(string_in(R"("\u12)"), HasSubstr("four hex digits"));
  for (const char* text :
       {R"("\ud83d")", R"("\ud83dx")", R"("\ud83d\u0041")", R"("\ude00")"}) {
    EXPECT_THAT(string_in(text), HasSubstr("surrogate")) << text;
  }
}

TEST(JsonScanner, ReadsUnsignedIntegersExactly) {
  const auto number = [](std::string_view text) {
    JsonScanner json = scanner(text);
    const auto value = json.unsigned_integer();
    return value ? std::to_string(*value) : value.error().message;
  };
  EXPECT_EQ(number(" 0"), "0");
  EXPECT_EQ(number("18446744073709551615"), "18446744073709551615");
  EXPECT_THAT(number("18446744073709551616"), HasSubstr("64 bits"));
  EXPECT_THAT(number("99999999999999999999999"), HasSubstr("64 bits"));
  EXPECT_THAT(number("-1"), HasSubstr("expected an unsigned integer"));
  EXPECT_THAT(number("1.0"), HasSubstr("got a float"));
  EXPECT_THAT(number("1e3"), HasSubstr("got a float"));
  EXPECT_THAT(number("007"), HasSubstr("leading zero"));
}

TEST(JsonScanner, ReadsBooleans) {
  EXPECT_TRUE(*scanner(" true").boolean());
  EXPECT_FALSE(*scanner("false").boolean());
  EXPECT_FALSE(scanner("1").boolean());
  EXPECT_FALSE(scanner("tru").boolean());
}

TEST(JsonScanner, GivesMembersAndElementsInOrder) {
  JsonScanner json = scanner(R"( {"a": [10, 20], "b": "x", "c": {} } )");
  std::vector<std::string> seen;
  const Status status = json.members([&](std::string_view key) -> Status {
    seen.push_back(
        std::string(key) + "@" + std::to_string(json.key_offset() - kBase));
    if (!json.starts_with('[')) {
      return json.skip_value();
    }
    return json.elements([&]() -> Status {
      LOCKSTEP_ASSIGN(const auto number, json.unsigned_integer());
      seen.push_back(std::to_string(number));
      return {};
    });
  });
  ASSERT_TRUE(status) << to_string(status.error());
  EXPECT_TRUE(json.end());
  EXPECT_THAT(seen, ElementsAre("a@2", "10", "20", "b@17", "c@27"));
}

TEST(JsonScanner, RefusesAKeyThatAppearsTwice) {
  JsonScanner json = scanner(R"({"a": 1, "b": 2, "\u0061": 3})");
  const Status status =
      json.members([&](std::string_view /*key*/) { return json.skip_value(); });
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().detail, "E_TWICE");
  EXPECT_EQ(status.error().offset, kBase + 17);
  EXPECT_THAT(status.error().message, HasSubstr("`a`"));
}

TEST(JsonScanner, FindsAKeyThatAppearsTwiceAmongMany) {
  // Plain, escaped, and escaped into more than a string holds in itself.
  const std::vector<std::pair<std::string, std::string>> spellings{
      {"a", "\\u0061"},
      {"\\u0061", "a"},
      {"\\t" + std::string(100, 'x'), "\\u0009" + std::string(100, 'x')}};
  for (const auto& [first, second] : spellings) {
    for (const std::size_t between : {0U, 1U, 14U, 15U, 16U, 17U, 100U}) {
      std::string text = "{\"" + first + "\": 0";
      for (std::size_t i = 0; i < between; ++i) {
        text += ", \"k" + std::to_string(i) + "\\n\": 0";
      }
      const auto detail = [](const std::string& object) {
        JsonScanner json = scanner(object);
        const Status status = json.members(
            [&](std::string_view /*key*/) { return json.skip_value(); });
        return status ? "" : status.error().detail;
      };
      EXPECT_EQ(detail(text + "}"), "") << text;
      EXPECT_EQ(detail(text + ", \"" + second + "\": 0}"), "E_TWICE") << text;
    }
  }
}

TEST(JsonScanner, GivesKeysThatLastAsLongAsTheirObject) {
  std::string text = "{";
  for (int i = 0; i < 40; ++i) {
    text += (i == 0 ? "\"\\t" : ", \"\\t") + std::to_string(i) + "\": 0";
  }
  text += "}";
  JsonScanner json = scanner(text);
  std::vector<std::string_view> keys;
  const Status status = json.members([&](std::string_view key) -> Status {
    keys.push_back(key);
    for (std::size_t i = 0; i < keys.size(); ++i) {
      EXPECT_EQ(keys[i], "\t" + std::to_string(i));
    }
    return json.skip_value();
  });
  EXPECT_TRUE(status);
  EXPECT_EQ(keys.size(), 40);
}

TEST(JsonScanner, HandsOnTheErrorsOfItsVisitors) {
  JsonScanner json = scanner(R"({"a": [1, 2]})");
  int visits = 0;
  const Status status = json.members([&](std::string_view /*key*/) {
    return json.elements([&]() -> Status {
      ++visits;
      return json.error("enough");
    });
  });
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message, "the text: enough");
  EXPECT_EQ(status.error().offset, kBase + 7);
  EXPECT_EQ(visits, 1);
}

} // namespace
} // namespace lockstep::ckpt
