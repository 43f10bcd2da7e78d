// SPDX-License-Identifier: BSD-3-Clause
#include <gmock/gmock.h>

#include "lockstep/ckpt/inspect.h"
#include "tests/ckpt/formats/safetensors/safetensors_fixture.h"
#include "tests/ckpt/logical_bytes.h"
#include "tests/support/memory_fs.h"

namespace lockstep::ckpt {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// What the file gives: "name dtype shape bytes; ..."
std::string content_of(const Checkpoint& file) {
  std::string text;
  for (const auto& [key, value] : file.root.as_dict()->items) {
    const Tensor& tensor = *value.as_tensor();
    text += *key.as_string() + " ";
    text += dtype_info(tensor.dtype).name;
    for (const std::int64_t size : tensor.sizes) {
      text += " " + std::to_string(size);
    }
    text += ":" + *logical_bytes(tensor) + ";";
  }
  return text;
}

constexpr std::string_view kTwo =
    R"({"__metadata__":{"format":"pt","note":"\u00fc\n"},)"
    R"("b":{"dtype":"U8","shape":[2,2],"data_offsets":[3,7]},)"
    R"("a\/\u0041":{"data_offsets":[0,3],"shape":[3],"dtype":"I8"}} )";

TEST(SafetensorsReader, GivesTensorsInTheOrderOfTheirBytes) {
  const std::string bytes = safetensors(kTwo, "xyzABCD");
  const auto file = load_bytes(bytes);
  ASSERT_TRUE(file) << to_string(file.error());
  EXPECT_EQ(file->format, "safetensors");
  EXPECT_EQ(content_of(*file), "a/A int8 3:xyz;b uint8 2 2:ABCD;");
  EXPECT_EQ(file->storages.size(), 2U);
  EXPECT_THAT(file->warnings, testing::IsEmpty());
  EXPECT_EQ(summarize(*file)->tensors, 2U);
}

TEST(SafetensorsReader, KeepsTheMetadata) {
  const std::string bytes = safetensors(kTwo, "xyzABCD");
  const auto file = load_bytes(bytes);
  ASSERT_TRUE(file);
  const auto& attributes = file->root.as_dict()->attributes;
  ASSERT_EQ(attributes.size(), 1U);
  EXPECT_EQ(*attributes[0].first.as_string(), "__metadata__");
  EXPECT_EQ(*attributes[0].second.find("format")->as_string(), "pt");
  EXPECT_EQ(*attributes[0].second.find("note")->as_string(), "\xc3\xbc\n");
}

TEST(SafetensorsReader, ReadsWithoutAMapping) {
  MemoryFs fs;
  auto file = fs.create("m.pt", 0644);
  ASSERT_TRUE((*file)->write(as_byte_span(safetensors(kTwo, "xyzABCD"))));
  const auto loaded = load("m.pt", {.use_mmap = false}, fs);
  ASSERT_TRUE(loaded) << to_string(loaded.error());
  EXPECT_EQ(content_of(*loaded), "a/A int8 3:xyz;b uint8 2 2:ABCD;");
}

TEST(SafetensorsReader, HalvesTheLastDimensionOfPackedTypes) {
  const std::string bytes = safetensors(
      R"({"p":{"dtype":"F4","shape":[3,4],"data_offsets":[0,6]}})",
      "abcdef");
  const auto file = load_bytes(bytes);
  ASSERT_TRUE(file) << to_string(file.error());
  EXPECT_EQ(content_of(*file), "p float4_e2m1fn_x2 3 2:abcdef;");
}

TEST(SafetensorsReader, WarnsOfUnknownFields) {
  const std::string bytes = safetensors(
      R"({"a":{"dtype":"U8","x":[{"y":-1.5e+3},[]],"shape":[],)"
      R"("data_offsets":[0,1]}})",
      "a");
  const auto file = load_bytes(bytes);
  ASSERT_TRUE(file) << to_string(file.error());
  EXPECT_THAT(
      file->warnings,
      ElementsAre(Warning{
          .name = "W_SAFETENSORS_FIELD",
          .text = "tensor `a` has the unknown field `x`"}));
}

TEST(SafetensorsReader, TakesTheLastValueOfAKeyOfTheMetadata) {
  const std::string bytes = safetensors(
      R"({"__metadata__":{"k":"1","n":"x","k":"2"},)"
      R"("a":{"dtype":"U8","shape":[],"data_offsets":[0,1]}})",
      "a");
  const auto file = load_bytes(bytes);
  ASSERT_TRUE(file) << to_string(file.error());
  const auto& attributes = file->root.as_dict()->attributes;
  ASSERT_EQ(attributes.size(), 1U);
  EXPECT_EQ(attributes[0].second.find("k")->text(), "2");
  EXPECT_EQ(attributes[0].second.as_dict()->items.size(), 2U);
  EXPECT_THAT(
      file->warnings,
      ElementsAre(Warning{
          .name = "W_SAFETENSORS_FIELD",
          .text = "__metadata__ has the key `k` twice: its last value "
                  "counts"}));
}

TEST(SafetensorsReader, LeavesJsonToTheDiagnosis) {
  const std::string json = R"({"meta":{"error":404}})";
  const auto file = load_bytes(json);
  ASSERT_FALSE(file);
  EXPECT_THAT(file.error().message, HasSubstr("JSON"));
}

struct BadFile {
  const char* name;
  std::string bytes;
  const char* detail;
  const char* message;
  std::uint64_t offset;
};

std::string with_length(std::uint64_t length, std::string_view rest) {
  std::string bytes;
  put_le<std::uint64_t>(bytes, length);
  return bytes += rest;
}

// One tensor `b` of type U8 with these fields, behind 7 bytes of header.
std::string one(std::string_view shape, std::string_view offsets) {
  std::string header = R"({"b":{"dtype":"U8","shape":)";
  header += shape;
  header += R"(,"data_offsets":)";
  header += offsets;
  return header + "}}";
}

// A header up to its second member, and a second one up to its offsets.
const std::string kFirst =
    R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)";
const std::string kSecond = R"("b":{"dtype":"U8","shape":[2],"data_offsets":)";

std::vector<BadFile> bad_headers() {
  const char* header = "E_SAFETENSORS_HEADER";
  return {
      {"TooLarge", with_length(100'000'001, "{}"), header, "too large", 0},
      {"Huge", with_length(~0ULL, "{}"), header, "too large", 0},
      {"LongerThanFile", with_length(3, "{}"), header, "header length", 0},
      {"NoUtf8", safetensors("{\"\xff\":1}"), header, "invalid UTF-8", 10},
      {"NoEnd", safetensors("{"), header, "invalid JSON in header", 9},
      {"Rest", safetensors("{}x"), header, "unexpected bytes", 10},
      {"NoObject", safetensors(R"({"b":[]})"), header, "expected '{'", 13},
      {"NoShape",
       safetensors(R"({"b":{"dtype":"U8","data_offsets":[0,0]}})"),
       header,
       "no field `shape`",
       9},
      {"Negative", safetensors(one("[-1]", "[0,0]")), header, "unsigned", 36},
      {"Float", safetensors(one("[1.5]", "[0,0]")), header, "float", 36},
      {"BigInteger",
       safetensors(one("[18446744073709551616]", "[0,0]")),
       header,
       "64 bits",
       36},
      {"OneOffset", safetensors(one("[0]", "[0]")), header, "1 numbers", 54},
      {"MetadataNumber",
       safetensors(R"({"__metadata__":{"a":1}})"),
       header,
       "expected a string",
       29},
      {"DepthBomb",
       safetensors(R"({"b":{"x":)" + std::string(100'000, '[')),
       header,
       "nested too deeply",
       143},
      {"Surrogate", safetensors(R"({"\ud800":1})"), header, "surrogate", 10},
      {"LeadingZero",
       safetensors(one("[01]", "[0,1]")),
       header,
       "leading zero",
       36},
  };
}

std::vector<BadFile> bad_layouts() {
  const char* layout = "E_SAFETENSORS_LAYOUT";
  return {
      {"Uncovered",
       safetensors(one("[0]", "[0,0]"), "a"),
       layout,
       "not fully",
       61},
      {"EndFirst", safetensors(one("[1]", "[1,0]"), "a"), layout, "offset", 9},
      {"Hole",
       safetensors(kFirst + kSecond + "[3,5]}}", "abcde"),
       layout,
       "invalid offset for tensor `b`",
       8 + kFirst.size()},
      {"Overlap",
       safetensors(kFirst + kSecond + "[1,3]}}", "abc"),
       layout,
       "invalid offset for tensor `b`",
       8 + kFirst.size()},
      {"WrongSize",
       safetensors(one("[3]", "[0,2]"), "ab"),
       layout,
       "invalid shape, data type, or offset",
       9},
      {"Trailing",
       safetensors(kFirst + kSecond + "[2,4]}}", "abcdX"),
       layout,
       "incomplete metadata, file not fully covered",
       8 + kFirst.size() + kSecond.size() + 7},
      {"Cut",
       safetensors(kFirst + kSecond + "[2,4]}}", "abc"),
       layout,
       "incomplete metadata, file not fully covered",
       8 + kFirst.size() + kSecond.size() + 7},
      {"HalfByte",
       safetensors(
           R"({"b":{"dtype":"F4","shape":[3],"data_offsets":[0,2]}})",
           "ab"),
       layout,
       "whole bytes",
       9},
  };
}

// Errors with names of their own.
std::vector<BadFile> bad_members() {
  return {
      {"Duplicate",
       safetensors(kFirst + R"("a":{}})", "ab"),
       "E_SAFETENSORS_DUPLICATE",
       "`a` appears twice",
       8 + kFirst.size()},
      {"DuplicateField",
       safetensors(R"({"b":{"dtype":"U8","dtype":"U8"}})"),
       "E_SAFETENSORS_DUPLICATE",
       "`dtype` appears twice",
       27},
      {"Overflow",
       safetensors(one("[9223372036854775807,4]", "[0,0]")),
       "E_OVERFLOW",
       "overflow computing buffer size",
       9},
      {"EmptyOverflow",
       safetensors(one("[0,9223372036854775807,4]", "[0,0]")),
       "E_OVERFLOW",
       "overflow computing buffer size",
       9},
      {"OverOneDimension",
       safetensors(one("[9223372036854775808]", "[0,0]")),
       "E_OVERFLOW",
       "overflow computing buffer size",
       9},
      {"SixBits",
       safetensors(
           R"({"b":{"dtype":"F6_E2M3","shape":[4],"data_offsets":[0,3]}})",
           "abc"),
       "E_DTYPE",
       "'F6_E2M3'",
       22},
      {"UnknownType",
       safetensors(R"({"b":{"dtype":"X","shape":[0],"data_offsets":[0,0]}})"),
       "E_DTYPE",
       "'X'",
       22},
  };
}

class BadSafetensors : public testing::TestWithParam<BadFile> {};

TEST_P(BadSafetensors, GivesItsErrorAndOffset) {
  const auto file = load_bytes(GetParam().bytes);
  ASSERT_FALSE(file);
  const Error& error = file.error();
  EXPECT_EQ(error.detail, GetParam().detail) << to_string(error);
  EXPECT_THAT(error.message, HasSubstr(GetParam().message));
  EXPECT_EQ(error.offset.value_or(0), GetParam().offset) << to_string(error);
}

std::string name_of(const testing::TestParamInfo<BadFile>& row) {
  return row.param.name;
}

INSTANTIATE_TEST_SUITE_P(
    Row62Header,
    BadSafetensors,
    testing::ValuesIn(bad_headers()),
    name_of);
INSTANTIATE_TEST_SUITE_P(
    Row62Layout,
    BadSafetensors,
    testing::ValuesIn(bad_layouts()),
    name_of);
INSTANTIATE_TEST_SUITE_P(
    Row62Members,
    BadSafetensors,
    testing::ValuesIn(bad_members()),
    name_of);

TEST(SafetensorsReader, RefusesMoreDimensionsThanPyTorchHas) {
  std::string shape = "[1";
  for (int i = 0; i < 64; ++i) {
    shape += ",1";
  }
  const std::string bytes = safetensors(one(shape + "]", "[0,1]"), "a");
  EXPECT_EQ(load_bytes(bytes).error().detail, "E_RANK");
}

TEST(SafetensorsReader, EveryFlippedByteOfTheHeaderIsAnErrorOrTheData) {
  const std::string whole = safetensors(kTwo, "xyzABCD");
  std::size_t errors = 0;
  for (std::size_t i = 0; i < 8 + kTwo.size(); ++i) {
    for (const char mask : {'\x01', '\x20', '\x80'}) {
      std::string bytes = whole;
      bytes[i] = static_cast<char>(bytes[i] ^ mask);
      const auto file = load_bytes(bytes);
      errors += file ? 0 : 1;
      if (!file) {
        EXPECT_FALSE(file.error().detail.empty()) << i;
      }
    }
  }
  EXPECT_GT(errors, kTwo.size()); // others change a name or the note
}

TEST(SafetensorsReader, EveryTruncationIsAnError) {
  const std::string whole = safetensors(kTwo, "xyzABCD");
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const std::string bytes = whole.substr(0, size);
    EXPECT_FALSE(load_bytes(bytes)) << size;
  }
}

} // namespace
} // namespace lockstep::ckpt
