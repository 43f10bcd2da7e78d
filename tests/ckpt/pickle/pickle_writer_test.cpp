// SPDX-License-Identifier: BSD-3-Clause
#include <vector>

#include <gmock/gmock.h>

#include "lockstep/ckpt/pickle/pickle.h"
#include "tests/ckpt/value_fixture.h"

namespace lockstep::ckpt {
namespace {

using std::string_literals::operator""s;
using testing::HasSubstr;

// The opcodes between PROTO 2 and STOP.
std::string body_of(const Value& value) {
  const auto tree = write_pickle(value);
  if (!tree) {
    return to_string(tree.error());
  }
  EXPECT_EQ(tree->pickle.substr(0, 2), "\x80\x02");
  EXPECT_EQ(tree->pickle.back(), '.');
  return tree->pickle.substr(2, tree->pickle.size() - 3);
}

Error error_of(const Value& value) {
  const auto tree = write_pickle(value);
  return tree ? Error{} : tree.error();
}

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos;
       at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

Value numbers(int count) {
  List list;
  for (int i = 0; i < count; ++i) {
    list.items.emplace_back(None());
  }
  return list;
}

Value none_dict(int count, Dict::Kind kind) {
  Dict dict{.kind = kind};
  for (int i = 0; i < count; ++i) {
    dict.items.emplace_back(true, None());
  }
  return dict;
}

TEST(PickleWriter, WritesScalars) {
  EXPECT_EQ(body_of(None()), "N");
  EXPECT_EQ(body_of(true), "\x88");
  EXPECT_EQ(body_of(false), "\x89");
  EXPECT_EQ(body_of(1.0), "G\x3f\xf0\0\0\0\0\0\0"s);
  EXPECT_EQ(body_of("w"), "X\x01\0\0\0wq\0"s);
}

TEST(PickleWriter, WritesIntegersInTheShortestForm) {
  const std::vector<std::pair<std::int64_t, std::string>> rows = {
      {0, "K\0"s},
      {255, "K\xff"},
      {256, "M\0\x01"s},
      {65535, "M\xff\xff"},
      {65536, "J\0\0\x01\0"s},
      {-1, "J\xff\xff\xff\xff"},
      {2147483647, "J\xff\xff\xff\x7f"},
      {-2147483648LL, "J\0\0\0\x80"s},
      {2147483648LL, "\x8a\x05\0\0\0\x80\0"s},
      {-2147483649LL, "\x8a\x05\xff\xff\xff\x7f\xff"},
      {-549755813888LL, "\x8a\x05\0\0\0\0\x80"s},
      {549755813888LL, "\x8a\x06\0\0\0\0\x80\0"s},
      {INT64_MIN, "\x8a\x08\0\0\0\0\0\0\0\x80"s}};
  for (const auto& [value, expected] : rows) {
    EXPECT_EQ(body_of(value), expected) << value;
  }
  EXPECT_EQ(
      body_of(BigInt{"\0\0\0\0\0\0\0\0\x01"s}),
      "\x8a\x09\0\0\0\0\0\0\0\0\x01"s);
  EXPECT_EQ(error_of(BigInt{std::string(256, 'x')}).detail, "E_NOT_SAFE");
}

TEST(PickleWriter, WritesTuplesWithTheShortOpcodes) {
  EXPECT_EQ(body_of(Value::tuple({})), ")");
  EXPECT_EQ(body_of(Value::tuple({true})), "\x88\x85q\0"s);
  EXPECT_EQ(body_of(Value::tuple({true, true, true})), "\x88\x88\x88\x87q\0"s);
  EXPECT_EQ(
      body_of(Value::tuple({None(), None(), None(), None()})),
      "(NNNNtq\0"s);
}

TEST(PickleWriter, WritesListsInBatches) {
  EXPECT_EQ(body_of(numbers(0)), "]q\0"s);
  EXPECT_EQ(body_of(numbers(1)), "]q\0Na"s);
  EXPECT_EQ(body_of(numbers(2)), "]q\0(NNe"s);
  const std::string full = "]q\0("s + std::string(1000, 'N') + "e";
  EXPECT_EQ(body_of(numbers(1000)), full);
  EXPECT_EQ(body_of(numbers(1001)), full + "(Ne");
}

TEST(PickleWriter, WritesDictsInBatches) {
  using Kind = Dict::Kind;
  const std::string head = "}q\0"s;
  std::string full = "(";
  for (int i = 0; i < 1000; ++i) {
    full += "\x88N";
  }
  full += "u";
  EXPECT_EQ(body_of(none_dict(0, Kind::kDict)), head);
  EXPECT_EQ(body_of(none_dict(1, Kind::kDict)), head + "\x88Ns");
  EXPECT_EQ(body_of(none_dict(2, Kind::kDict)), head + "(\x88N\x88Nu");
  EXPECT_EQ(body_of(none_dict(1000, Kind::kDict)), head + full + "(u");
  EXPECT_EQ(body_of(none_dict(1001, Kind::kDict)), head + full + "(\x88Nu");
  const std::string ordered = "ccollections\nOrderedDict\nq\0)Rq\x01"s;
  EXPECT_EQ(body_of(none_dict(1000, Kind::kOrderedDict)), ordered + full);
  EXPECT_EQ(
      body_of(none_dict(1001, Kind::kOrderedDict)),
      ordered + full + "\x88Ns");
  EXPECT_EQ(
      body_of(none_dict(1, Kind::kCounter)),
      "ccollections\nCounter\nq\0}q\x01\x88Ns\x85q\x02Rq\x03"s);
}

TEST(PickleWriter, WritesAttributesAfterTheItems) {
  Dict dict{.kind = Dict::Kind::kOrderedDict};
  dict.attributes.emplace_back(true, None());
  EXPECT_EQ(
      body_of(dict),
      "ccollections\nOrderedDict\nq\0)Rq\x01}q\x02\x88Nsb"s);
  dict.kind = Dict::Kind::kDict;
  EXPECT_EQ(error_of(dict).code, ErrorCode::kUnsupported);
}

TEST(PickleWriter, RefersToWhatIsShared) {
  const Value text = "lr";
  EXPECT_EQ(
      body_of(Value::tuple({text, text})),
      "X\x02\0\0\0lrq\0h\0\x86q\x01"s);
  EXPECT_EQ(
      body_of(Value::tuple({"lr", "lr"})),
      "X\x02\0\0\0lrq\0X\x02\0\0\0lrq\x01\x86q\x02"s);
  const Value list = Value::list({});
  EXPECT_EQ(body_of(Value::tuple({list, list})), "]q\0h\0\x86q\x01"s);
  const Value pair = Value::tuple({true});
  EXPECT_EQ(body_of(Value::tuple({pair, pair})), "\x88\x85q\0h\0\x86q\x01"s);
}

TEST(PickleWriter, RefersToSharedObjectsThatPythonBuildsByACall) {
  // As pickle.dumps((x, x), 2).
  const Value bytes = Bytes{"ab"};
  EXPECT_EQ(
      body_of(Value::tuple({bytes, bytes})),
      "c_codecs\nencode\nq\0X\x02\0\0\0abq\1X\6\0\0\0latin1q\2\x86q\3R"
      "q\4h\4\x86q\5"s);
  for (const Value& value :
       {Value(Complex{1, 2}), Value(Size{{3}}), Value(Device{"cpu", 1})}) {
    const std::string body = body_of(Value::tuple({value, value}));
    EXPECT_EQ(count_of(body, "R"), 1U) << value.type_name();
    EXPECT_EQ(body.substr(body.size() - 5, 2), "h"s + body[body.size() - 6]);
  }
}

TEST(PickleWriter, ChecksALongTextOnceHoweverOftenItComes) {
  // 3 TB of text if each of them was looked at.
  const Value text = std::string(8 << 20, 'a');
  EXPECT_LT(body_of(List{std::vector<Value>(400'000, text)}).size(), 11U << 20);
}

TEST(PickleWriter, NumbersMemoEntriesBeyond255) {
  List list;
  for (int i = 0; i < 300; ++i) {
    list.items.emplace_back("x");
  }
  list.items.push_back(list.items[299]);
  const std::string body = body_of(list);
  EXPECT_THAT(body, HasSubstr("X\x01\0\0\0xq\xffX"s));
  EXPECT_THAT(body, HasSubstr("X\x01\0\0\0xr\0\x01\0\0X"s));
  EXPECT_TRUE(body.ends_with("j\x2c\x01\0\0e"s));
}

TEST(PickleWriter, SpellsBuiltinsAsProtocol2) {
  EXPECT_THAT(body_of(Complex{1, 2}), HasSubstr("c__builtin__\ncomplex\n"));
  EXPECT_EQ(
      body_of(Set{{true}}),
      "c__builtin__\nset\nq\0]q\x01\x88\x61\x85q\x02Rq\x03"s);
  EXPECT_EQ(
      body_of(Bytes{"\xff"}),
      "c_codecs\nencode\nq\0X\x02\0\0\0\xc3\xbfq\x01X\x06\0\0\0latin1q\x02"
      "\x86q\x03Rq\x04"s);
  EXPECT_EQ(body_of(DTypeValue{DType::kBFloat16}), "ctorch\nbfloat16\nq\0"s);
  EXPECT_EQ(
      body_of(Device{"cuda", 1}),
      "ctorch\ndevice\nq\0X\x04\0\0\0cudaq\x01K\x01\x86q\x02Rq\x03"s);
  EXPECT_EQ(
      body_of(Size{{3}}),
      "ctorch\nSize\nq\0K\x03\x85q\x01\x85q\x02Rq\x03"s);
}

// Offset 0x40 to 0xe5 of the worked example in the format's description.
TEST(PickleWriter, WritesTensorsLikePyTorch) {
  Dict dict{.kind = Dict::Kind::kOrderedDict};
  dict.items.emplace_back("w", tensor_of<float>(DType::kFloat32, {1, 2}, {2}));
  EXPECT_EQ(
      body_of(dict),
      "ccollections\nOrderedDict\nq\0)Rq\x01X\x01\0\0\0wq\x02"
      "ctorch._utils\n_rebuild_tensor_v2\nq\x03((X\x07\0\0\0storageq\x04"
      "ctorch\nFloatStorage\nq\x05X\x01\0\0\0\x30q\x06X\x03\0\0\0cpuq\x07K\x02"
      "tq\x08QK\0K\x02\x85q\x09K\x01\x85q\x0a\x89h\0)Rq\x0btq\x0cRq\x0ds"s);
}

TEST(PickleWriter, NumbersStoragesByFirstUse) {
  Tensor whole = tensor_of<float>(DType::kFloat32, {1, 2, 3, 4}, {4});
  Tensor part = whole;
  part.sizes = {2};
  part.offset = 2;
  const Tensor other = tensor_of<float>(DType::kFloat32, {5}, {1});
  const auto tree = write_pickle(Value::list({whole, other, part}));
  ASSERT_TRUE(tree);
  ASSERT_EQ(tree->storages.size(), 2U);
  EXPECT_EQ(tree->storages[0], whole.storage);
  EXPECT_EQ(tree->storages[1], other.storage);
  EXPECT_EQ(count_of(tree->pickle, "_rebuild_tensor_v2"), 1U);
}

TEST(PickleWriter, RefusesTwoTypesOfOneStorage) {
  const Tensor floats = tensor_of<float>(DType::kFloat32, {1, 2}, {2});
  Tensor integers = floats;
  integers.dtype = DType::kInt32;
  const Error error = error_of(Value::list({floats, integers}));
  EXPECT_EQ(error.code, ErrorCode::kUnsupported);
  EXPECT_THAT(error.message, HasSubstr("as different types"));
}

TEST(PickleWriter, RefusesViewsOutsideTheStorage) {
  const Tensor good = tensor_of<float>(DType::kFloat32, {1, 2, 3, 4}, {2, 2});
  Tensor bad = good;
  bad.offset = 1;
  EXPECT_EQ(error_of(bad).code, ErrorCode::kInvalidArgument);
  bad = good;
  bad.strides = {INT64_MAX, 1};
  EXPECT_EQ(error_of(bad).code, ErrorCode::kInvalidArgument);
  bad = good;
  bad.strides = {-1, 1};
  EXPECT_EQ(error_of(bad).code, ErrorCode::kInvalidArgument);
  bad = good;
  bad.strides = {1};
  EXPECT_EQ(error_of(bad).code, ErrorCode::kInvalidArgument);
  bad = good;
  bad.storage = nullptr;
  EXPECT_EQ(error_of(bad).code, ErrorCode::kInvalidArgument);
}

TEST(PickleWriter, NamesThePlaceOfWhatIsNotSafe) {
  const Value value = Value::dict(
      {{"model",
        Value::list({1, Object{.global = "os.system", .args = nullptr}})}});
  const Error error = error_of(value);
  EXPECT_EQ(error.code, ErrorCode::kUnsupported);
  EXPECT_THAT(error.message, HasSubstr("root['model'][1]: 'os.system'"));
}

TEST(PickleWriter, RefusesForeignLocationsKeysAndText) {
  Tensor tensor = tensor_of<float>(DType::kFloat32, {1}, {1});
  for (const std::string place : {"sim:0", "cuda:", "cuda:x", "cpu:0", ""}) {
    tensor.storage->location = place;
    EXPECT_EQ(error_of(tensor).detail, "E_NOT_SAFE") << place;
  }
  EXPECT_EQ(error_of(Value::dict({{Value::list({}), 1}})).detail, "E_NOT_SAFE");
  EXPECT_EQ(error_of("\xff").detail, "E_NOT_SAFE");
  EXPECT_EQ(error_of("\xed\xa0\x80 lone surrogate").detail, "");
}

TEST(PickleWriter, RefusesAStorageWithoutItsObject) {
  EXPECT_EQ(error_of(std::make_shared<Storage>()).detail, "E_NOT_SAFE");
}

TEST(PickleWriter, RefusesBottomlessNesting) {
  Value value = None();
  for (int i = 0; i < 5000; ++i) {
    value = Value::list({value});
  }
  const Error error = error_of(value);
  EXPECT_EQ(error.code, ErrorCode::kUnsupported);
  EXPECT_THAT(error.message, HasSubstr("nested deeper"));
}

} // namespace
} // namespace lockstep::ckpt
