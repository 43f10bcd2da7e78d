// SPDX-License-Identifier: BSD-3-Clause
//
// The small parts below the trainer.
#include <limits>

#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <gmock/gmock.h>

#include "lockstep/base/strings.h"
#include "lockstep/data/samplers.h"
#include "lockstep/metrics/metric.h"
#include "lockstep/optim/optimizers.h"
#include "lockstep/tensor/rng.h"
#include "lockstep/train/checkpoints.h"
#include "lockstep/train/checkpoints/run_files.h"
#include "lockstep/train/loop/cursor.h"
#include "lockstep/train/sample_order.h"
#include "lockstep/train/state_parts.h"
#include "tests/support/memory_fs.h"
#include "tests/support/thread_ranks.h"

namespace lockstep::train {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// The ranks of a group. They are asked for their number only: nobody is left
/// to answer.
std::vector<dist::ProcessGroup> ranks_of(int size) {
  std::vector<dist::ProcessGroup> ranks(static_cast<std::size_t>(size));
  const auto errors =
      dist::run_thread_ranks(size, [&](const dist::ProcessGroup& group) {
        ranks[static_cast<std::size_t>(group.rank())] = group;
      });
  EXPECT_THAT(errors, Each(IsEmpty()));
  return ranks;
}

StatePart number_part(std::string key, std::int64_t& number) {
  return {
      .key = std::move(key),
      .save = [&number](ValueBuilder&) { return ckpt::Value(number); },
      .load =
          [&number](const ckpt::Value& saved) { number = *saved.as_int(); }};
}

TEST(RunState, SavesInOrderAndLoadsBack) {
  std::int64_t a = 1;
  std::int64_t b = 2;
  RunState state;
  state.add(number_part("b", b)).add(number_part("a", a));
  const ckpt::Value root = state.save();
  EXPECT_EQ(root.as_dict()->items.front().first.text(), "b");
  a = b = 0;
  EXPECT_THAT(state.load(root), ElementsAre());
  EXPECT_EQ(a, 1);
  EXPECT_EQ(b, 2);
}

TEST(RunState, MissingKeysAreNamedBeforeAnythingChanges) {
  std::int64_t a = 1;
  std::int64_t b = 2;
  RunState state;
  StatePart optional = number_part("c", b);
  optional.if_missing = IfMissing::kWarn;
  state.add(number_part("a", a)).add(number_part("b", b)).add(optional);
  EXPECT_THAT(
      state.load(ckpt::Value::dict({{"a", 7}, {"b", 8}})),
      ElementsAre("c"));
  EXPECT_EQ(a, 7);
  try {
    state.load(ckpt::Value::dict({{"a", 9}}));
    FAIL() << "b is missing";
  } catch (const Exception& error) {
    EXPECT_THAT(error.error().message, HasSubstr("no 'b'"));
  }
  EXPECT_EQ(a, 7);
}

TEST(RunState, AKeyIsTakenOnce) {
  std::int64_t a = 1;
  RunState state;
  state.add(number_part("a", a));
  EXPECT_THROW(state.add(number_part("a", a)), Exception);
  EXPECT_THROW(state.add(number_part("", a)), Exception);
}

TEST(GeneratorPart, GoesOnWithTheSameNumbers) {
  RunState state;
  state.add(generator_part());
  at::manual_seed(3);
  const SnapshotBuffer unused;
  SnapshotBuffer buffer;
  const ckpt::Value saved = buffer.copy(state.save());
  const at::Tensor expected = at::rand({5});
  at::rand({100});
  state.load(saved);
  EXPECT_TRUE(at::equal(at::rand({5}), expected));
}

TEST(GeneratorPart, HoldsThoseOfAllRanks) {
  at::manual_seed(5);
  const auto errors =
      dist::run_thread_ranks(2, [](const dist::ProcessGroup& group) {
        const ckpt::Value saved =
            RunState(RunState().add(generator_part({}, group))).save();
        const auto& ranks = *saved.find("rng")->find("ranks")->elements();
        ASSERT_EQ(ranks.size(), 2U);
        for (const ckpt::Value& states : ranks) {
          ASSERT_EQ(states.elements()->size(), 1U);
          EXPECT_TRUE(at::equal(
              to_tensor(*states.elements()->front().as_tensor()),
              get_rng_state()));
        }
      });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

TEST(GeneratorPart, EachRankGoesOnWithItsOwn) {
  const auto state_of = [](std::uint64_t seed) {
    at::manual_seed(seed);
    return get_rng_state();
  };
  const auto numbers_of = [](std::uint64_t seed) {
    at::manual_seed(seed);
    return at::rand({5});
  };
  ValueBuilder builder;
  const auto list = [&](std::uint64_t seed) {
    return ckpt::Value::list({builder.tensor(state_of(seed))});
  };
  const ckpt::Value saved = ckpt::Value::dict(
      {{"rng",
        ckpt::Value::dict(
            {{"cpu", builder.tensor(state_of(5))},
             {"ranks", ckpt::Value::list({list(5), list(6)})}})}});
  // Of three, the last one was not there: it keeps what it has.
  const auto ranks = ranks_of(3);
  for (const std::uint64_t rank : {0, 1, 2}) {
    at::manual_seed(7);
    RunState(RunState().add(generator_part({}, ranks[rank]))).load(saved);
    const at::Tensor numbers = at::rand({5});
    EXPECT_TRUE(at::equal(numbers, numbers_of(5 + rank))) << rank;
  }
}

TEST(SnapshotBuffer, IsACopyThatKeepsSharing) {
  at::Tensor live = at::arange(6, at::kFloat);
  ValueBuilder builder;
  const ckpt::Value root = ckpt::Value::dict(
      {{"whole", builder.tensor(live)},
       {"list", ckpt::Value::list({builder.tensor(live.slice(0, 2, 4)), 5})}});
  SnapshotBuffer buffer;
  const ckpt::Value copy = buffer.copy(root);
  live.zero_();
  const ckpt::Tensor& whole = *copy.find("whole")->as_tensor();
  const ckpt::Tensor& part =
      *copy.find("list")->elements()->front().as_tensor();
  EXPECT_EQ(whole.storage, part.storage);
  EXPECT_TRUE(at::equal(to_tensor(whole), at::arange(6, at::kFloat)));
  EXPECT_TRUE(at::equal(to_tensor(part), at::arange(2, 4, at::kFloat)));
  EXPECT_EQ(*copy.find("list")->elements()->back().as_int(), 5);
}

TEST(SnapshotBuffer, CopiesTensorsWhereverValuesHoldThem) {
  at::Tensor live = at::ones({3});
  ValueBuilder builder;
  const ckpt::Value tensor = builder.tensor(live);
  ckpt::Tensor owner = *tensor.as_tensor();
  owner.attributes =
      std::make_shared<ckpt::Value>(ckpt::Value::dict({{"ema", tensor}}));
  const ckpt::Value root = ckpt::Value::dict(
      {{"set", ckpt::Set{{tensor}}}, {"owner", std::move(owner)}});
  SnapshotBuffer buffer;
  const ckpt::Value copy = buffer.copy(root);
  live.zero_();
  const ckpt::Value& element = copy.find("set")->as_set()->items.front();
  const ckpt::Value* ema =
      copy.find("owner")->as_tensor()->attributes->find("ema");
  EXPECT_TRUE(at::equal(to_tensor(*element.as_tensor()), at::ones({3})));
  EXPECT_TRUE(at::equal(to_tensor(*ema->as_tensor()), at::ones({3})));
}

Cursor counting_accuracy() {
  return {
      .sums = Scoring(Metrics{accuracy()}),
      .best_by = {.column = "val_top1", .better = Better::kHigher}};
}

TEST(Cursor, CountsAndComesBack) {
  Cursor cursor = counting_accuracy();
  cursor.count_samples(8, 1, 12);
  cursor.count_step();
  cursor.sums.add({.loss = 2.0F, .sums = {3, 4, 8, 0}, .samples = 8});
  cursor.count_samples(8, 1, 12);
  cursor.count_step(); // filled up with samples that were read before
  cursor.sums.add({.loss = 1.0F, .sums = {1, 2, 4, 0}, .samples = 4});
  EXPECT_EQ(cursor.samples, 12);
  const Score score = cursor.sums.score(Metrics{accuracy()}, 0);
  EXPECT_EQ(score.loss, 20.0 / 12);
  EXPECT_EQ(score.metric("top1"), 100.0 * 4 / 12);
  EXPECT_EQ(score.metric("top5"), 50.0);
  RunState state;
  state.add(cursor_parts(cursor, /*group=*/{}));
  const ckpt::Value saved = state.save();
  Cursor other = counting_accuracy();
  RunState again;
  again.add(cursor_parts(other, /*group=*/{}));
  again.load(saved);
  EXPECT_EQ(other, cursor);
  // Inside an epoch its sums are those of other metrics.
  Cursor without;
  without.best_by = cursor.best_by;
  RunState third;
  third.add(cursor_parts(without, /*group=*/{}));
  try {
    third.load(saved);
    ADD_FAILURE() << "no error";
  } catch (const Exception& exception) {
    EXPECT_THAT(
        exception.error().message,
        HasSubstr("begun with other metrics"));
  }
}

TEST(Cursor, ReadsTheSumsOfOlderCheckpoints) {
  Cursor cursor = counting_accuracy();
  RunState state;
  state.add(cursor_parts(cursor, /*group=*/{}));
  const auto whole = [](std::int64_t number) { return ckpt::Value(number); };
  state.load(ckpt::Value::dict(
      {{"epoch", whole(2)},
       {"best_acc1", ckpt::Value(75.0)},
       {"cursor",
        ckpt::Value::dict(
            {{"batch", whole(1)},
             {"samples", whole(8)},
             {"total_samples", whole(32)},
             {"loss_sum", ckpt::Value(16.0)},
             {"top1_sum", whole(3)},
             {"top5_sum", whole(4)},
             {"summed", whole(8)},
             {"lr", ckpt::Value(0.1)}})}}));
  EXPECT_EQ(cursor.best, 75.0);
  EXPECT_EQ(cursor.sums.score(Metrics{accuracy()}, 0).metric("top1"), 37.5);
}

TEST(Cursor, TheBestIsTheHighestOrTheLowestAsTheMetricSays) {
  const auto epoch = [](double loss, double miou) {
    return EpochRecord{
        .train = {.loss = 1},
        .test = Score{.loss = loss, .metrics = {{"miou", miou}}}};
  };
  Cursor highest{.best_by = {"val_miou", Better::kHigher}};
  EXPECT_TRUE(highest.take_best(epoch(1, 0.0)));
  EXPECT_TRUE(highest.take_best(epoch(2, 0.5)));
  EXPECT_FALSE(highest.take_best(epoch(1, 0.4)));
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(highest.take_best(epoch(1, nan))) << "nothing was counted";
  EXPECT_FALSE(highest.take_best(epoch(nan, 0.9)));
  EXPECT_EQ(highest.best_text(), "best val_miou 0.5");
  Cursor lowest{.best_by = {"val_loss", Better::kLower}};
  EXPECT_TRUE(lowest.take_best(epoch(2, 0)));
  EXPECT_TRUE(lowest.take_best(epoch(1, 0)));
  EXPECT_FALSE(lowest.take_best(epoch(1.5, 0)));
}

TEST(Cursor, SumsOfAllRanksComeBackOnOne) {
  const auto errors =
      dist::run_thread_ranks(2, [](const dist::ProcessGroup& group) {
        Cursor cursor = counting_accuracy();
        cursor.count_samples(8, 2, 100);
        cursor.count_step();
        cursor.sums.add({.loss = 2.0F, .sums = {3, 4, 8, 0}, .samples = 8});
        EXPECT_EQ(cursor.samples, 16);
        RunState state;
        state.add(cursor_parts(cursor, group));
        const ckpt::Value saved = state.save();
        cursor = counting_accuracy();
        state.load(saved);
        EXPECT_EQ(cursor.sums.samples, group.rank() == 0 ? 16 : 0);
        EXPECT_EQ(cursor.sums.sums[0], group.rank() == 0 ? 6 : 0);
        EXPECT_EQ(cursor.samples, 16);
      });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

TEST(SampleOrder, IsPythonsFromTheStart) {
  DistributedSampler sampler(11, {.num_replicas = 3, .rank = 2, .seed = 4});
  sampler.set_epoch(2);
  EXPECT_EQ(
      sample_order(11, {.seed = 4, .epoch = 2}, ranks_of(3)[2]),
      sampler.indices());
}

TEST(SampleOrder, NothingIsLostWhenTheNumberOfRanksChanges) {
  const auto all = sample_order(100, {.seed = 1});
  std::vector<std::int64_t> read(all.begin(), all.begin() + 40);
  for (const dist::ProcessGroup& rank : ranks_of(3)) {
    const auto rest = sample_order(100, {.seed = 1, .consumed = 40}, rank);
    EXPECT_EQ(rest.size(), 20U);
    read.insert(read.end(), rest.begin(), rest.end());
  }
  std::ranges::sort(read);
  for (std::size_t i = 0; i < read.size(); ++i) {
    EXPECT_EQ(read[i], static_cast<std::int64_t>(i));
  }
  EXPECT_THAT(sample_order(100, {.consumed = 100}), ElementsAre());
  EXPECT_THROW(sample_order(100, {.consumed = 101}), Exception);
}

class RunFilesTest : public ::testing::Test {
 protected:
  /// Opens `rows` with `counted` rows of a checkpoint, appends `more`.
  std::string go_on(std::int64_t counted, const std::string& more) {
    RunFiles files(fs_, [this](const Error& error) {
      errors_.push_back(error);
    });
    files.part().load(ckpt::Value::dict({{"rows.csv", counted}}));
    files.open("rows.csv", "a,b").append(more);
    return read_text(fs_, "rows.csv").value();
  }
  MemoryFs fs_;
  std::vector<Error> errors_;
};

TEST_F(RunFilesTest, RowsAfterTheCheckpointAreCutOff) {
  go_on(0, "1,1");
  go_on(1, "2,2");
  EXPECT_EQ(go_on(1, "3,3"), "a,b\n1,1\n3,3\n");
  EXPECT_THAT(errors_, ElementsAre());
}

TEST_F(RunFilesTest, MissingRowsAreTold) {
  go_on(0, "1,1");
  EXPECT_EQ(go_on(5, "2,2"), "a,b\n1,1\n2,2\n");
  ASSERT_EQ(errors_.size(), 1U);
  EXPECT_THAT(errors_.back().message, HasSubstr("counted 5, found 1"));
}

TEST_F(RunFilesTest, WithoutACheckpointRowsStay) {
  go_on(0, "1,1");
  RunFiles files(fs_, [](const Error& error) { raise(error); });
  RunFile& file = files.open("rows.csv", "a,b");
  EXPECT_EQ(file.rows(), 1);
  file.append("2,2");
  EXPECT_EQ(read_text(fs_, "rows.csv").value(), "a,b\n1,1\n2,2\n");
}

} // namespace
} // namespace lockstep::train
