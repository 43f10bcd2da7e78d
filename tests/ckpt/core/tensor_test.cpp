// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/tensor.h"

#include <gtest/gtest.h>

namespace lockstep::ckpt {
namespace {

TEST(Tensor, CountsElements) {
  EXPECT_EQ(Tensor{}.numel(), 1); // a scalar
  EXPECT_EQ((Tensor{.sizes = {2, 3}, .strides = {3, 1}}).numel(), 6);
  EXPECT_EQ((Tensor{.sizes = {2, 0}, .strides = {1, 1}}).numel(), 0);
}

TEST(Tensor, IsContiguousInRowsWithoutGaps) {
  EXPECT_TRUE(Tensor{}.is_contiguous());
  EXPECT_TRUE((Tensor{.sizes = {2, 3}, .strides = {3, 1}}).is_contiguous());
  EXPECT_FALSE((Tensor{.sizes = {2, 3}, .strides = {1, 2}}).is_contiguous());
  EXPECT_FALSE((Tensor{.sizes = {2, 3}, .strides = {4, 1}}).is_contiguous());
  // The stride of a single row says nothing, and no element lies anywhere.
  EXPECT_TRUE((Tensor{.sizes = {1, 3}, .strides = {9, 1}}).is_contiguous());
  EXPECT_TRUE((Tensor{.sizes = {2, 0}, .strides = {7, 5}}).is_contiguous());
}

class FourBytes final : public StorageSource {
 public:
  Result<ByteSpan> load() override {
    return as_byte_span("abcd");
  }
};

TEST(StorageSource, ViewsAndStreamsWhatItLoads) {
  FourBytes source;
  std::vector<std::byte> scratch;
  EXPECT_EQ(source.view(1, 2, scratch)->data(), source.load()->data() + 1);
  std::size_t blocks = 0;
  EXPECT_TRUE(source.stream([&](ByteSpan block) {
    ++blocks;
    EXPECT_EQ(block.size(), 4U);
    return Status();
  }));
  EXPECT_EQ(blocks, 1U);
  EXPECT_FALSE(source.stored());
}

} // namespace
} // namespace lockstep::ckpt
