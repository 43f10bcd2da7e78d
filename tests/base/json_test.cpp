// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/base/json.h"

#include <limits>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "lockstep/base/error.h"

namespace lockstep {
namespace {

Json sample() {
  Json list = Json::array();
  list.push(1).push(-2).push("three").push(Json());
  Json json = Json::object();
  json.set("zebra", true)
      .set("apple", std::move(list))
      .set("empty", Json::object());
  return json;
}

TEST(Json, KeepsTheOrderOfKeys) {
  EXPECT_EQ(
      sample().dump(),
      R"({"zebra":true,"apple":[1,-2,"three",null],"empty":{}})");
}

TEST(Json, IndentsForPeople) {
  EXPECT_EQ(sample().dump(2), R"({
  "zebra": true,
  "apple": [
    1,
    -2,
    "three",
    null
  ],
  "empty": {}
})");
}

TEST(Json, WritesNumbersThatReadBackExactly) {
  Json json;
  json.push(0.1F)
      .push(0.1)
      .push(std::numeric_limits<std::uint64_t>::max())
      .push(std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(json.dump(), "[0.1,0.1,18446744073709551615,-9223372036854775808]");
}

TEST(Json, WritesNanAndInfinityAsStrings) {
  Json json;
  json.push(std::numeric_limits<double>::quiet_NaN())
      .push(-std::numeric_limits<float>::infinity());
  EXPECT_EQ(json.dump(), R"(["nan","-inf"])");
}

TEST(Json, IsReadByAnotherParserWhateverTheBytes) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) {
    all += static_cast<char>(byte);
  }
  all += "\xe4\xbd\xa0 \xed\xa0\x80 \xc0\x80 \xf4\x90\x80\x80";
  Json json;
  json.set(all, all);
  const auto parsed = nlohmann::json::parse(json.dump());
  ASSERT_EQ(parsed.size(), 1U);
  const std::string key = parsed.items().begin().key();
  EXPECT_EQ(key.substr(0, 128), all.substr(0, 128));
  EXPECT_THAT(key, testing::HasSubstr("\xe4\xbd\xa0"));
}

TEST(Json, MakesAListOfAVector) {
  const std::vector<std::string> texts{"a", "\""};
  EXPECT_EQ(Json::array(texts).dump(), R"(["a","\""])");
  EXPECT_EQ(Json::array(std::vector<int>{}).dump(), "[]");
}

TEST(Json, StopsOnAMemberOfAList) {
  Json json = Json::array();
  EXPECT_THROW(json.set("key", 1), Exception);
}

} // namespace
} // namespace lockstep
