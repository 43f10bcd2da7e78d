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

// Of elements that share bytes, too: others compute with sizes and strides.
TEST(CheckView, RefusesNumbersBeyond64Bits) {
  constexpr std::int64_t kHuge = std::int64_t{1} << 61;
  const auto check = [](DType dtype,
                        std::vector<std::int64_t> sizes,
                        std::vector<std::int64_t> strides) {
    const Status status = check_view(
        {.dtype = dtype,
         .sizes = std::move(sizes),
         .strides = std::move(strides),
         .storage = std::make_shared<Storage>(Storage{.nbytes = 8})});
    return status ? "" : status.error().detail;
  };
  for (const DType dtype : {DType::kUInt8, DType::kQUInt4x2}) {
    EXPECT_EQ(check(dtype, {0, kHuge, 4}, {4, 4, 1}), "E_OVERFLOW");
    EXPECT_EQ(check(dtype, {4}, {2 * kHuge}), "E_OVERFLOW");
    EXPECT_EQ(check(dtype, {2, 2}, {2, 1}), "");
  }
  // Strides of packed elements reach nowhere.
  EXPECT_EQ(check(DType::kUInt8, {2, 2}, {kHuge, 1}), "E_VIEW_BOUNDS");
  EXPECT_EQ(check(DType::kQUInt4x2, {2, 2}, {kHuge, 1}), "");
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
