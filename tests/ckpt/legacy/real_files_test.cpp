// SPDX-License-Identifier: BSD-3-Clause
//
// Checkpoints that strangers published, if the folder is there: LOCKSTEP_REAL_
// FILES, or `shared/real_files` beside the repository. FILES.tsv says what each
// of them holds.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/checkpoint.h"
#include "lockstep/ckpt/digest.h"
#include "lockstep/ckpt/verify.h"

namespace lockstep::ckpt {
namespace {

struct RealFile {
  std::string path = {};
  std::string format = {};
  std::string digest = {};
};

std::string folder() {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): before any test runs
  if (const char* given = std::getenv("LOCKSTEP_REAL_FILES")) {
    return given;
  }
  for (const char* path : {"../shared/real_files", "../../shared/real_files"}) {
    if (std::filesystem::exists(std::string(path) + "/FILES.tsv")) {
      return path;
    }
  }
  return "";
}

// Rows of the formats that are read; the hostile ones have no digest.
std::vector<RealFile> files() {
  constexpr std::array<std::string_view, 3> kFormats{
      "legacy",
      "safetensors",
      "zip"};
  constexpr std::size_t kFormat = 3;
  constexpr std::size_t kDigest = 5;
  std::vector<RealFile> rows;
  std::ifstream table(folder() + "/FILES.tsv");
  std::string line;
  std::getline(table, line); // titles
  while (std::getline(table, line)) {
    const auto cells = split(line, '\t');
    const bool is_read =
        cells.size() > kDigest && !cells[kDigest].empty() &&
        std::ranges::find(kFormats, cells[kFormat]) != kFormats.end();
    if (is_read) {
      rows.push_back(
          {.path = folder() + "/" + cells[0],
           .format = cells[kFormat],
           .digest = cells[kDigest]});
    }
  }
  return rows;
}

class RealFiles : public testing::TestWithParam<RealFile> {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(RealFiles);

TEST_P(RealFiles, HaveTheirDigest) {
  for (const bool use_mmap : {true, false}) {
    const auto file = load(GetParam().path, {.use_mmap = use_mmap});
    ASSERT_TRUE(file) << to_string(file.error());
    EXPECT_EQ(file->format, GetParam().format);
    const auto hash = digest(file->root);
    ASSERT_TRUE(hash) << to_string(hash.error());
    EXPECT_EQ(hash->substr(0, GetParam().digest.size()), GetParam().digest);
  }
}

TEST_P(RealFiles, AreSound) {
  const auto report = verify(GetParam().path);
  ASSERT_TRUE(report) << to_string(report.error());
  EXPECT_TRUE(report->is_sound());
}

std::string real_file_name(const testing::TestParamInfo<RealFile>& info) {
  std::string name = std::filesystem::path(info.param.path).filename().string();
  for (char& c : name) {
    const bool is_word = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
                         (c >= 'A' && c <= 'Z');
    c = is_word ? c : '_';
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(
    Published,
    RealFiles,
    testing::ValuesIn(files()),
    real_file_name);

} // namespace
} // namespace lockstep::ckpt
