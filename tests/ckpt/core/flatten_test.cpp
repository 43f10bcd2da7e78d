// SPDX-License-Identifier: BSD-3-Clause
#include <gmock/gmock.h>

#include "lockstep/ckpt/walk.h"
#include "tests/ckpt/value_fixture.h"

namespace lockstep::ckpt {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// "w: tensor", "epoch: int", as `flatten` lists them.
std::vector<std::string> lines_of(const Value& root) {
  const auto flat = flatten(root);
  if (!flat) {
    return {to_string(flat.error())};
  }
  std::vector<std::string> lines;
  for (const FlatTensor& entry : flat->tensors) {
    lines.push_back(entry.name + ": tensor");
  }
  for (const FlatScalar& entry : flat->scalars) {
    lines.push_back(entry.name + ": " + std::string(entry.value.type_name()));
  }
  return lines;
}

Error refusal(const Value& root) {
  const auto flat = flatten(root);
  EXPECT_FALSE(flat);
  return flat ? Error() : flat.error();
}

Value object(std::string global, Value state) {
  return Object{
      .global = std::move(global),
      .state = std::make_shared<Value>(std::move(state))};
}

TEST(Flatten, ListsTensorsAndScalarsInFileOrder) {
  EXPECT_THAT(
      lines_of(Value::dict(
          {{"epoch", 3},
           {"model", Value::ordered_dict({{"fc.weight", floats({1})}})},
           {"steps", Value::list({floats({2}), Value::tuple({0.5})})},
           {7, None{}}})),
      ElementsAre(
          "model.fc.weight: tensor",
          "steps.0: tensor",
          "epoch: int",
          "steps.1.0: float",
          "7: NoneType"));
  EXPECT_THAT(lines_of(floats({1})), ElementsAre(": tensor"));
  EXPECT_THAT(lines_of(Value::dict({{"empty", Value::list({})}})), IsEmpty());
}

TEST(Flatten, SharesTheTensors) {
  const Value root = Value::dict({{"w", floats({1})}});
  EXPECT_EQ(
      flatten(root)->tensors.at(0).tensor.get(),
      root.find("w")->as_tensor());
}

TEST(Flatten, TakesModulesAndScriptProgramsByTheirNames) {
  const Value module = object(
      "m.Net",
      Value::dict(
          {{"training", true},
           {"_parameters", Value::dict({{"w", floats({1})}})},
           {"_modules", Value::dict({})}}));
  const Value program =
      object("__torch__.Net", Value::dict({{"b", floats({2})}}));
  EXPECT_THAT(
      lines_of(Value::dict({{"net", module}, {"jit", program}})),
      ElementsAre("net.w: tensor", "jit.b: tensor"));
}

TEST(Flatten, NamesWhatNoFormatHolds) {
  const Error other = refusal(
      Value::dict({{"a", Value::list({object("m.C", Value::dict({}))})}}));
  EXPECT_EQ(other.detail, "E_NOT_TENSOR");
  EXPECT_EQ(other.code, ErrorCode::kUnsupported);
  EXPECT_THAT(other.message, HasSubstr("'a.0' is not a tensor but m.C"));
  EXPECT_THAT(refusal(Set{}).message, HasSubstr("the root is not a tensor"));
  const Value lazy =
      object("torch.nn.parameter.UninitializedParameter", Value::dict({}));
  EXPECT_THAT(
      refusal(Value::dict({{"w", lazy}})).hint,
      HasSubstr("run the model on a batch in Python"));
}

TEST(Flatten, RefusesTwoValuesOfOneName) {
  const Value inner = Value::dict({{"b", 1}});
  for (const Value& twice : {Value(2), Value(floats({1}))}) {
    const Error error = refusal(Value::dict({{"a", inner}, {"a.b", twice}}));
    EXPECT_EQ(error.detail, "E_SAME_NAME");
    EXPECT_EQ(error.code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(error.message, HasSubstr("'a.b'"));
  }
}

TEST(Flatten, RefusesTensorsWithoutTheirBytes) {
  Tensor meta = floats({1});
  meta.storage = std::make_shared<Storage>(Storage{.nbytes = 4});
  EXPECT_EQ(refusal(Value::dict({{"m", meta}})).detail, "E_NOT_TENSOR");
  Tensor outside = floats({1});
  outside.offset = 1;
  EXPECT_EQ(refusal(Value::dict({{"o", outside}})).detail, "E_VIEW_BOUNDS");
  // Nothing of an empty tensor is ever read.
  Tensor empty = outside;
  empty.sizes = {0};
  EXPECT_THAT(lines_of(Value::dict({{"e", empty}})), ElementsAre("e: tensor"));
}

TEST(Flatten, StopsAtDepthAndAtSharedValues) {
  Value deep = 1;
  for (std::uint64_t i = 0; i < kMaxTreeDepth; ++i) {
    deep = Value::list({deep});
  }
  EXPECT_EQ(refusal(deep).detail, "E_DEPTH");
  Value bomb = Value::list({});
  for (int i = 0; i < 60; ++i) {
    bomb = Value::list({bomb, bomb});
  }
  const Error error = refusal(bomb);
  EXPECT_EQ(error.detail, "E_LIMIT");
  EXPECT_EQ(error.code, ErrorCode::kUnsafe);
  EXPECT_EQ(error.op, "ckpt.save");
}

// Each name would hold the long key.
TEST(Flatten, StopsAtLongNames) {
  List many;
  many.items.assign(20'000, 1);
  const Error error =
      refusal(Value::dict({{std::string(1'000'000, 'k'), std::move(many)}}));
  EXPECT_EQ(error.detail, "E_LIMIT");
  EXPECT_EQ(error.code, ErrorCode::kUnsafe);
}

TEST(Flatten, TellsWhatItsWalkCounted) {
  EXPECT_EQ(flatten(Value::dict({{"a", Value::list({1, 2})}}))->visits, 4U);
}

// A view of `base`: elements, offset and stride.
Tensor view_of(
    const Tensor& base,
    std::int64_t size,
    std::int64_t offset,
    std::int64_t stride = 1) {
  Tensor view = base;
  view.sizes = {size};
  view.strides = {stride};
  view.offset = offset;
  return view;
}

std::string clash(const std::vector<Item>& tensors) {
  Dict dict;
  dict.items = tensors;
  const auto flat = flatten(Value(dict));
  EXPECT_TRUE(flat) << to_string(flat.error());
  const Status status = check_not_shared(*flat, "what to do");
  EXPECT_TRUE(status || status.error().hint == "what to do");
  EXPECT_TRUE(status || status.error().detail == "E_SHARED_TENSOR");
  return status ? "" : status.error().message;
}

TEST(CheckNotShared, TakesPartsSideBySide) {
  const Tensor base = floats({1, 2, 3, 4, 5, 6});
  EXPECT_EQ(
      clash({{"b", view_of(base, 3, 3)}, {"a", view_of(base, 3, 0)}}),
      "");
  EXPECT_EQ(clash({{"a", floats({1})}, {"b", floats({1})}}), "");
  EXPECT_EQ(clash({{"a", base}, {"none", view_of(base, 0, 2)}}), "");
}

TEST(CheckNotShared, NamesTheFirstPairThatSharesBytes) {
  const Tensor base = floats({1, 2, 3, 4, 5, 6});
  EXPECT_THAT(
      clash({{"a", view_of(base, 3, 0)}, {"b", view_of(base, 3, 2)}}),
      HasSubstr("tensors 'a' and 'b' share memory"));
  // The rows of columns lie between each other.
  EXPECT_THAT(
      clash({{"a", view_of(base, 3, 0, 2)}, {"b", view_of(base, 3, 1, 2)}}),
      HasSubstr("'a' and 'b'"));
  const Tensor other = floats({1});
  EXPECT_THAT(
      clash({{"x", other}, {"y", other}, {"a", base}, {"b", base}}),
      HasSubstr("'x' and 'y'"));
  EXPECT_THAT(
      clash({{"e", view_of(base, 6, 0, 0)}}),
      HasSubstr("'e' repeats its own bytes"));
}

TEST(CheckNotShared, PackedElementsLieRowAfterRow) {
  // Rows of three elements take two bytes, whatever the strides say.
  Tensor packed =
      tensor_of<char>(DType::kQUInt4x2, std::vector<char>(9), {2, 3});
  EXPECT_EQ(clash({{"q", packed}}), "");
  packed.strides = {std::int64_t{1} << 61, 0};
  Tensor next = packed;
  next.offset = 4;
  EXPECT_EQ(clash({{"q", packed}, {"next", next}}), "");
  next.offset = 3;
  EXPECT_THAT(
      clash({{"q", packed}, {"next", next}}),
      HasSubstr("'q' and 'next' share memory"));
}

} // namespace
} // namespace lockstep::ckpt
