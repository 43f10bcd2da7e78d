// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/core/tensor_layout.h"

#include <gmock/gmock.h>

#include "lockstep/ckpt/pickle/globals.h"
#include "lockstep/ckpt/pickle/pickle.h"
#include "lockstep/ckpt/print.h"
#include "lockstep/ckpt/walk.h"
#include "tests/ckpt/value_fixture.h"

namespace lockstep::ckpt {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Value call(const char* name, std::vector<Value> args) {
  return Object{
      .global = name,
      .args = std::make_shared<Value>(Tuple{std::move(args)})};
}

Value numbers(
    const std::vector<std::int64_t>& values,
    const std::vector<std::int64_t>& sizes) {
  return tensor_of<std::int64_t>(DType::kInt64, values, sizes);
}

Value ones(const std::vector<std::int64_t>& sizes) {
  std::size_t count = 1;
  for (const std::int64_t size : sizes) {
    count *= static_cast<std::size_t>(size);
  }
  return tensor_of<float>(
      DType::kFloat32,
      std::vector<float>(count, 1.0F),
      sizes);
}

Value sparse(const char* layout, std::vector<Value> data) {
  return call(
      "torch._utils._rebuild_sparse_tensor",
      {call("torch.serialization._get_layout", {layout}),
       Tuple{std::move(data)}});
}

// Values at (0, 1) and `last` of a matrix.
Value coo(std::int64_t last, Size size) {
  return sparse(
      "torch.sparse_coo",
      {numbers({0, last, 1, last}, {2, 2}), ones({2}), std::move(size), false});
}

Value csr(
    const std::vector<std::int64_t>& rows,
    const std::vector<std::int64_t>& columns) {
  return sparse(
      "torch.sparse_csr",
      {numbers(rows, {static_cast<std::int64_t>(rows.size())}),
       numbers(columns, {static_cast<std::int64_t>(columns.size())}),
       ones({static_cast<std::int64_t>(columns.size())}),
       Size{{2, 3}}});
}

std::vector<std::string> names_in(const Value& root) {
  std::vector<std::string> names;
  EXPECT_TRUE(for_each_tensor(
      root,
      [&](const std::string& name, const Tensor&) { names.push_back(name); }));
  return names;
}

std::string checked(const Value& value) {
  const auto tensor = layout_tensor(value);
  if (!tensor) {
    return "no layout";
  }
  const Status status = check_indices(*tensor);
  return status ? "" : status.error().detail;
}

TEST(IntegersOf, AreNoMoreThanAskedFor) {
  for (const Value& value :
       {Value(Size{{1, 2}}), Value::list({1, 2}), Value::tuple({1, 2})}) {
    EXPECT_EQ(integers_of(value), std::vector<std::int64_t>({1, 2}));
    EXPECT_EQ(integers_of(value, 2), std::vector<std::int64_t>({1, 2}));
    EXPECT_FALSE(integers_of(value, 1));
  }
}

TEST(TensorLayout, NamesThePartsAsPyTorchDoes) {
  const Value root = Value::dict(
      {{"coo", coo(1, Size{{2, 3}})},
       {"csr", csr({0, 1, 2}, {1, 2})},
       {"nested",
        call(
            "torch._utils._rebuild_nested_tensor",
            {ones({6}),
             numbers({2}, {1, 1}),
             numbers({1}, {1, 1}),
             numbers({0}, {1})})}});
  EXPECT_THAT(
      names_in(root),
      ElementsAre(
          "coo.indices",
          "coo.values",
          "csr.crow_indices",
          "csr.col_indices",
          "csr.values",
          "nested.values",
          "nested.sizes",
          "nested.strides",
          "nested.offsets"));
  EXPECT_NE((*find_path(root, "csr.values")).as_tensor(), nullptr);
  EXPECT_FALSE(find_path(root, "csr.rows"));
}

TEST(TensorLayout, ShowsLayoutTypeAndShape) {
  EXPECT_EQ(describe(coo(1, Size{{2, 3}})), "sparse_coo float32 [2, 3]");
  EXPECT_EQ(
      to_text(coo(1, Size{{2, 3}})),
      "sparse_coo float32 [2, 3](indices=tensor(int64 [2, 2]), "
      "values=tensor(float32 [2]))");
  EXPECT_EQ(
      describe(call(
          "torch._utils._rebuild_meta_tensor_no_storage",
          {DTypeValue{DType::kFloat16}, Size{{4}}, Size{{1}}, false})),
      "meta float16 [4]");
}

Value meta(Value sizes, Value strides) {
  return call(
      "torch._utils._rebuild_meta_tensor_no_storage",
      {DTypeValue{DType::kFloat32},
       std::move(sizes),
       std::move(strides),
       true});
}

TEST(TensorLayout, KnowsTheStridesOfTensorsWithoutBytes) {
  const auto tensor = layout_tensor(meta(Size{{4, 2}}, Size{{1, 4}}));
  ASSERT_TRUE(tensor);
  EXPECT_THAT(tensor->strides, ElementsAre(1, 4));
  EXPECT_TRUE(tensor->requires_grad);
}

// No walk computes with them.
TEST(TensorLayout, TakesNoShapeThatNoTensorHas) {
  constexpr std::int64_t kLarge = std::int64_t{1} << 62;
  const std::vector<std::int64_t> many(65, 1);
  EXPECT_FALSE(layout_tensor(meta(Size{many}, Size{many})));
  EXPECT_FALSE(layout_tensor(meta(Size{{kLarge, 3}}, Size{{3, 1}})));
  EXPECT_FALSE(layout_tensor(meta(Size{{0, kLarge, 3}}, Size{{1, 1, 1}})));
  EXPECT_FALSE(layout_tensor(meta(Size{{-5}}, Size{{1}})));
  EXPECT_FALSE(layout_tensor(meta(Size{{5}}, Size{{1, 1}})));
  EXPECT_FALSE(layout_tensor(coo(1, Size{{-2, 3}})));
}

Value jagged(std::size_t others) {
  Value fields = Value::dict({{"values", ones({6})}});
  for (std::size_t i = 0; i < others; ++i) {
    fields.as_dict()->items.emplace_back(std::to_string(i), None{});
  }
  return call(
      "torch.nested._internal.nested_tensor._rebuild_njt",
      {std::move(fields)});
}

// Many calls may share one dict.
TEST(TensorLayout, LooksForNoPartInALongDict) {
  const auto tensor = layout_tensor(jagged(63));
  ASSERT_TRUE(tensor);
  EXPECT_EQ(tensor->layout, "jagged");
  EXPECT_NE(tensor->part("values"), nullptr);
  EXPECT_FALSE(layout_tensor(jagged(64)));
}

TEST(TensorLayout, ReadsThroughParametersAttributesAndDevices) {
  const Value parameter = call(
      "torch._utils._rebuild_parameter",
      {coo(1, Size{{2, 3}}), true, Value::ordered_dict({})});
  EXPECT_EQ(layout_tensor(parameter)->layout, "sparse_coo");
  const Value typed = call(
      "torch._tensor._rebuild_from_type_v2",
      {Object{.global = "torch._utils._rebuild_sparse_tensor"},
       Object{.global = "torch.Tensor"},
       *(*coo(1, Size{{2, 3}}).as_object()).args,
       Value::dict({})});
  EXPECT_EQ(layout_tensor(typed)->layout, "sparse_coo");
  const Value device = call(
      "torch._utils._rebuild_device_tensor_from_cpu_tensor",
      {ones({2}), DTypeValue{DType::kFloat32}, "xla:0", false});
  EXPECT_THAT(names_in(Value::dict({{"w", device}})), ElementsAre("w"));
}

TEST(TensorLayout, OfASparseTensorHasNoPlaceAmongPlainOnes) {
  const auto flat = flatten(Value::dict({{"s", coo(2, Size{{3, 3}})}}));
  ASSERT_FALSE(flat);
  EXPECT_THAT(flat.error().hint, HasSubstr("to_dense()"));
}

TEST(TensorLayout, LeavesOtherCallsAlone) {
  EXPECT_FALSE(layout_tensor(call("m.f", {1})));
  EXPECT_FALSE(layout_tensor(sparse("torch.sparse_coo", {1, 2, 3})));
  EXPECT_FALSE(layout_tensor(sparse("os.system", {1, 2, 3})));
  EXPECT_FALSE(layout_tensor(ones({2})));
}

TEST(TensorLayout, FindsIndicesOutsideOfTheShape) {
  EXPECT_EQ(checked(coo(1, Size{{2, 3}})), "");
  EXPECT_EQ(checked(coo(2, Size{{2, 3}})), "E_SPARSE_INDEX");
  EXPECT_EQ(checked(coo(-1, Size{{2, 3}})), "E_SPARSE_INDEX");
  EXPECT_EQ(checked(coo(1, Size{{2, 3, 4}})), "E_SPARSE_INDEX");
  EXPECT_EQ(checked(csr({0, 1, 2}, {1, 2})), "");
  EXPECT_EQ(checked(csr({0, 1, 2}, {1, 3})), "E_SPARSE_INDEX");
  EXPECT_EQ(checked(csr({0, 2, 1}, {1, 2})), "E_SPARSE_INDEX");
  EXPECT_EQ(checked(csr({0, 1, 9}, {1, 2})), "E_SPARSE_INDEX");
}

TEST(TensorLayout, BlocksCountAsOneColumn) {
  const auto blocks = [](std::int64_t column) {
    return sparse(
        "torch.sparse_bsr",
        {numbers({0, 1}, {2}),
         numbers({column}, {1}),
         ones({1, 2, 2}),
         Size{{2, 4}}});
  };
  EXPECT_EQ(checked(blocks(1)), "");
  EXPECT_EQ(checked(blocks(2)), "E_SPARSE_INDEX");
}

// LibTorch: (layout number, size, requires_grad, parts..., hooks)
TEST(TensorLayout, TakesLibTorchsSpelling) {
  auto args = std::make_shared<Tuple>();
  args->items = {
      1,
      Value::tuple({2, 3}),
      false,
      numbers({0, 1, 1, 1}, {2, 2}),
      ones({2}),
      Value::ordered_dict({})};
  const auto value = call_global("torch._utils._rebuild_sparse_tensor", args);
  ASSERT_TRUE(value) << to_string(value.error());
  EXPECT_EQ(describe(*value), "sparse_coo float32 [2, 3]");
  EXPECT_THAT(
      write_pickle(*value)->pickle,
      HasSubstr("torch.serialization\n_get_layout"));
  args->items[0] = 3;
  EXPECT_FALSE(call_global("torch._utils._rebuild_sparse_tensor", args));
}

} // namespace
} // namespace lockstep::ckpt
