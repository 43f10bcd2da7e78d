// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include "lockstep/ckpt/zip/zip_reader.h"
#include "tests/ckpt/zip/zip_fixture.h"

namespace lockstep::ckpt {
namespace {

std::string folder_refusal(const ZipBytes& zip) {
  const std::string bytes = zip.finish();
  const auto reader = ZipReader::open(make_source(as_byte_span(bytes)));
  return reader ? "" : reader.error().detail;
}

// As `zip -r` and shutil.make_archive write them; torch.load passes them over.
TEST(ZipFolders, ArePassedOver) {
  ZipBytes zip;
  zip.add("a/", "");
  zip.add("a/data.pkl", "payload");
  zip.add("a/data/", "");
  zip.add("a/data/0", "1");
  const std::string bytes = zip.finish();
  const auto reader = ZipReader::open(make_source(as_byte_span(bytes)));
  ASSERT_TRUE(reader) << to_string(reader.error());
  EXPECT_EQ(reader->root(), "a");
  EXPECT_EQ(reader->records().size(), 2U);
  EXPECT_EQ(reader->find("data/"), nullptr);
}

TEST(ZipFolders, AreRefusedIfTheyHaveBytesOrOddNames) {
  ZipBytes bytes;
  bytes.add("a/data.pkl", "payload");
  bytes.add("a/data/", "2");
  EXPECT_EQ(folder_refusal(bytes), "E_NAME");
  ZipBytes above;
  above.add("a/data.pkl", "payload");
  above.add("a/../", "");
  EXPECT_EQ(folder_refusal(above), "E_NAME");
}

} // namespace
} // namespace lockstep::ckpt
