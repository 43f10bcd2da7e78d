// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/zip/zip_layout.h"

#include <vector>

#include <gtest/gtest.h>

namespace lockstep::ckpt {
namespace {

// The records of `torch.save(OrderedDict(w=tensor([1., 2.])), "tiny.pt")`.
TEST(ZipLayout, EqualsPyTorchOnASmallFile) {
  struct Row {
    RecordShape shape = {};
    std::uint16_t extra = 0;
    std::uint64_t payload = 0;
  };
  const std::vector<Row> rows = {
      {{0, 13, 165}, 21, 64},
      {{245, 20, 1}, 25, 320},
      {{337, 23, 2}, 58, 448},
      {{466, 14, 6}, 66, 576},
      {{598, 11, 8}, 65, 704},
      {{728, 12, 2}, 62, 832},
      {{850, 27, 40}, 53, 960}};
  std::uint64_t offset = 0;
  for (const Row& row : rows) {
    EXPECT_EQ(row.shape.header_offset, offset);
    const LocalLayout layout = local_layout(row.shape);
    EXPECT_EQ(layout.extra_bytes, row.extra);
    EXPECT_EQ(layout.payload_offset, row.payload);
    EXPECT_EQ(layout.descriptor_bytes, 16U);
    offset = layout.end;
  }
  EXPECT_EQ(offset, 1016U); // the central directory of that file
}

TEST(ZipLayout, EmptyRecordsHaveNoDescriptor) {
  const LocalLayout layout = local_layout({100, 10, 0});
  EXPECT_EQ(layout.descriptor_bytes, 0U);
  EXPECT_EQ(layout.end, layout.payload_offset);
}

TEST(ZipLayout, LargeSizesNeedWideFields) {
  EXPECT_EQ(local_layout({0, 10, 0xFFFFFFFE}).zip64_bytes, 0);
  const LocalLayout layout = local_layout({0, 10, 0xFFFFFFFF});
  EXPECT_EQ(layout.zip64_bytes, 16);
  EXPECT_EQ(layout.descriptor_bytes, 24U);
  EXPECT_EQ(central_extra_bytes({0, 10, 0xFFFFFFFF}), 20);
}

TEST(ZipLayout, LargeOffsetsNeedWideFields) {
  EXPECT_EQ(local_layout({0xFFFFFFFE, 10, 5}).zip64_bytes, 0);
  EXPECT_EQ(local_layout({0xFFFFFFFE, 10, 5}).descriptor_bytes, 16U);
  const LocalLayout layout = local_layout({0xFFFFFFFF, 10, 5});
  EXPECT_EQ(layout.zip64_bytes, 8);
  EXPECT_EQ(layout.descriptor_bytes, 24U);
  EXPECT_EQ(central_extra_bytes({0xFFFFFFFF, 10, 5}), 12);
  EXPECT_EQ(central_extra_bytes({0xFFFFFFFF, 10, 1ULL << 40}), 28);
  EXPECT_EQ(central_entry_bytes({0xFFFFFFFF, 10, 5}), 46U + 10 + 12);
}

TEST(ZipLayout, EveryPayloadIsAligned) {
  for (std::uint64_t offset = 0; offset < 200; ++offset) {
    for (const std::uint64_t size : {0ULL, 1ULL, 1ULL << 33}) {
      const LocalLayout layout = local_layout({offset, 7, size});
      EXPECT_EQ(layout.payload_offset % 64, 0U);
      EXPECT_LT(layout.padding, 64);
      EXPECT_EQ(layout.payload_offset, offset + 30 + 7 + layout.extra_bytes);
    }
  }
}

} // namespace
} // namespace lockstep::ckpt
