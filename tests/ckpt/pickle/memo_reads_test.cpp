// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/pickle/memo_reads.h"

#include <gtest/gtest.h>

#include "tests/ckpt/pickle/pickle_fixture.h"

namespace lockstep::ckpt {
namespace {

constexpr std::uint64_t kManyOpcodes = 1000;

MemoReads reads_of(const Pickle& pickle, std::uint64_t most = kManyOpcodes) {
  return find_memo_reads(as_byte_span(pickle.bytes()), most);
}

TEST(MemoReads, FindsEverySpellingOfGet) {
  const auto reads = reads_of(Pickle()
                                  .text("x")
                                  .put(0)
                                  .put(7)
                                  .get(2)
                                  .op('j')
                                  .number(5, 4)
                                  .op('g')
                                  .raw("3\n")
                                  .stop());
  for (const std::uint64_t index : {2U, 3U, 5U}) {
    EXPECT_TRUE(reads.contains(index)) << index;
  }
  for (const std::uint64_t index : {0U, 1U, 4U, 6U, 7U, 8U}) {
    EXPECT_FALSE(reads.contains(index)) << index;
  }
}

TEST(MemoReads, OperandsAreNoOpcodes) {
  const auto reads = reads_of(Pickle()
                                  .text("h\1h\1")
                                  .global("h\1", "h\1")
                                  .op('C')
                                  .number(2, 1)
                                  .raw("h\1")
                                  .get(9)
                                  .stop());
  EXPECT_FALSE(reads.contains(1));
  EXPECT_TRUE(reads.contains(9));
}

TEST(MemoReads, EndsWhereTheMachineEnds) {
  EXPECT_FALSE(reads_of(Pickle().stop().get(1)).contains(1));
  EXPECT_FALSE(reads_of(Pickle().op(0xFF).get(1)).contains(1));
  EXPECT_FALSE(reads_of(Pickle().op('X').number(99, 4).get(1)).contains(1));
  EXPECT_FALSE(reads_of(Pickle().op('N').op('N').get(1), 2).contains(1));
}

TEST(MemoReads, HugeIndicesTakeNoRoom) {
  constexpr std::uint64_t kHuge = 0xFFFFFFFF;
  const auto reads = reads_of(Pickle().op('j').number(kHuge, 4).stop());
  EXPECT_TRUE(reads.contains(kHuge));
  EXPECT_TRUE(reads.contains(kHuge - 1)); // kept rather than looked for
  EXPECT_FALSE(reads.contains(1));
}

} // namespace
} // namespace lockstep::ckpt
