// SPDX-License-Identifier: BSD-3-Clause
//
// Every file of testdata/valid and testdata/corrupt against what its
// `.expect.json` says; adding a file adds a test. Made by
// tests/oracle/make_testdata.py and make_corrupt.py.
#include <algorithm>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "lockstep/ckpt/core/budget.h"
#include "lockstep/ckpt/inspect.h"
#include "lockstep/ckpt/load.h"
#include "lockstep/ckpt/verify.h"
#include "lockstep/ckpt/walk.h"
#include "tests/ckpt/expected_files.h"
#include "tests/ckpt/logical_bytes.h"

namespace lockstep::ckpt {
namespace {

class ValidFile : public testing::TestWithParam<std::string> {};

TEST_P(ValidFile, HoldsWhatPythonSaved) {
  const auto expected = test::expectation_of(GetParam());
  for (const bool use_mmap : {true, false}) {
    const auto file = load(GetParam(), {.use_mmap = use_mmap});
    ASSERT_TRUE(file) << to_string(file.error());
    EXPECT_EQ(nlohmann::json(file->format), expected["format"]);
    std::size_t row = 0;
    const Status status = for_each_tensor(
        file->root,
        [&](const std::string& name, const Tensor& tensor) {
          ASSERT_LT(row, expected["tensors"].size()) << name;
          const auto& wanted = expected["tensors"][row++];
          EXPECT_EQ(nlohmann::json(name), wanted["name"]);
          EXPECT_EQ(
              nlohmann::json(dtype_info(tensor.dtype).name),
              wanted["dtype"])
              << name;
          EXPECT_EQ(nlohmann::json(tensor.sizes), wanted["shape"]) << name;
          EXPECT_EQ(nlohmann::json(tensor.strides), wanted["stride"]) << name;
          EXPECT_EQ(nlohmann::json(tensor.offset), wanted["offset"]) << name;
          EXPECT_EQ(
              nlohmann::json(tensor.requires_grad),
              wanted["requires_grad"])
              << name;
          const auto crc = logical_crc(tensor);
          ASSERT_TRUE(crc) << to_string(crc.error());
          EXPECT_EQ(nlohmann::json(*crc), wanted["crc32"]) << name;
        });
    EXPECT_TRUE(status);
    EXPECT_EQ(row, expected["tensors"].size());
  }
}

TEST_P(ValidFile, HasASummaryAndIsSound) {
  const auto expected = test::expectation_of(GetParam());
  const auto file = load(GetParam());
  ASSERT_TRUE(file);
  const auto summary = summarize(*file);
  ASSERT_TRUE(summary);
  EXPECT_EQ(summary->tensors, expected["tensors"].size());
  EXPECT_EQ(nlohmann::json(summary->crc), expected["crc"]);
  EXPECT_EQ(
      summary->unsafe_names.size() + summary->needed_classes.size(),
      expected.value("unsafe", 0U));
  const auto report = verify(GetParam());
  ASSERT_TRUE(report) << to_string(report.error());
  EXPECT_TRUE(report->is_sound());
  EXPECT_EQ(report->tensors, summary->tensors);
}

// What is read twice to be verified counts once.
TEST_P(ValidFile, IsVerifiedWithLittleMoreThanItsLoadTakes) {
  const auto file = load(GetParam());
  ASSERT_TRUE(file);
  const std::uint64_t made = file->budget->made();
  const std::uint64_t by_size = kMadePerByte * file->budget->file_bytes();
  Limits limits;
  limits.max_made_bytes = made - std::min(made, by_size) + made / 4 + 4096;
  const auto report = verify(GetParam(), {.limits = limits});
  ASSERT_TRUE(report) << to_string(report.error());
  EXPECT_TRUE(report->is_sound());
}

INSTANTIATE_TEST_SUITE_P(
    Testdata,
    ValidFile,
    testing::ValuesIn(test::expected_files("testdata/valid")),
    test::file_test_name);

// The first error on the way to the last byte.
Status read_all(const std::string& path) {
  LOCKSTEP_ASSIGN(const Checkpoint file, load(path));
  Status result;
  LOCKSTEP_TRY(for_each_tensor(
      file.root,
      [&result](const std::string& /*name*/, const Tensor& tensor) {
        const auto bytes = tensor.storage->source->load();
        if (!bytes && result) {
          result = bytes.error();
        }
      }));
  return result;
}

class CorruptFile : public testing::TestWithParam<std::string> {};

TEST_P(CorruptFile, GivesItsError) {
  const auto expected = test::expectation_of(GetParam());
  const Status status = read_all(GetParam());
  ASSERT_FALSE(status);
  EXPECT_EQ(nlohmann::json(status.error().detail), expected["detail"])
      << to_string(status.error());
  EXPECT_EQ(
      nlohmann::json(error_info(status.error().code).name),
      expected["code"]);
}

TEST_P(CorruptFile, IsNotSound) {
  const auto report = verify(GetParam());
  EXPECT_FALSE(report && report->is_sound());
}

INSTANTIATE_TEST_SUITE_P(
    Testdata,
    CorruptFile,
    testing::ValuesIn(test::expected_files("testdata/corrupt")),
    test::file_test_name);

} // namespace
} // namespace lockstep::ckpt
