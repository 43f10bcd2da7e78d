// SPDX-License-Identifier: BSD-3-Clause
//
// How local headers are read: internal/header_window.h, through `ZipReader`.
#include <gtest/gtest.h>

#include "lockstep/ckpt/zip/zip_reader.h"
#include "tests/ckpt/counted_source.h"
#include "tests/ckpt/zip/zip_fixture.h"

namespace lockstep::ckpt {
namespace {

// An archive of records with as many bytes as `sizes` say.
std::string archive(const std::vector<std::size_t>& sizes) {
  ZipBytes zip;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    zip.add("a/" + std::to_string(i), std::string(sizes[i], 'x'));
  }
  return zip.finish();
}

// Calls and bytes to open an archive, less those for one of one record.
struct Cost {
  int reads = 0;
  std::uint64_t bytes = 0;
};

Cost cost_of(const std::vector<std::size_t>& sizes) {
  const auto source = std::make_shared<CountedSource>(archive(sizes));
  EXPECT_TRUE(ZipReader::open(source));
  return {.reads = source->reads, .bytes = source->bytes_read};
}

int more_reads(const std::vector<std::size_t>& sizes) {
  return cost_of(sizes).reads - cost_of({8}).reads;
}

TEST(HeaderWindow, ReadsNeighboursTogether) {
  EXPECT_EQ(more_reads({8, 8, 8, 8, 8, 8}), 0);
  EXPECT_EQ(more_reads({8, 4000, 8}), 0);
}

TEST(HeaderWindow, LeavesLargePayloadsAlone) {
  EXPECT_EQ(more_reads({8, 5000, 8}), 1);
  const std::uint64_t large = cost_of({1 << 20, 8, 1 << 20, 8}).bytes;
  EXPECT_LT(large, 140'000U); // the end of the file, and headers
}

TEST(HeaderWindow, EndsAfterTwoPages) {
  EXPECT_EQ(more_reads({3000, 3000, 3000, 3000, 3000}), 1);
}

TEST(HeaderWindow, FindsALieInTheMiddle) {
  ZipBytes zip;
  zip.add("a/0", "0");
  zip.add("a/1", "1", {.local_name = "a/x"});
  zip.add("a/2", "2");
  const auto file =
      ZipReader::open(std::make_shared<CountedSource>(zip.finish()));
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().detail, "E_LOCAL_MISMATCH");
  EXPECT_EQ(file.error().record, "a/1");
}

} // namespace
} // namespace lockstep::ckpt
