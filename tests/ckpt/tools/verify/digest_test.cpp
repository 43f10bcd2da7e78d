// SPDX-License-Identifier: BSD-3-Clause
//
// The content digest against committed values and the rules it must obey:
// strides, sharing and lazy flags do not count.
#include <filesystem>
#include <fstream>
#include <set>

#include <gmock/gmock.h>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/quantizer.h"
#include "lockstep/ckpt/load.h"
#include "lockstep/ckpt/verify.h"
#include "tests/ckpt/value_fixture.h"

namespace lockstep::ckpt {
namespace {

using testing::HasSubstr;

std::string digest_of(const Value& root) {
  auto text = digest(root);
  EXPECT_TRUE(text) << to_string(text.error());
  return text ? *text : "";
}

TEST(Digest, OfTheTestVector) {
  const Value root = Value::dict(
      {{"w", tensor_of<float>(DType::kFloat32, {0, 1, 2, 3, 4, 5}, {2, 3})},
       {"b", tensor_of<std::int64_t>(DType::kInt64, {1, 2}, {2})},
       {"s", tensor_of<char>(DType::kBool, {1}, {})}});
  EXPECT_EQ(
      digest_of(root),
      "703fca71aad535a8b5f228f4bf4a1ade2c75fc5bca748c742c8affba8de7b662");
}

TEST(Digest, OfNothingIsThatOfNoBytes) {
  EXPECT_EQ(
      digest_of(Value::dict({{"epoch", 3}})),
      "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

TEST(Digest, LinesAreSortedByNameBytewise) {
  const Tensor one = tensor_of<float>(DType::kFloat32, {1}, {1});
  const auto rows =
      digest_rows(Value::dict({{"b", one}, {"a.c", one}, {"B", one}}));
  ASSERT_TRUE(rows);
  ASSERT_EQ(rows->size(), 3U);
  EXPECT_EQ((*rows)[0].name, "B");
  EXPECT_EQ((*rows)[1].name, "a.c");
  EXPECT_THAT(digest_line((*rows)[2]), HasSubstr("b\tFloat\t[1]\t"));
}

// A name cannot look like the end of a line and the start of another.
TEST(Digest, NamesAreEscapedInLines) {
  EXPECT_EQ(
      digest_line({.name = "a\tb\nc\rd\\e", .type = "Float", .shape = "[1]"}),
      "a\\tb\\nc\\rd\\\\e\tFloat\t[1]\t\n");
  const Tensor one = tensor_of<float>(DType::kFloat32, {1}, {1});
  const Tensor two = tensor_of<float>(DType::kFloat32, {2}, {1});
  const Value both = Value::dict({{"a", one}, {"b", two}});
  const auto rows = digest_rows(both);
  ASSERT_TRUE(rows);
  const std::string row = (*rows)[0].name + "\t" + (*rows)[0].type + "\t" +
                          (*rows)[0].shape + "\t" + (*rows)[0].sha256;
  EXPECT_NE(digest_of(both), digest_of(Value::dict({{row + "\nb", two}})));
  EXPECT_NE(
      digest_of(Value::dict({{"a\nb", one}})),
      digest_of(Value::dict({{"a\\nb", one}})));
}

TEST(Digest, NewerTypesUseTheNameOfTheDtype) {
  EXPECT_EQ(digest_type(DType::kBFloat16), "BFloat16");
  EXPECT_EQ(digest_type(DType::kQUInt8), "QUInt8");
  EXPECT_EQ(digest_type(DType::kUInt16), "uint16");
  EXPECT_EQ(digest_type(DType::kFloat8E5M2), "float8_e5m2");
}

TEST(Digest, StridesDoNotCount) {
  const Tensor rows = tensor_of<float>(DType::kFloat32, {1, 2, 3, 4}, {2, 2});
  Tensor columns = tensor_of<float>(DType::kFloat32, {1, 3, 2, 4}, {2, 2});
  columns.strides = {1, 2};
  EXPECT_EQ(digest_of(rows), digest_of(columns));
}

TEST(Digest, WhatIntegersStandForCounts) {
  std::set<std::string> all;
  for (const double scale : {0.1, 0.2}) {
    for (const std::int64_t zero : {0, 1}) {
      Tensor tensor = tensor_of<std::int8_t>(DType::kQInt8, {1, 2}, {2});
      tensor.quantizer = std::make_shared<Value>(
          quantizer_value({.scale = scale, .zero_point = zero}));
      all.insert(digest_of(tensor));
      for (const std::int64_t axis : {0, 1}) {
        Tensor grid =
            tensor_of<std::int8_t>(DType::kQInt8, {1, 2, 3, 4}, {2, 2});
        grid.quantizer = std::make_shared<Value>(quantizer_value(
            {.is_per_channel = true,
             .scales = tensor_of<double>(DType::kFloat64, {scale, 1}, {2}),
             .zero_points =
                 tensor_of<std::int64_t>(DType::kInt64, {zero, 0}, {2}),
             .axis = axis}));
        all.insert(digest_of(grid));
      }
    }
  }
  EXPECT_EQ(all.size(), 12U);
}

TEST(Digest, LazyFlagsAreApplied) {
  Tensor lazy = tensor_of<float>(DType::kComplex64, {1, 2, -3, 4}, {2});
  lazy.is_conj = true;
  Tensor plain = tensor_of<float>(DType::kComplex64, {1, -2, -3, -4}, {2});
  // The fixture counts floats; a complex number is two of them.
  EXPECT_EQ(digest_of(lazy), digest_of(plain));
  lazy.is_neg = true;
  plain = tensor_of<float>(DType::kComplex64, {-1, 2, 3, 4}, {2});
  EXPECT_EQ(digest_of(lazy), digest_of(plain));
  Tensor minus = tensor_of<std::int16_t>(DType::kInt16, {0, 1, -256}, {3});
  minus.is_neg = true;
  EXPECT_EQ(
      digest_of(minus),
      digest_of(tensor_of<std::int16_t>(DType::kInt16, {0, -1, 256}, {3})));
}

TEST(Digest, PackedTypesHashTheirBytes) {
  Tensor packed = tensor_of<char>(DType::kQUInt4x2, {1, 2, 3, 4, 5, 6}, {6});
  packed.sizes = {3, 3};
  packed.strides = {3, 1};
  const auto rows = digest_rows(packed);
  ASSERT_TRUE(rows) << to_string(rows.error());
  EXPECT_EQ(rows->front().bytes, 6U);
  EXPECT_EQ(rows->front().shape, "[3, 3]");
}

TEST(Digest, RefusesAViewThatRepeatsItsBytesWithoutEnd) {
  Tensor bomb = tensor_of<float>(DType::kFloat32, {1}, {1});
  bomb.sizes = {1LL << 40};
  bomb.strides = {0};
  const auto refused = digest(Value::dict({{"w", bomb}}));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().detail, "E_LIMIT");
  EXPECT_THAT(refused.error().message, HasSubstr("tensor 'w'"));
  bomb.sizes = {1000};
  EXPECT_TRUE(digest(Value(bomb)));
}

struct Known {
  std::string path = {};
  std::string digest = {};
};

std::vector<Known> committed_files() {
  std::vector<Known> files;
  std::ifstream table("testdata/digests.tsv");
  std::string line;
  std::getline(table, line); // titles
  while (std::getline(table, line)) {
    const auto cells = split(line, '\t');
    files.push_back({.path = "testdata/" + cells.at(0), .digest = cells.at(1)});
  }
  return files;
}

class DigestOfFile : public testing::TestWithParam<Known> {};

TEST_P(DigestOfFile, IsTheKnownOne) {
  for (const bool use_mmap : {true, false}) {
    const auto file = load(GetParam().path, {.use_mmap = use_mmap});
    ASSERT_TRUE(file) << to_string(file.error());
    EXPECT_EQ(digest_of(file->root), GetParam().digest);
  }
}

std::string file_name(const testing::TestParamInfo<Known>& info) {
  std::string name = std::filesystem::path(info.param.path).filename().string();
  for (char& c : name) {
    c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(
    Committed,
    DigestOfFile,
    testing::ValuesIn(committed_files()),
    file_name);

} // namespace
} // namespace lockstep::ckpt
