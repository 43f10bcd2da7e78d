// SPDX-License-Identifier: BSD-3-Clause
//
// JSON of the golden sessions against docs/schemas.
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/json_schema.h"

namespace lockstep {
namespace {

using nlohmann::json;
using test::read_json;
using test::schema_path;
using test::violation;
namespace fs = std::filesystem;

// Every line of the sessions that is an answer in JSON.
std::vector<json> answers() {
  std::vector<json> found;
  for (const auto& entry : fs::directory_iterator("tests/cli/golden")) {
    std::ifstream file(entry.path());
    for (std::string line; std::getline(file, line);) {
      if (line.starts_with(R"({"schema":"lockstep.ckpt.)") ||
          line.starts_with(R"({"schema":"lockstep.explain)")) {
        found.push_back(json::parse(line));
      }
    }
  }
  return found;
}

TEST(Schemas, FitEveryAnswerOfTheSessions) {
  std::set<std::string> seen;
  for (const json& answer : answers()) {
    const std::string name = answer["schema"].get<std::string>();
    const std::string path = schema_path(name);
    ASSERT_TRUE(fs::exists(path)) << path;
    EXPECT_EQ(test::violation_of_its_schema(answer), "");
    seen.insert(path);
  }
  for (const auto& entry : fs::directory_iterator("docs/schemas")) {
    const std::string path = entry.path().string();
    if (entry.path().filename().string().starts_with("ckpt.")) {
      EXPECT_TRUE(seen.contains(path)) << path << " fits no answer";
    }
  }
  EXPECT_GE(seen.size(), 20U);
}

TEST(Schemas, AreWhatTheyAreCalled) {
  for (const auto& entry : fs::directory_iterator("docs/schemas")) {
    const json schema = read_json(entry.path().string());
    EXPECT_EQ(
        schema_path(schema["$id"].get<std::string>()),
        entry.path().string());
  }
}

TEST(Schemas, NoticeWhatIsWrong) {
  const json schema = read_json("docs/schemas/ckpt.digest.json");
  json answer = json::parse(
      R"({"schema":"lockstep.ckpt.digest/1","ok":true,
          "result":{"digest":"ab","short":"a","tensors":1}})");
  EXPECT_EQ(violation(answer, schema, "x"), "");
  answer["result"]["tensors"] = "1";
  EXPECT_NE(violation(answer, schema, "x"), "");
  answer["result"].erase("tensors");
  EXPECT_NE(violation(answer, schema, "x"), "");
  answer["result"] = {
      {"digest", "ab"},
      {"short", "a"},
      {"tensors", 1},
      {"more", 2}};
  EXPECT_NE(violation(answer, schema, "x"), "");
}

} // namespace
} // namespace lockstep
