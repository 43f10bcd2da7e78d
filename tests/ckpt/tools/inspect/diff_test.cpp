// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>
#include <limits>

#include <gmock/gmock.h>

#include "lockstep/ckpt/core/quantizer.h"
#include "lockstep/ckpt/inspect.h"
#include "lockstep/ckpt/tensor.h"
#include "tests/ckpt/value_fixture.h"

namespace lockstep::ckpt {
namespace {

using testing::IsEmpty;

DiffReport
report_of(const Value& a, const Value& b, const DiffOptions& options = {}) {
  auto report = diff(a, b, options);
  EXPECT_TRUE(report) << to_string(report.error());
  return report ? *std::move(report) : DiffReport{};
}

DiffRow row_of(const Tensor& a, const Tensor& b, const DiffOptions& o = {}) {
  const auto report =
      report_of(Value::dict({{"w", a}}), Value::dict({{"w", b}}), o);
  EXPECT_EQ(report.rows.size(), 1U);
  return report.rows.empty() ? DiffRow{} : report.rows[0];
}

bool equal(const Tensor& a, const Tensor& b, const DiffOptions& options = {}) {
  return report_of(a, b, options).rows.empty();
}

TEST(Diff, NamesWhatIsOnOneSide) {
  const auto report = report_of(
      Value::dict({{"a", floats({1})}, {"b", floats({2})}}),
      Value::dict({{"b", floats({2})}, {"c", floats({3, 4})}}));
  ASSERT_EQ(report.rows.size(), 2U);
  EXPECT_EQ(report.rows[0].kind, DiffKind::kOnlyA);
  EXPECT_EQ(report.rows[0].name, "a");
  EXPECT_EQ(report.rows[1].kind, DiffKind::kOnlyB);
  EXPECT_EQ(report.rows[1].b, "float32 [2]");
  EXPECT_EQ(report.equal, 1U);
}

// The device "meta": shapes and types can be compared, elements cannot.
TEST(Diff, SaysWhichTensorsHaveNoBytes) {
  const auto meta = [](std::int64_t size, DType dtype) {
    return Value::dict(
        {{"w",
          call_of(
              "torch._utils._rebuild_meta_tensor_no_storage",
              {DTypeValue{dtype}, Size{{size}}, Size{{1}}, false})}});
  };
  const Value two = meta(2, DType::kFloat32);
  const auto same = report_of(two, two);
  EXPECT_THAT(same.rows, IsEmpty());
  EXPECT_EQ(same.equal, 0U);
  EXPECT_THAT(same.without_bytes, testing::ElementsAre("w"));
  const Value real = Value::dict({{"w", floats({1, 2})}});
  for (const auto& report : {report_of(two, real), report_of(real, two)}) {
    ASSERT_EQ(report.rows.size(), 1U);
    EXPECT_EQ(report.rows[0].kind, DiffKind::kNoBytes);
    EXPECT_THAT(report.without_bytes, IsEmpty());
  }
  EXPECT_EQ(report_of(two, real).rows[0].a, "float32 [2], no bytes");
  const auto kind = [&](const Value& other) {
    return report_of(two, other).rows.at(0).kind;
  };
  EXPECT_EQ(kind(meta(3, DType::kFloat32)), DiffKind::kShape);
  EXPECT_EQ(kind(meta(2, DType::kFloat16)), DiffKind::kDType);
  EXPECT_EQ(kind(Value::dict({})), DiffKind::kOnlyA);
}

TEST(Diff, NamesThatLookAlikeAreComparedInTheirOrder) {
  const auto file = [](float inner) {
    return Value::dict(
        {{"a.b", floats({1})}, {"a", Value::dict({{"b", floats({inner})}})}});
  };
  EXPECT_EQ(report_of(file(2), file(2)).equal, 2U);
  const auto report = report_of(file(2), file(9));
  ASSERT_EQ(report.rows.size(), 1U);
  EXPECT_EQ(report.rows[0].name, "a.b (2)");
  EXPECT_EQ(report.equal, 1U);
}

TEST(Diff, CountsElementsAndShowsTheFirst) {
  const DiffRow row = row_of(floats({1, 2, 3, 4}), floats({1, 2.5, 3, 8}));
  EXPECT_EQ(row.kind, DiffKind::kValues);
  EXPECT_EQ(row.different, 2U);
  EXPECT_EQ(row.elements, 4U);
  EXPECT_EQ(row.first, 1U);
  EXPECT_EQ(row.first_b, "2.5");
  EXPECT_EQ(row.max_abs, 4.0);
  EXPECT_EQ(row.max_rel, 0.5);
}

TEST(Diff, AnythingIsInfinitelyFarFromZero) {
  EXPECT_EQ(
      row_of(floats({3}), floats({0})).max_rel,
      std::numeric_limits<double>::infinity());
}

Tensor quantized(const Quantizer& quantizer) {
  Tensor tensor = tensor_of<std::int8_t>(DType::kQInt8, {1, 2}, {2});
  tensor.quantizer = std::make_shared<Value>(quantizer_value(quantizer));
  return tensor;
}

TEST(Diff, EqualIntegersOfAnotherScaleDiffer) {
  const Tensor a = quantized({.scale = 0.5});
  EXPECT_TRUE(equal(a, quantized({.scale = 0.5})));
  const DiffRow row = row_of(a, quantized({.scale = 0.25}));
  EXPECT_EQ(row.kind, DiffKind::kQuantizer);
  EXPECT_EQ(row.a, "qint8 [2], scale 0.5, zero point 0");
  EXPECT_EQ(row.b, "qint8 [2], scale 0.25, zero point 0");
}

TEST(Diff, ScalesOfChannelsAreTensorsOfTheirOwn) {
  const auto channels = [](double last) {
    return quantized(
        {.is_per_channel = true,
         .scales = tensor_of<double>(DType::kFloat64, {1, last}, {2}),
         .zero_points = tensor_of<std::int64_t>(DType::kInt64, {0, 0}, {2})});
  };
  EXPECT_TRUE(equal(channels(2), channels(2)));
  const DiffRow row = row_of(channels(2), channels(3));
  EXPECT_EQ(row.name, "w.scales");
  EXPECT_EQ(row.kind, DiffKind::kValues);
}

TEST(Diff, TolerancesFollowTheSecondFile) {
  const Tensor a = floats({100, 1});
  const Tensor b = floats({101, 1.0F});
  EXPECT_FALSE(equal(a, b));
  EXPECT_TRUE(equal(a, b, {.rtol = 0.01}));
  EXPECT_FALSE(equal(a, b, {.rtol = 0.009}));
  EXPECT_TRUE(equal(a, b, {.atol = 1}));
}

TEST(Diff, NanEqualsNanAndZerosAreEqual) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  EXPECT_TRUE(equal(floats({nan, inf, 0.0F}), floats({-nan, inf, -0.0F})));
  EXPECT_FALSE(equal(floats({nan}), floats({1}), {.atol = 1e9}));
  EXPECT_FALSE(equal(floats({inf}), floats({-inf}), {.atol = 1e9}));
}

// As torch.allclose: no tolerance reaches from a number to infinity.
TEST(Diff, NoNumberIsNearInfinity) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  for (const DiffOptions& options : std::vector<DiffOptions>{
           {.rtol = 1e-3},
           {.rtol = 1e300},
           {.atol = 1e300},
           {.rtol = 1, .atol = 1}}) {
    EXPECT_FALSE(equal(floats({1, 2}), floats({1, kInf}), options));
    EXPECT_FALSE(equal(floats({1, -kInf}), floats({1, 2}), options));
    EXPECT_FALSE(equal(floats({kInf}), floats({-kInf}), options));
    EXPECT_TRUE(equal(floats({kInf, 1}), floats({kInf, 1}), options));
  }
}

TEST(Diff, InfinityIsOneNumberInAllTypes) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const Tensor wide = floats({1, kInf, -kInf});
  const std::vector<std::uint16_t> half{0x3C00, 0x7C00, 0xFC00};
  const std::vector<std::uint16_t> brain{0x3F80, 0x7F80, 0xFF80};
  for (const Tensor& narrow :
       {tensor_of<std::uint16_t>(DType::kFloat16, half, {3}),
        tensor_of<std::uint16_t>(DType::kBFloat16, brain, {3})}) {
    const DiffRow row = row_of(wide, narrow);
    EXPECT_EQ(row.kind, DiffKind::kDType);
    EXPECT_EQ(row.different, 0U);
    EXPECT_EQ(row.elements, 3U);
  }
}

TEST(Diff, TypesThatHoldEqualNumbersDifferInTypeOnly) {
  const Tensor ints = tensor_of<std::int32_t>(DType::kInt32, {1, 2}, {2});
  const DiffRow row = row_of(floats({1, 2}), ints);
  EXPECT_EQ(row.kind, DiffKind::kDType);
  EXPECT_EQ(row.different, 0U);
  EXPECT_EQ(row.elements, 2U);
}

TEST(Diff, WideIntegersAreComparedExactly) {
  const std::int64_t big = (1LL << 60) + 1;
  const DiffRow row = row_of(
      tensor_of<std::int64_t>(DType::kInt64, {big}, {1}),
      tensor_of<std::int64_t>(DType::kInt64, {big - 1}, {1}));
  EXPECT_EQ(row.different, 1U);
  EXPECT_EQ(row.max_abs, 1.0);
}

template <class T>
Tensor one(DType dtype, T number) {
  return tensor_of<T>(dtype, {number}, {1});
}

TEST(Diff, IntegersBeyond53BitsKeepTheirDistance) {
  constexpr std::int64_t kBig = 1LL << 60;
  constexpr auto kMax = std::numeric_limits<std::uint64_t>::max();
  struct Pair {
    Tensor a = {};
    Tensor b = {};
    double distance = 0;
  };
  const auto i64 = [](std::int64_t x) { return one(DType::kInt64, x); };
  const auto u64 = [](std::uint64_t x) { return one(DType::kUInt64, x); };
  for (const Pair& pair : std::vector<Pair>{
           {i64(kBig + 200), i64(kBig + 264), 64},
           {i64(-kBig - 200), i64(-kBig - 264), 64},
           {u64(kMax), u64(kMax - 5), 5},
           {u64(kMax), i64(-1), 0x1p64},
           {u64(static_cast<std::uint64_t>(kBig) + 1), i64(kBig), 1},
           {i64((1LL << 53) + 1), one(DType::kFloat64, 0x1p53), 1},
           {one(DType::kFloat32, 0x1p60F), i64(kBig - 3), 3}}) {
    const DiffRow row = row_of(pair.a, pair.b);
    EXPECT_EQ(row.different, 1U) << row.first_a << " " << row.first_b;
    EXPECT_EQ(row.max_abs, pair.distance);
    const DiffRow near = row_of(pair.a, pair.b, {.atol = pair.distance / 2});
    EXPECT_EQ(near.different, 1U) << row.first_a << " " << row.first_b;
    const auto reached =
        report_of(pair.a, pair.b, {.atol = pair.distance}).rows;
    EXPECT_TRUE(reached.empty() || reached[0].different == 0);
  }
  EXPECT_EQ(row_of(i64(kBig), one(DType::kFloat64, 0x1p60)).different, 0U);
}

TEST(Diff, ComplexPartsCount) {
  const Tensor a = tensor_of<float>(DType::kComplex64, {1, 2, 3, 4}, {2});
  const Tensor b = tensor_of<float>(DType::kComplex64, {1, 2, 3, 5}, {2});
  const DiffRow row = row_of(a, b);
  EXPECT_EQ(row.different, 1U);
  EXPECT_EQ(row.first_a, "(3+4j)");
  Tensor lazy = b;
  lazy.is_conj = true;
  EXPECT_EQ(row_of(b, lazy).different, 2U);
}

TEST(Diff, LargeTensorsOfDifferentTypesStayInStep) {
  const std::size_t count = kTensorBlockBytes / 4 + 1000;
  std::vector<float> a(count, 1);
  const std::vector<std::int64_t> b(count, 1);
  a[count - 1] = 2;
  Tensor wide = tensor_of<std::int64_t>(
      DType::kInt64,
      b,
      {static_cast<std::int64_t>(count)});
  const DiffRow row = row_of(floats(a), wide);
  EXPECT_EQ(row.different, 1U);
  EXPECT_EQ(row.first, count - 1);
  EXPECT_EQ(row.elements, count);
}

TEST(Diff, MapsMakeNamesMeet) {
  const Value a =
      Value::dict({{"module.fc.w", floats({1})}, {"module.fc.b", floats({2})}});
  const Value b = Value::dict({{"fc.w", floats({1})}, {"fc.b", floats({2})}});
  const auto apart = report_of(a, b);
  EXPECT_EQ(apart.rows.size(), 4U);
  EXPECT_EQ(apart.map_hint, "module.=");
  EXPECT_THAT(report_of(a, b, {.maps = {{"module.", ""}}}).rows, IsEmpty());
  EXPECT_EQ(report_of(b, a).map_hint, "module.=");
}

TEST(Diff, RefusesMapsThatCollide) {
  const Value a = Value::dict({{"module.w", floats({1})}, {"w", floats({2})}});
  const auto result = diff(a, a, {.maps = {{"module.", ""}}});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kInvalidArgument);
}

TEST(Diff, ShapesAreNotReadElementwise) {
  const DiffRow row = row_of(floats({1, 2}), floats({1, 2, 3}));
  EXPECT_EQ(row.kind, DiffKind::kShape);
  EXPECT_EQ(row.elements, 0U);
}

// As an array of texts stands in the tree of an npz archive.
TEST(Diff, NamesArraysThatWereNotRead) {
  const Value array = Object{.global = "numpy.ndarray"};
  const Value a = Value::dict({{"w", floats({1})}, {"x", array}});
  const Value b = Value::dict({{"y", array}, {"x", array}, {"w", floats({1})}});
  const DiffReport report = report_of(a, b);
  EXPECT_THAT(report.rows, IsEmpty());
  EXPECT_EQ(report.equal, 1U);
  EXPECT_THAT(report.unread, testing::ElementsAre("x", "y"));
  EXPECT_THAT(report_of(Value::dict({}), Value::dict({})).unread, IsEmpty());
}

// As NumPy pickles an array: numpy.core before NumPy 2.
TEST(Diff, NamesArraysOfPickles) {
  for (const char* core : {"numpy.core", "numpy._core"}) {
    const Value array = Object{
        .global = std::string(core) + ".multiarray._reconstruct",
        .args = std::make_shared<Value>(Value::tuple({}))};
    const Value a = Value::dict({{"n", Value::list({1, array})}});
    EXPECT_THAT(report_of(a, a).unread, testing::ElementsAre("n.1"));
  }
}

Value sparse(std::int64_t rows) {
  const Tensor indices =
      tensor_of<std::int64_t>(DType::kInt64, {0, 1, 1, 0}, {2, 2});
  return Object{
      .global = "torch._utils._rebuild_sparse_tensor",
      .args = std::make_shared<Value>(Value::tuple(
          {Object{
               .global = "torch.serialization._get_layout",
               .args =
                   std::make_shared<Value>(Value::tuple({"torch.sparse_coo"}))},
           Value::tuple({indices, floats({1, 2}), Size{{rows, 2}}})}))};
}

TEST(Diff, SparseTensorsOfAnotherShapeDiffer) {
  EXPECT_THAT(report_of(sparse(2), sparse(2)).rows, IsEmpty());
  const DiffReport report = report_of(
      Value::dict({{"w", sparse(2)}}),
      Value::dict({{"w", sparse(3)}}));
  ASSERT_EQ(report.rows.size(), 1U);
  EXPECT_EQ(report.rows[0].kind, DiffKind::kShape);
  EXPECT_EQ(report.rows[0].name, "w");
  EXPECT_EQ(report.compared, 2U); // indices and values
}

} // namespace
} // namespace lockstep::ckpt
