// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/core/budget.h"

#include <cmath>
#include <limits>

#include <gmock/gmock.h>

#include "lockstep/ckpt/inspect.h"
#include "lockstep/ckpt/load.h"
#include "lockstep/ckpt/scan.h"
#include "lockstep/ckpt/verify.h"
#include "tests/ckpt/bad_inputs/builders.h"
#include "tests/ckpt/deflate.h"
#include "tests/support/memory_fs.h"

namespace lockstep::ckpt::budget {
namespace {

using bad_inputs::checkpoint;
using testing::HasSubstr;

constexpr std::uint64_t kMostBytes = std::numeric_limits<std::uint64_t>::max();

Limits small_limits() {
  Limits limits;
  limits.max_made_bytes = 100;
  limits.max_steps = 10;
  return limits;
}

TEST(Budget, AllowsByTheSizeOfTheFile) {
  Budget budget(small_limits());
  budget.add_file(10);
  EXPECT_TRUE(budget.make(100 + kMadePerByte * 10));
  EXPECT_FALSE(budget.make(1));
  EXPECT_TRUE(budget.step(10 + kStepsPerByte * 10));
  EXPECT_FALSE(budget.step());
  EXPECT_TRUE(budget.read(100 + kMadePerByte * 10));
  EXPECT_FALSE(budget.read(1));
  EXPECT_EQ(budget.made(), 261U);
  EXPECT_EQ(budget.steps(), 651U);
  EXPECT_EQ(budget.bytes_read(), 261U);
}

TEST(Budget, SaysWhatWasCountedAndWhatAllowsMore) {
  Budget budget(small_limits());
  const Status made = budget.make(101);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, ErrorCode::kUnsafe);
  EXPECT_EQ(made.error().detail, "E_LIMIT");
  EXPECT_EQ(
      made.error().message,
      "values, names and copies of 101 bytes; expected at most 100: 100 and 16 "
      "for each byte of the file");
  EXPECT_EQ(made.error().hint, "Limits::max_made_bytes allows more");
  const Status step = budget.step(11);
  ASSERT_FALSE(step);
  EXPECT_EQ(
      step.error().message,
      "11 steps of work; expected at most 10: 10 and 64 for each byte of the "
      "file");
  EXPECT_EQ(step.error().hint, "Limits::max_steps allows more");
  const Status read = budget.read(101);
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().message, HasSubstr("101 bytes read"));
}

TEST(Budget, AddsFilesAndTakesTheLargestArchive) {
  Budget budget(small_limits());
  budget.add_file(5);
  budget.add_file(7);
  budget.inflates_by(30);
  budget.inflates_by(20);
  EXPECT_EQ(budget.file_bytes(), 42U);
}

TEST(Budget, HoldsNumbersOfAnySize) {
  Budget budget(Limits{});
  EXPECT_FALSE(budget.make(kMostBytes));
  EXPECT_FALSE(budget.make(kMostBytes));
  EXPECT_EQ(budget.made(), kMostBytes);
  Budget open(expanding(Limits{}));
  open.add_file(kMostBytes);
  EXPECT_TRUE(open.make(kMostBytes));
  EXPECT_TRUE(open.step(kMostBytes));
}

TEST(Budget, IsThatOfTheLimitsOrNew) {
  const Limits limits = counting(small_limits(), 3);
  EXPECT_EQ(limits.budget->file_bytes(), 3U);
  EXPECT_EQ(counting(limits, 8).budget, limits.budget);
  EXPECT_EQ(budget_of(limits, 8), limits.budget);
}

TEST(Budget, OfALoadGoesOnInTools) {
  const auto file = load("testdata/valid/training.pth.tar");
  ASSERT_TRUE(file);
  ASSERT_NE(file->budget, nullptr);
  EXPECT_EQ(file->budget->file_bytes(), file->file_bytes);
  EXPECT_GT(file->budget->depth(), 2U);
  EXPECT_GT(file->budget->made(), 0U);
  const std::uint64_t steps = file->budget->steps();
  EXPECT_GT(steps, 0U);
  ASSERT_TRUE(summarize(*file));
  const std::uint64_t more = file->budget->steps();
  EXPECT_GT(more, steps);
  ASSERT_TRUE(digest(file->root, counting(Limits{}, *file)));
  EXPECT_GT(file->budget->steps(), more);
}

// What a load says of steps that are too many, with the place.
TEST(Budget, NamesThePlaceInAFile) {
  Pickle pickle;
  pickle.op(']').mark().raw(std::string(100, 'N')).op('e').stop();
  const std::string bytes = checkpoint(pickle);
  Limits limits;
  limits.max_steps = 10;
  limits.budget = std::make_shared<Budget>(limits); // of no file
  const auto file =
      load(make_source(as_byte_span(bytes)), "f.pt", {.limits = limits});
  ASSERT_FALSE(file);
  EXPECT_EQ(
      to_string(file.error()),
      "[ckpt.read] STOP: 105 steps of work; expected at most 10: 10 and 64 for "
      "each byte of the file (f.pt, record a/data.pkl, offset 0x69). Hint: "
      "Limits::max_steps allows more.");
}

// `zip -r` deflates what PyTorch stores: what is made of a pickle is counted
// against its own size then.
TEST(Budget, TakesSoundPicklesThatWereDeflated) {
  constexpr int kEntries = 50'000;
  Pickle pickle;
  pickle.op('}').mark();
  for (int i = 0; i < kEntries; ++i) {
    pickle.text("layer." + std::to_string(i)).op('}').text("step").int4(i);
    pickle.op('s');
  }
  const std::string bytes = pickle.op('u').stop().bytes();
  const std::string packed = deflate(bytes);
  ZipBytes zip;
  zip.add(
      "a/data.pkl",
      packed,
      {.crc = crc32(as_byte_span(bytes)),
       .local_crc = crc32(as_byte_span(bytes)),
       .size = static_cast<std::uint32_t>(bytes.size()),
       .method = 8});
  zip.add("a/version", "3\n");
  const std::string archive = zip.finish();
  ASSERT_LT(8 * archive.size(), bytes.size());
  Limits limits; // without what is free in any case
  limits.max_made_bytes = 0;
  limits.max_steps = 0;
  const auto file =
      load(make_source(as_byte_span(archive)), "f.pt", {.limits = limits});
  ASSERT_TRUE(file) << to_string(file.error());
  EXPECT_EQ(file->root.as_dict()->items.size(), std::size_t{kEntries});
  EXPECT_LT(file->budget->used(), 0.8);
}

// Pickles in a row have no number that is too many.
TEST(Budget, TakesManySoundPicklesInARow) {
  std::string bytes;
  for (int i = 0; i < 3000; ++i) {
    bytes += Pickle().text("entry " + std::to_string(i)).stop().bytes();
  }
  const auto report = scan(make_source(as_byte_span(bytes)), "rows.pkl");
  EXPECT_EQ(report.pickles, 3000U);
  EXPECT_EQ(report.verdict, Verdict::kClean);
  EXPECT_LT(report.notes.size(), 200U);
}

} // namespace
} // namespace lockstep::ckpt::budget
