// SPDX-License-Identifier: BSD-3-Clause
#include <gmock/gmock.h>

#include "lockstep/ckpt/inspect.h"
#include "lockstep/ckpt/print.h"
#include "tests/ckpt/value_fixture.h"

namespace lockstep::ckpt {
namespace {

using testing::ElementsAre;

Tensor zeros(std::size_t count) {
  return tensor_of<float>(
      DType::kFloat32,
      std::vector<float>(count),
      {static_cast<std::int64_t>(count)});
}

Value small_model() {
  return Value::dict(
      {{"net",
        Value::dict(
            {{"b.weight", zeros(3)}, {"b.bias", zeros(1)}, {"a", zeros(2)}})},
       {"step", tensor_of<std::int64_t>(DType::kInt64, {7}, {})}});
}

std::vector<std::string> names(const ListOptions& options) {
  const auto rows = list_tensors(small_model(), options);
  EXPECT_TRUE(rows) << to_string(rows.error());
  std::vector<std::string> result;
  for (const ListRow& row : *rows) {
    result.push_back(row.name);
  }
  return result;
}

TEST(Listing, SortsByFileNameSizeAndType) {
  EXPECT_THAT(
      names({}),
      ElementsAre("net.b.weight", "net.b.bias", "net.a", "step"));
  EXPECT_THAT(
      names({.order = ListOrder::kName}),
      ElementsAre("net.a", "net.b.bias", "net.b.weight", "step"));
  EXPECT_THAT(
      names({.order = ListOrder::kBytes}),
      ElementsAre("net.b.weight", "net.a", "step", "net.b.bias"));
  EXPECT_THAT(
      names({.order = ListOrder::kDType}),
      ElementsAre("net.b.weight", "net.b.bias", "net.a", "step"));
}

// A tensor of the device "meta", and a sparse one, whose parts are tensors.
TEST(Listing, NamesTensorsWithoutBytes) {
  const Value meta = call_of(
      "torch._utils._rebuild_meta_tensor_no_storage",
      {DTypeValue{DType::kFloat16}, Size{{4}}, Size{{1}}, false});
  const Value root =
      Value::dict({{"net", Value::dict({{"a", meta}, {"b", zeros(2)}})}});
  const auto rows = list_tensors(root);
  ASSERT_TRUE(rows) << to_string(rows.error());
  ASSERT_EQ(rows->size(), 2U);
  EXPECT_EQ(rows->front().name, "net.a");
  EXPECT_EQ(describe(rows->front().tensor), "float16 [4]");
  EXPECT_EQ(rows->front().tensor.storage->location, "meta");
  EXPECT_EQ(rows->front().bytes, 0U);
  const auto filtered = list_tensors(root, {.filter = "b$"});
  ASSERT_TRUE(filtered) << to_string(filtered.error());
  EXPECT_EQ(filtered->size(), 1U);
  const auto summary = summarize({.root = root});
  ASSERT_TRUE(summary) << to_string(summary.error());
  EXPECT_EQ(summary->tensors, 1U);
  EXPECT_EQ(summary->tensors_without_bytes, 1U);
  EXPECT_THAT(
      to_text(*summary, "m.pt"),
      testing::HasSubstr("; 1 tensor without bytes\n"));
  const Value wrapped = Value::dict({{"module.a", meta}, {"b", zeros(1)}});
  const auto prefix = summarize({.root = wrapped});
  ASSERT_TRUE(prefix) << to_string(prefix.error());
  EXPECT_EQ(prefix->prefix.keys, 1U);
  EXPECT_EQ(prefix->prefix.of, 2U); // as strip counts
}

TEST(Listing, FiltersByExpression) {
  EXPECT_THAT(
      names({.filter = "bias$|^st"}),
      ElementsAre("net.b.bias", "step"));
  EXPECT_THAT(names({.filter = R"(^\w+\.(?!b))"}), ElementsAre("net.a"));
  const auto broken = list_tensors(small_model(), {.filter = "a("});
  ASSERT_FALSE(broken);
  EXPECT_EQ(broken.error().code, ErrorCode::kInvalidArgument);
  const Value hostile = Value::dict(
      {{std::string(64, 'a') + "b",
        tensor_of<float>(DType::kFloat32, {1}, {1})}});
  const auto endless = list_tensors(hostile, {.filter = "(a+)+$"});
  ASSERT_FALSE(endless);
  EXPECT_EQ(endless.error().detail, "E_LIMIT");
}

std::vector<std::string> tree(std::size_t depth) {
  const auto rows = list_tensors(small_model());
  std::vector<std::string> result;
  for (const TreeRow& row : tree_rows(*rows, depth)) {
    result.push_back(
        std::string(row.level, ' ') + row.label + " " +
        std::to_string(row.tensors) + " " + std::to_string(row.bytes) +
        (row.tensor != nullptr ? " leaf" : ""));
  }
  return result;
}

TEST(Tree, PutsChildrenBehindTheirParents) {
  EXPECT_THAT(
      tree(0),
      ElementsAre(
          "net 3 24",
          " b 2 16",
          "  weight 1 12 leaf",
          "  bias 1 4 leaf",
          " a 1 8 leaf",
          "step 1 8 leaf"));
}

TEST(Tree, FoldsBelowTheDepth) {
  EXPECT_THAT(tree(1), ElementsAre("net 3 24", "step 1 8 leaf"));
  EXPECT_THAT(
      tree(2),
      ElementsAre("net 3 24", " b 2 16", " a 1 8 leaf", "step 1 8 leaf"));
}

TEST(Tree, KeepsANameThatIsAlsoAPrefix) {
  const auto rows =
      list_tensors(Value::dict({{"a", zeros(1)}, {"a.b", zeros(2)}}));
  const auto tree = tree_rows(*rows);
  ASSERT_EQ(tree.size(), 2U);
  EXPECT_EQ(tree[0].tensors, 2U);
  EXPECT_NE(tree[0].tensor, nullptr);
  EXPECT_EQ(tree[1].path, "a.b");
}

} // namespace
} // namespace lockstep::ckpt
