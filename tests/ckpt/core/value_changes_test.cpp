// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/core/value_changes.h"

#include <gtest/gtest.h>

#include "lockstep/ckpt/load/format_table.h"
#include "tests/ckpt/value_fixture.h"

namespace lockstep::ckpt {
namespace {

// Names of the others would be made for nothing.
TEST(ValueChanges, AsksForTheFirstNameOfAKind) {
  ValueChanges changes;
  std::size_t asked = 0;
  const auto name = [&asked] { return std::to_string(++asked); };
  for (const ChangeKind kind :
       {ChangeKind::kKey, ChangeKind::kTuple, ChangeKind::kKey}) {
    changes.add(kind, name);
  }
  const auto made = changes.take();
  ASSERT_EQ(made.size(), 2U);
  EXPECT_EQ(
      to_text(made[0]),
      "2 keys that are not text become text: '1' and 1 more");
  EXPECT_EQ(asked, 2U);
}

TEST(ValueChanges, NameTensorsThatLoseTheirClass) {
  Tensor tensor = floats({1});
  tensor.class_name = "rl.Angle";
  const Value root = Value::dict({{"plain", floats({1})}, {"a", tensor}});
  for (const FormatWriter& writer : format_writers()) {
    if (writer.changed_values == nullptr) {
      continue;
    }
    const auto changes = writer.changed_values(root);
    ASSERT_TRUE(changes) << to_string(changes.error());
    ASSERT_EQ(changes->size(), 1U) << writer.name;
    EXPECT_EQ(to_text(changes->front()), "1 tensor loses its class: 'a'")
        << writer.name;
  }
}

} // namespace
} // namespace lockstep::ckpt
