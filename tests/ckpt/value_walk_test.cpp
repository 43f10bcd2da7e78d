// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/value_walk.h"

#include <gmock/gmock.h>

#include "tests/ckpt/value_fixture.h"

namespace lockstep::ckpt {
namespace {

using testing::ElementsAre;

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

} // namespace
} // namespace lockstep::ckpt
