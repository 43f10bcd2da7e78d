// SPDX-License-Identifier: BSD-3-Clause
//
// Files that strangers published. They lie in `shared/real_files` beside the
// repository on some machines, or where LOCKSTEP_REAL_FILES says; elsewhere
// these tests are skipped. FILES.tsv says what each file holds.
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/load.h"
#include "lockstep/ckpt/scan.h"
#include "lockstep/ckpt/verify.h"

namespace lockstep::ckpt {
namespace {

struct RealFile {
  std::string path = {};
  std::string format = {};
  /// The first digits; empty for a hostile file.
  std::string digest = {};
};

class RealFiles : public testing::Test {
 protected:
  void SetUp() override {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): nothing changes the environment
    const char* given = std::getenv("LOCKSTEP_REAL_FILES");
    std::string folder = given == nullptr ? "" : given;
    for (const char* beside : {"/../shared", "/../../shared"}) {
      const std::string path =
          std::string(LOCKSTEP_SOURCE_DIR) + beside + "/real_files";
      if (folder.empty() && std::filesystem::exists(path)) {
        folder = path;
      }
    }
    if (folder.empty()) {
      GTEST_SKIP() << "no shared/real_files, and LOCKSTEP_REAL_FILES is unset";
    }
    read_table(folder);
    ASSERT_FALSE(sound_.empty()) << folder;
    ASSERT_FALSE(hostile_.empty()) << folder;
  }

  std::vector<RealFile> sound_;
  std::vector<RealFile> hostile_;

 private:
  void read_table(const std::string& folder) {
    constexpr std::size_t kFormat = 3;
    constexpr std::size_t kDigest = 5;
    std::ifstream table(folder + "/FILES.tsv");
    std::string line;
    std::getline(table, line); // titles
    while (std::getline(table, line)) {
      const auto cells = split(line, '\t');
      ASSERT_GT(cells.size(), kDigest) << line;
      (cells[kDigest].empty() ? hostile_ : sound_)
          .push_back(
              {.path = folder + "/" + cells[0],
               .format = cells[kFormat],
               .digest = cells[kDigest]});
    }
  }
};

TEST_F(RealFiles, HaveTheirDigestAndAreSound) {
  for (const RealFile& real : sound_) {
    SCOPED_TRACE(real.path);
    for (const bool use_mmap : {true, false}) {
      const auto file = load(real.path, {.use_mmap = use_mmap});
      ASSERT_TRUE(file) << to_string(file.error());
      // The table says "zip-torchscript".
      EXPECT_TRUE(real.format.ends_with(file->format)) << file->format;
      const auto hash = digest(file->root);
      ASSERT_TRUE(hash) << to_string(hash.error());
      EXPECT_EQ(hash->substr(0, real.digest.size()), real.digest);
    }
    const auto report = verify(real.path);
    ASSERT_TRUE(report) << to_string(report.error());
    EXPECT_TRUE(report->is_sound());
  }
}

TEST_F(RealFiles, HostileOnesAreFoundThoughTheyAreBroken) {
  for (const RealFile& real : hostile_) {
    SCOPED_TRACE(real.path);
    const auto reports = scan_path(real.path);
    ASSERT_TRUE(reports) << to_string(reports.error());
    EXPECT_EQ(reports->front().verdict, Verdict::kFound);
    EXPECT_FALSE(reports->front().findings.empty());
  }
}

} // namespace
} // namespace lockstep::ckpt
