// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>
#include <limits>

#include <gmock/gmock.h>

#include "lockstep/ckpt/core/quantizer.h"
#include "lockstep/ckpt/core/storage_class.h"
#include "lockstep/ckpt/core/tensor_layout.h"
#include "lockstep/ckpt/edit.h"
#include "tests/ckpt/logical_bytes.h"
#include "tests/ckpt/value_fixture.h"

namespace lockstep::ckpt {
namespace {

using testing::ElementsAre;

template <class T>
std::vector<T> elements_of(const Tensor& tensor) {
  const std::string bytes = logical_bytes(tensor).value();
  std::vector<T> elements(bytes.size() / sizeof(T));
  std::memcpy(elements.data(), bytes.data(), bytes.size());
  return elements;
}

template <class To, class From>
std::vector<To> cast(DType from, const std::vector<From>& elements, DType to) {
  const Value root = tensor_of<From>(
      from,
      elements,
      {static_cast<std::int64_t>(elements.size())});
  const auto result = convert_tensors(root, {.dtype = to});
  EXPECT_TRUE(result) << to_string(result.error());
  EXPECT_EQ(result->root.as_tensor()->dtype, to);
  return elements_of<To>(*result->root.as_tensor());
}

TEST(ConvertTensors, RoundsToNearestEven) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  using Bits = std::uint16_t;
  // 1 + 2^-8 lies halfway: to even; a little more goes up.
  EXPECT_THAT(
      (cast<Bits, float>(
          DType::kFloat32,
          {1.0F, 1.00390625F, 1.01171875F, 1.0040F, -2.5F, kInf, 3.4e38F},
          DType::kBFloat16)),
      ElementsAre(0x3F80, 0x3F80, 0x3F82, 0x3F81, 0xC020, 0x7F80, 0x7F80));
  // Largest number, halfway to infinity, subnormals and halfway between.
  EXPECT_THAT(
      (cast<Bits, float>(
          DType::kFloat32,
          {65504.0F,
           65519.0F,
           65520.0F,
           -kInf,
           0x1p-14F,
           0x1p-24F,
           0x1p-25F,
           0x1.8p-24F,
           -0.0F,
           1.0F},
          DType::kFloat16)),
      ElementsAre(
          0x7BFF,
          0x7BFF,
          0x7C00,
          0xFC00,
          0x0400,
          0x0001,
          0x0000,
          0x0002,
          0x8000,
          0x3C00));
}

TEST(ConvertTensors, NamesWhatBecameInfinite) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const auto one = [](float number) {
    return Value(tensor_of<float>(DType::kFloat32, {number}, {1}));
  };
  const Value root =
      Value::dict({{"fits", one(65504)}, {"inf", one(kInf)}, {"w", one(7e4F)}});
  const auto half = convert_tensors(root, {.dtype = DType::kFloat16});
  ASSERT_TRUE(half);
  EXPECT_THAT(overflowed(*half), testing::IsEmpty()) << "nothing is read yet";
  for (const char* name : {"fits", "inf", "w"}) {
    EXPECT_TRUE(logical_bytes(*half->root.find(name)->as_tensor()));
  }
  EXPECT_THAT(overflowed(*half), ElementsAre("w"));
}

TEST(ConvertTensors, WidensEveryHalfExactly) {
  std::vector<std::uint16_t> all(0x10000);
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i] = static_cast<std::uint16_t>(i);
  }
  for (const DType type : {DType::kFloat16, DType::kBFloat16}) {
    const auto wide = cast<float, std::uint16_t>(type, all, DType::kFloat32);
    const auto back = cast<std::uint16_t, float>(DType::kFloat32, wide, type);
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (!std::isnan(wide[i])) {
        EXPECT_EQ(back[i], all[i]);
      }
    }
  }
  const auto doubles =
      cast<double, std::uint16_t>(DType::kFloat16, {0x3555}, DType::kFloat64);
  EXPECT_THAT(doubles, ElementsAre(0.333251953125));
}

TEST(ConvertTensors, LeavesIntegersAndSharingAlone) {
  const Tensor base = tensor_of<float>(DType::kFloat32, {1, 2, 3, 4}, {4});
  Tensor half = base;
  half.sizes = {2};
  half.offset = 2;
  const Value root = Value::dict(
      {{"base", base},
       {"half", half},
       {"count", tensor_of<std::int64_t>(DType::kInt64, {7}, {})}});
  const auto result = convert_tensors(root, {.dtype = DType::kFloat64});
  ASSERT_TRUE(result) << to_string(result.error());
  const Tensor& a = *result->root.find("base")->as_tensor();
  const Tensor& b = *result->root.find("half")->as_tensor();
  EXPECT_EQ(a.storage, b.storage);
  EXPECT_EQ(a.storage->nbytes, 32U);
  EXPECT_THAT(elements_of<double>(b), ElementsAre(3, 4));
  const Tensor& count = *result->root.find("count")->as_tensor();
  EXPECT_EQ(count.dtype, DType::kInt64);
  EXPECT_EQ(result->changes.size(), 2U);
  EXPECT_EQ(root.find("base")->as_tensor()->dtype, DType::kFloat32);
}

TEST(ConvertTensors, ClonesViewsAndKeepsTiedWeights) {
  Tensor column = tensor_of<float>(DType::kFloat32, {1, 2, 3, 4, 5, 6}, {2, 3});
  column.sizes = {2};
  column.strides = {3};
  column.offset = 1;
  const Tensor tied = tensor_of<float>(DType::kFloat32, {9}, {1});
  const Value root =
      Value::dict({{"column", column}, {"a", tied}, {"b", tied}});
  const auto result = convert_tensors(root, {.clone_views = true});
  ASSERT_TRUE(result);
  const Tensor& cut = *result->root.find("column")->as_tensor();
  EXPECT_EQ(cut.storage->nbytes, 8U);
  EXPECT_TRUE(cut.is_contiguous());
  EXPECT_THAT(elements_of<float>(cut), ElementsAre(2, 5));
  EXPECT_EQ(
      result->root.find("a")->as_tensor()->storage,
      result->root.find("b")->as_tensor()->storage);
}

// Two elements in a byte, rows of whole bytes: [3, 3] takes 6.
TEST(ConvertTensors, ClonesViewsOfElementsThatShareBytes) {
  Tensor whole = bytes_tensor("abcdef", {6});
  whole.dtype = DType::kQUInt4x2;
  whole.sizes = {3, 3};
  whole.strides = {3, 1};
  Tensor part = whole;
  part.storage = storage_of("..abcdef", DType::kQUInt4x2);
  part.offset = 2;
  const Value root = Value::dict({{"whole", whole}, {"part", part}});
  const auto result = convert_tensors(root, {.clone_views = true});
  ASSERT_TRUE(result) << to_string(result.error());
  for (const char* name : {"whole", "part"}) {
    const Tensor& tensor = *result->root.find(name)->as_tensor();
    EXPECT_EQ(tensor.storage->nbytes, 6U) << name;
    EXPECT_EQ(as_text(*tensor.storage->source->load()), "abcdef") << name;
  }
  ASSERT_EQ(result->changes.size(), 1U);
  EXPECT_EQ(result->changes[0].name, "part");
  EXPECT_EQ(result->changes[0].to_bytes, 6U);
}

TEST(ConvertTensors, MapsLocationsAndKeepsSharedNodes) {
  Tensor tensor = tensor_of<float>(DType::kFloat32, {1}, {1});
  tensor.storage->location = "cuda:3";
  const Value inner = Value::dict({{"w", tensor}});
  const Value root = Value::list({inner, inner});
  const auto result = convert_tensors(root, {.map_location = "cpu"});
  ASSERT_TRUE(result);
  const auto& items = result->root.as_list()->items;
  EXPECT_EQ(items[0].as_dict(), items[1].as_dict());
  EXPECT_EQ(items[0].find("w")->as_tensor()->storage->location, "cpu");
  EXPECT_EQ(tensor.storage->location, "cuda:3");
}

// torch.FloatStorage(...) as an entry: its class says the type of its bytes.
TEST(ConvertTensors, TypedStoragesGetTheClassOfTheirType) {
  struct TypedRow {
    std::string before = {};
    DType dtype = DType::kFloat32;
    std::string after = {};
  };
  for (const TypedRow& row : std::vector<TypedRow>{
           {"torch.DoubleStorage", DType::kFloat64, "torch.HalfStorage"},
           {"torch.FloatStorage", DType::kFloat32, "torch.HalfStorage"},
           {"torch.HalfStorage", DType::kFloat16, "torch.HalfStorage"},
           {"torch.BFloat16Storage", DType::kBFloat16, "torch.HalfStorage"},
           {"torch.cuda.FloatStorage",
            DType::kFloat32,
            "torch.cuda.HalfStorage"},
           {"torch.LongStorage", DType::kInt64, "torch.LongStorage"},
           {"torch.ByteStorage", DType::kUInt8, "torch.ByteStorage"},
           {"torch.ComplexFloatStorage",
            DType::kComplex64,
            "torch.ComplexFloatStorage"},
           {"torch.storage.UntypedStorage",
            DType::kUInt8,
            "torch.storage.UntypedStorage"}}) {
    const auto storage = storage_of(std::string(32, '\0'), row.dtype);
    storage->class_name = row.before;
    const Value root = Value::dict({{"s", storage_object(storage)}});
    const auto result = convert_tensors(root, {.dtype = DType::kFloat16});
    ASSERT_TRUE(result) << to_string(result.error());
    const Object& made = *result->root.find("s")->as_object();
    EXPECT_EQ(made.global, row.after) << row.before;
    EXPECT_EQ(
        made.args->as_tuple()->items.at(0).as_tensor()->dtype,
        storage_class_dtype(row.after))
        << row.before;
    EXPECT_EQ(root.find("s")->as_object()->global, row.before);
  }
  const Value type = Object{.global = "torch.FloatStorage"};
  const auto same = convert_tensors(type, {.dtype = DType::kFloat16});
  ASSERT_TRUE(same);
  EXPECT_EQ(same->root.as_object()->global, "torch.FloatStorage");
}

Tensor on_cuda(Tensor tensor) {
  tensor.storage->location = "cuda:0";
  return tensor;
}

// Every place of a tensor's device and type.
TEST(ConvertTensors, MapsWhatLiesInsideOfTensors) {
  const auto part = [] { return on_cuda(floats({1})); };
  Tensor quantized =
      on_cuda(tensor_of<std::int8_t>(DType::kQInt8, {1, 2}, {2}));
  quantized.quantizer = std::make_shared<Value>(quantizer_value(
      {.is_per_channel = true,
       .scales = on_cuda(tensor_of<double>(DType::kFloat64, {1, 2}, {2})),
       .zero_points =
           on_cuda(tensor_of<std::int64_t>(DType::kInt64, {0, 0}, {2}))}));
  Tensor marked = part();
  marked.attributes = std::make_shared<Value>(Value::dict({{"ema", part()}}));
  const Value root = Value::dict(
      {{"quantized", quantized},
       {"marked", marked},
       {"sparse",
        call_of(
            "torch._utils._rebuild_sparse_tensor",
            {call_of("torch.serialization._get_layout", {"torch.sparse_coo"}),
             Value::tuple({part(), part(), Size{{2}}})})},
       {"nested",
        call_of(
            "torch._utils._rebuild_nested_tensor",
            {part(), part(), part(), part()})},
       {"device",
        call_of(
            "torch._utils._rebuild_device_tensor_from_cpu_tensor",
            {part(), DTypeValue{DType::kFloat32}, "cuda:0", false})}});
  const auto result =
      convert_tensors(root, {.dtype = DType::kFloat16, .map_location = "cpu"});
  ASSERT_TRUE(result) << to_string(result.error());
  std::size_t tensors = 0;
  NodeWalk().run(result->root, [&](const Value& node) {
    EXPECT_NE(node.text(), "cuda:0");
    if (const Tensor* tensor = node.as_tensor()) {
      EXPECT_EQ(tensor->storage->location, "cpu");
      ++tensors;
    }
    return true;
  });
  EXPECT_EQ(tensors, 12U);
  const Quantizer scales =
      *read_quantizer(*result->root.find("quantized")->as_tensor());
  EXPECT_EQ(scales.scales.as_tensor()->dtype, DType::kFloat64);
}

TEST(ConvertTensors, TypesOfTensorsWithoutAStorageAreArguments) {
  const DTypeValue before{DType::kFloat32};
  const Value meta = call_of(
      "torch._utils._rebuild_meta_tensor_no_storage",
      {before, Size{{2}}, Size{{1}}, false});
  const Value typed = call_of(
      "torch._tensor._rebuild_from_type_v2",
      {Object{.global = meta.as_object()->global},
       Object{.global = "torch.Tensor"},
       *meta.as_object()->args,
       Value::dict({})});
  const Value device = call_of(
      "torch._utils._rebuild_device_tensor_from_cpu_tensor",
      {floats({1}), before, "xla:0", false});
  const Value counts = call_of(
      "torch._utils._rebuild_meta_tensor_no_storage",
      {DTypeValue{DType::kInt64}, Size{{2}}, Size{{1}}, false});
  const Value root = Value::list({meta, typed, device, counts, before});
  const auto result = convert_tensors(root, {.dtype = DType::kFloat16});
  ASSERT_TRUE(result) << to_string(result.error());
  const auto& made = result->root.as_list()->items;
  for (const std::size_t i : {0U, 1U, 2U}) {
    EXPECT_EQ(layout_tensor(made[i])->dtype, DType::kFloat16) << i;
  }
  const auto& arguments = made[2].as_object()->args->as_tuple()->items;
  EXPECT_EQ(arguments[1].as_dtype()->dtype, DType::kFloat16);
  EXPECT_EQ(arguments[2].text(), "xla:0");
  EXPECT_EQ(layout_tensor(made[3])->dtype, DType::kInt64);
  EXPECT_EQ(made[4].as_dtype()->dtype, DType::kFloat32) << "a setting";
}

TEST(ConvertTensors, RefusesWhatCannotBe) {
  Tensor floats = tensor_of<float>(DType::kFloat32, {1, 2}, {2});
  Tensor ints = floats;
  ints.dtype = DType::kInt32;
  const Value root = Value::dict({{"f", floats}, {"i", ints}});
  const auto mixed = convert_tensors(root, {.dtype = DType::kFloat16});
  ASSERT_FALSE(mixed);
  EXPECT_EQ(mixed.error().detail, "E_MIXED_VIEWS");
  EXPECT_EQ(
      convert_tensors(root, {.dtype = DType::kInt64}).error().code,
      ErrorCode::kInvalidArgument);
}

// bfloat16 counts to 256: a counter of 1003 steps would stand still.
TEST(ConvertTensors, StepCountersAndSmallFloatsKeepTheirType) {
  const Tensor step = tensor_of<float>(DType::kFloat32, {1003}, {});
  const Tensor mean = tensor_of<float>(DType::kFloat32, {1}, {1});
  const Tensor tiny = tensor_of<std::uint8_t>(DType::kFloat8E4M3FN, {1}, {1});
  const Value root = Value::dict(
      {{"w", mean},
       {"f8", tiny},
       {"state", Value::dict({{"step", step}, {"exp_avg", mean}})}});
  const auto result = convert_tensors(root, {.dtype = DType::kBFloat16});
  ASSERT_TRUE(result) << to_string(result.error());
  const Value& state = *result->root.find("state");
  EXPECT_EQ(state.find("step")->as_tensor()->dtype, DType::kFloat32);
  EXPECT_EQ(state.find("exp_avg")->as_tensor()->dtype, DType::kBFloat16);
  EXPECT_THAT(result->kept, ElementsAre("f8", "state.step"));
}

TEST(ConvertTensors, ACounterKeepsItsTypeWhereverElseItLies) {
  const Value step = tensor_of<float>(DType::kFloat32, {2049}, {});
  const Value root = Value::dict(
      {{"global_step", step}, {"state", Value::dict({{"step", step}})}});
  const auto result = convert_tensors(root, {.dtype = DType::kBFloat16});
  ASSERT_TRUE(result) << to_string(result.error());
  const Value& global = *result->root.find("global_step");
  const Value& counter = *result->root.find("state")->find("step");
  EXPECT_EQ(counter.as_tensor()->dtype, DType::kFloat32);
  EXPECT_EQ(global.address(), counter.address());
  EXPECT_THAT(result->kept, ElementsAre("global_step", "state.step"));
  EXPECT_TRUE(result->changes.empty());
}

TEST(ConvertTensors, RefuseToMoveBytesToMeta) {
  const Value root = tensor_of<float>(DType::kFloat32, {1}, {1});
  EXPECT_FALSE(convert_tensors(root, {.map_location = "meta"}));
  EXPECT_TRUE(convert_tensors(root, {.map_location = "cpu"}));
}

} // namespace
} // namespace lockstep::ckpt
