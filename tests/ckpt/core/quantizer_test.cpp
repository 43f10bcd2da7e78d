// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/core/quantizer.h"

#include <gmock/gmock.h>

#include "lockstep/ckpt/pickle/globals.h"
#include "lockstep/ckpt/pickle/pickle.h"
#include "lockstep/ckpt/print.h"
#include "lockstep/ckpt/tensor.h"
#include "tests/ckpt/value_fixture.h"

namespace lockstep::ckpt {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Value scheme(const char* name) {
  return Object{.global = name};
}

Value per_tensor(double scale = 0.5, std::int64_t zero_point = 3) {
  return Value::tuple({scheme("torch.per_tensor_affine"), scale, zero_point});
}

Value per_channel(std::size_t scales, std::int64_t axis) {
  const auto size = static_cast<std::int64_t>(scales);
  return Value::tuple(
      {scheme("torch.per_channel_affine"),
       tensor_of<double>(
           DType::kFloat64,
           std::vector<double>(scales, 0.25),
           {size}),
       tensor_of<std::int64_t>(
           DType::kInt64,
           std::vector<std::int64_t>(scales, 0),
           {size}),
       axis});
}

// `_rebuild_qtensor` over `bytes` bytes of `dtype`, as a pickle calls it.
Result<Value> rebuild(
    DType dtype,
    std::size_t bytes,
    Size size,
    Size stride,
    Value quantizer) {
  const auto storage = storage_of(std::string(bytes, '\1'), dtype);
  auto args = std::make_shared<Tuple>();
  args->items = {
      storage,
      0,
      std::move(size),
      std::move(stride),
      std::move(quantizer),
      false,
      Value::ordered_dict({})};
  return call_global("torch._utils._rebuild_qtensor", args);
}

std::string detail_of(const Result<Value>& value) {
  return value ? "" : value.error().detail;
}

TEST(Quantizer, IsReadPerTensor) {
  const auto value =
      rebuild(DType::kQInt8, 6, Size{{2, 3}}, Size{{3, 1}}, per_tensor());
  ASSERT_TRUE(value) << to_string(value.error());
  const Tensor& tensor = *value->as_tensor();
  const auto quantizer = read_quantizer(tensor);
  ASSERT_TRUE(quantizer);
  EXPECT_FALSE(quantizer->is_per_channel);
  EXPECT_EQ(quantizer->scale, 0.5);
  EXPECT_EQ(quantizer->zero_point, 3);
  EXPECT_EQ(to_text(*value), "tensor(qint8 [2, 3], scale 0.5, zero point 3)");
}

TEST(Quantizer, IsReadPerChannelFromTensorsAndFromLists) {
  const auto made =
      rebuild(DType::kQUInt8, 6, Size{{2, 3}}, Size{{3, 1}}, per_channel(3, 1));
  ASSERT_TRUE(made) << to_string(made.error());
  EXPECT_EQ(read_quantizer(*made->as_tensor())->axis, 1);
  EXPECT_EQ(quantizer_text(*made->as_tensor()), "3 scales along axis 1");
  const Value lists = Value::tuple(
      {scheme("torch.per_channel_affine_float_qparams"),
       Value::list({0.5, 0.25}),
       Value::list({1.5, 2.5}),
       0});
  const auto old = rebuild(DType::kQInt8, 6, Size{{2, 3}}, Size{{3, 1}}, lists);
  ASSERT_TRUE(old) << to_string(old.error());
  EXPECT_TRUE(read_quantizer(*old->as_tensor())->is_per_channel);
}

TEST(Quantizer, RefusesWrongParameters) {
  const auto given = [](Value quantizer) {
    return detail_of(rebuild(
        DType::kQInt8,
        6,
        Size{{2, 3}},
        Size{{3, 1}},
        std::move(quantizer)));
  };
  EXPECT_EQ(given(per_channel(2, 0)), "");
  EXPECT_EQ(given(per_channel(2, 1)), "E_QPARAMS");
  EXPECT_EQ(given(per_channel(2, 2)), "E_QPARAMS");
  EXPECT_EQ(given(per_channel(2, -1)), "E_QPARAMS");
  EXPECT_EQ(given(None()), "E_QPARAMS");
  EXPECT_EQ(given(Value::tuple({scheme("os.system"), 1, 2})), "E_QPARAMS");
  EXPECT_EQ(
      given(Value::tuple({scheme("torch.per_tensor_affine"), "a", 2})),
      "E_QPARAMS");
  EXPECT_EQ(
      detail_of(rebuild(
          DType::kFloat32,
          24,
          Size{{2, 3}},
          Size{{3, 1}},
          per_tensor())),
      "E_QPARAMS");
}

TEST(Quantizer, PacksRowsOfNarrowTypesIntoWholeBytes) {
  struct Row {
    DType dtype;
    std::size_t bytes;
    Size size;
    const char* detail;
  };
  for (const Row& row : std::vector<Row>{
           {DType::kQUInt4x2, 6, {{3, 3}}, ""},
           {DType::kQUInt4x2, 5, {{3, 3}}, "E_VIEW_BOUNDS"},
           {DType::kQUInt4x2, 3, {{5}}, ""},
           {DType::kQUInt2x4, 3, {{3, 3}}, ""},
           {DType::kQUInt2x4, 2, {{5}}, ""},
           {DType::kQUInt2x4, 1, {{5}}, "E_VIEW_BOUNDS"},
           {DType::kQUInt2x4, 9, {{-1}}, "E_VIEW_NEGATIVE"},
           {DType::kQUInt2x4, 9, {{INT64_MAX, INT64_MAX}}, "E_OVERFLOW"}}) {
    const Size stride{std::vector<std::int64_t>(row.size.sizes.size(), 1)};
    EXPECT_EQ(
        detail_of(
            rebuild(row.dtype, row.bytes, row.size, stride, per_tensor())),
        row.detail)
        << dtype_info(row.dtype).name << " of " << row.bytes;
  }
}

TEST(Quantizer, PackedElementsAreShownAsBytes) {
  const auto value =
      rebuild(DType::kQUInt4x2, 2, Size{{3}}, Size{{1}}, per_tensor());
  ASSERT_TRUE(value);
  const auto stats = tensor_stats(*value->as_tensor());
  ASSERT_TRUE(stats);
  EXPECT_EQ(stats->elements, 3U);
  EXPECT_THAT(stats->head, ElementsAre("0x01", "0x01"));
}

TEST(Quantizer, IsWrittenAsItWasRead) {
  Tensor tensor = tensor_of<std::int8_t>(DType::kQInt8, {1, 2}, {2});
  EXPECT_EQ(write_pickle(tensor).error().detail, "E_NOT_SAFE");
  tensor.quantizer =
      std::make_shared<Value>(quantizer_value({.scale = 0.5, .zero_point = 1}));
  const auto tree = write_pickle(tensor);
  ASSERT_TRUE(tree) << to_string(tree.error());
  EXPECT_THAT(tree->pickle, HasSubstr("_rebuild_qtensor"));
  EXPECT_THAT(tree->pickle, HasSubstr("ctorch\nper_tensor_affine\n"));
}

// Of torch.quantize_per_channel(arange(12).reshape(3, 4), ..., quint4x2), the
// part that q[1] views, and all.
TEST(PackedStats, ShowTheBytesOfTheViewAlone) {
  Tensor tensor = tensor_of<std::uint8_t>(
      DType::kQUInt4x2,
      {0x10, 0x32, 0x54, 0x76, 0x98, 0xba},
      {3, 4});
  EXPECT_EQ(tensor_stats(tensor)->head.size(), 6U);
  tensor.sizes = {4};
  tensor.strides = {1};
  tensor.offset = 4;
  EXPECT_EQ(
      tensor_stats(tensor)->head,
      (std::vector<std::string>{"0x98", "0xba"}));
}

} // namespace
} // namespace lockstep::ckpt
