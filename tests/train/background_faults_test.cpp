// SPDX-License-Identifier: BSD-3-Clause
//
// What training does while a checkpoint is being written never gets into the
// file, and there is one copy of the state, not two.
#include <atomic>
#include <chrono>
#include <future>
#include <semaphore>

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <c10/core/CPUAllocator.h>
#include <gmock/gmock.h>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/load.h"
#include "lockstep/tensor/state_dict.h"
#include "lockstep/train/checkpoints.h"
#include "lockstep/train/checkpoints/checkpoint_files.h"
#include "tests/support/fault_fs.h"
#include "tests/support/memory_fs.h"

namespace lockstep::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Tensors of all kinds that training overwrites in place.
class LiveState {
 public:
  /// Every element says which step it is of.
  void fill(std::int64_t step) {
    base_.copy_(at::arange(64).add(static_cast<double>(step)));
    halves_.fill_(static_cast<double>(step % 128));
    flags_.fill_(step % 2 == 0);
    counts_.fill_(step);
  }

  /// Views that share a storage, with offsets and strides; a dict that is
  /// reached twice.
  [[nodiscard]] ckpt::Value value(std::int64_t step) const {
    ValueBuilder builder;
    const ckpt::Value options = ckpt::Value::dict(
        {{"lr", 0.1}, {"betas", ckpt::Value::tuple({0.9, 0.999})}});
    return ckpt::Value::dict(
        {{"step", step},
         {"state_dict",
          ckpt::Value::ordered_dict(
              {{"all", builder.tensor(base_)},
               {"tail", builder.tensor(base_.slice(0, 40))},
               {"columns", builder.tensor(base_.view({8, 8}).t())},
               {"none", builder.tensor(empty_)},
               {"halves", builder.tensor(halves_)},
               {"flags", builder.tensor(flags_)},
               {"counts", builder.tensor(counts_)}})},
         {"optimizer", ckpt::Value::list({options, options})}});
  }

 private:
  at::Tensor base_ = at::empty({64}, at::kFloat);
  at::Tensor empty_ = at::empty({0, 3}, at::kFloat);
  at::Tensor halves_ = at::empty({5}, at::kBFloat16);
  at::Tensor flags_ = at::empty({7}, at::kBool);
  at::Tensor counts_ = at::empty({}, at::kLong);
};

std::string path_of(std::int64_t step) {
  return "run/" + checkpoint_name(step);
}

MemoryFs with_folder() {
  MemoryFs fs;
  fs.create_directories("run").value();
  return fs;
}

/// Holds the writer's thread before its first fsync.
struct Door {
  std::binary_semaphore arrived{0};
  std::binary_semaphore open{0};
  std::atomic<bool> is_shut = true;

  /// False if nobody comes.
  bool wait() {
    return arrived.try_acquire_for(std::chrono::seconds(30));
  }
  FaultPlan plan() {
    return {.before = [this](std::string_view op) {
      if (op == "fs.sync" && is_shut.exchange(false)) {
        arrived.release();
        open.acquire();
      }
    }};
  }
};

/// Counts bytes of large blocks that LibTorch holds on the CPU.
class CountingAllocator final : public c10::Allocator {
 public:
  static constexpr std::size_t kLarge = 1 << 20;

  CountingAllocator() : base_(c10::GetCPUAllocator()) {
    c10::SetCPUAllocator(this);
  }
  CountingAllocator(const CountingAllocator&) = delete;
  CountingAllocator& operator=(const CountingAllocator&) = delete;
  ~CountingAllocator() override {
    c10::SetCPUAllocator(base_);
  }

  c10::DataPtr allocate(std::size_t bytes) override {
    c10::DataPtr data = base_->allocate(bytes);
    blocks_ += bytes >= kLarge ? 1 : 0;
    return data;
  }
  [[nodiscard]] c10::DeleterFnPtr raw_deleter() const override {
    return base_->raw_deleter();
  }
  void copy_data(void* to, const void* from, std::size_t count) const override {
    default_copy_data(to, from, count);
  }
  /// Large blocks that were ever asked for.
  [[nodiscard]] int blocks() const {
    return blocks_;
  }

 private:
  c10::Allocator* base_;
  std::atomic<int> blocks_ = 0;
};

TEST(BackgroundWriter, WritesTheBytesThatTheForegroundWrites) {
  MemoryFs behind = with_folder();
  MemoryFs before = with_folder();
  LiveState state;
  CheckpointWriter background(behind, "run", {.keep = 3});
  CheckpointWriter foreground(
      before,
      "run",
      {.keep = 3, .in_background = false});
  for (const std::int64_t step : {1, 2, 3}) {
    state.fill(step);
    background.write(state.value(step), {.step = step, .is_best = step == 2});
    foreground.write(state.value(step), {.step = step, .is_best = step == 2});
  }
  background.wait();
  const auto names = before.list("run").value();
  EXPECT_EQ(behind.list("run").value(), names);
  EXPECT_EQ(names.size(), 5U);
  for (const std::string& name : names) {
    EXPECT_EQ(
        read_text(behind, "run/" + name).value() ==
            read_text(before, "run/" + name).value(),
        true)
        << name;
  }
}

TEST(BackgroundWriter, WhatIsOverwrittenAtOnceStaysInTheFile) {
  MemoryFs behind = with_folder();
  MemoryFs before = with_folder();
  LiveState state;
  CheckpointWriter background(behind, "run", {.keep = 1});
  CheckpointWriter foreground(
      before,
      "run",
      {.keep = 1, .in_background = false});
  std::int64_t changed = 0;
  for (std::int64_t step = 1; step <= 1000; ++step) {
    state.fill(step);
    foreground.write(state.value(step), {.step = step});
    background.write(state.value(step), {.step = step});
    state.fill(-step);
    background.wait();
    changed += read_text(behind, path_of(step)).value() ==
                       read_text(before, path_of(step)).value()
                   ? 0
                   : 1;
  }
  EXPECT_EQ(changed, 0) << "of 1000 files";
}

TEST(BackgroundWriter, SharedStoragesStayShared) {
  MemoryFs fs = with_folder();
  LiveState state;
  state.fill(7);
  CheckpointWriter writer(fs, "run");
  writer.write(state.value(7), {.step = 7});
  state.fill(9);
  writer.wait();
  const auto file = ckpt::load(path_of(7), {}, fs).value();
  const ckpt::Value& weights = *file.root.find("state_dict");
  const auto tensor = [&](const char* name) {
    return *weights.find(name)->as_tensor();
  };
  EXPECT_EQ(tensor("all").storage, tensor("tail").storage);
  EXPECT_EQ(tensor("all").storage, tensor("columns").storage);
  EXPECT_EQ(tensor("tail").offset, 40);
  EXPECT_THAT(tensor("columns").strides, ElementsAre(1, 8));
  EXPECT_THAT(tensor("none").sizes, ElementsAre(0, 3));
  EXPECT_TRUE(
      at::equal(to_tensor(tensor("tail")), at::arange(47, 71).to(at::kFloat)));
  EXPECT_TRUE(
      at::equal(to_tensor(tensor("halves")), at::full({5}, 7, at::kBFloat16)));
  EXPECT_TRUE(
      at::equal(to_tensor(tensor("flags")), at::full({7}, false, at::kBool)));
  EXPECT_EQ(to_tensor(tensor("counts")).item<std::int64_t>(), 7);
}

TEST(BackgroundWriter, TheSecondWriteWaitsForTheFirst) {
  MemoryFs memory = with_folder();
  Door door;
  FaultFs fs(memory, door.plan());
  LiveState state;
  state.fill(1);
  CheckpointWriter writer(fs, "run");
  writer.write(state.value(1), {.step = 1});
  ASSERT_TRUE(door.wait());
  std::atomic<bool> is_open = false;
  auto second = std::async(std::launch::async, [&] {
    writer.write(state.value(2), {.step = 2});
    return is_open.load();
  });
  // Long enough for a writer that does not wait.
  EXPECT_EQ(
      second.wait_for(std::chrono::milliseconds(20)),
      std::future_status::timeout);
  is_open = true;
  door.open.release();
  EXPECT_TRUE(second.get()) << "it returned while the first was in flight";
  const auto outcomes = writer.wait();
  ASSERT_EQ(outcomes.size(), 2U);
  EXPECT_TRUE(outcomes[0].status);
  EXPECT_TRUE(outcomes[1].status);
}

TEST(BackgroundWriter, ThereIsOneCopyAndNoMore) {
  MemoryFs memory = with_folder();
  const at::Tensor weights =
      at::full({CountingAllocator::kLarge / 4}, 1.0, at::kFloat);
  const ckpt::Value root = ckpt::Value::dict({{"weight", to_value(weights)}});
  const CountingAllocator counting;
  {
    CheckpointWriter writer(memory, "run", {.keep = 1});
    for (std::int64_t step = 1; step <= 20; ++step) {
      writer.write(root, {.step = step});
    }
  }
  EXPECT_EQ(counting.blocks(), 1);
}

TEST(BackgroundWriter, TheLastCheckpointIsFinishedBeforeTheWriterIsGone) {
  MemoryFs memory = with_folder();
  Door door;
  FaultFs fs(memory, door.plan());
  LiveState state;
  state.fill(1);
  auto writer = std::make_unique<CheckpointWriter>(fs, "run");
  writer->write(state.value(1), {.step = 1});
  ASSERT_TRUE(door.wait());
  auto gone = std::async(std::launch::async, [&] { writer.reset(); });
  door.open.release();
  gone.get();
  MemoryFs later = memory.after_power_loss({});
  EXPECT_EQ(
      *(*ckpt::load("run/checkpoint.pth.tar", {}, later)
             .value()
             .root.find("step"))
           .as_int(),
      1);
}

// Every checkpoint has an outcome, also one that waits in vain for the best.
TEST(BackgroundWriter, ABestThatFailedIsWrittenBeforeTheNext) {
  for (const bool in_background : {true, false}) {
    MemoryFs fs = with_folder();
    int failures = 2;
    LiveState state;
    CheckpointWriter writer(
        fs,
        "run",
        {.before = [&]() -> Status {
           if (failures-- > 0) {
             return Error{.code = ErrorCode::kIo, .message = "no disk"};
           }
           return {};
         },
         .in_background = in_background});
    for (const std::int64_t step : {1, 2, 3}) {
      state.fill(step);
      writer.write(state.value(step), {.step = step, .is_best = step == 1});
    }
    const std::vector<CheckpointOutcome> outcomes = writer.wait();
    std::vector<std::pair<std::int64_t, bool>> seen;
    for (const CheckpointOutcome& outcome : outcomes) {
      seen.emplace_back(outcome.record.step, outcome.status.has_value());
    }
    using Seen = std::pair<std::int64_t, bool>;
    EXPECT_THAT(
        seen,
        ElementsAre(
            Seen(1, false),
            Seen(1, false),
            Seen(2, false),
            Seen(1, true),
            Seen(3, true)));
    EXPECT_EQ(outcomes[2].record.path, path_of(2));
    EXPECT_EQ(
        outcomes[2].status.error().message,
        "not written: checkpoint-00000001.pth.tar, the best, must be written "
        "first, and failed again: no disk");
    const auto best = ckpt::load("run/model_best.pth.tar", {}, fs).value();
    const ckpt::Tensor& counts =
        *best.root.find("state_dict")->find("counts")->as_tensor();
    EXPECT_EQ(to_tensor(counts).item<std::int64_t>(), 1);
  }
}

// Left by a run that went back to an older checkpoint.
TEST(BackgroundWriter, ANewerFileThatNobodyNeedsPushesNoneOut) {
  MemoryFs fs = with_folder();
  ASSERT_TRUE(fs.append(path_of(9)));
  LiveState state;
  CheckpointWriter writer(fs, "run", {.keep = 1});
  for (const std::int64_t step : {4, 5}) {
    state.fill(step);
    writer.write(state.value(step), {.step = step});
    writer.wait();
    EXPECT_THAT(
        list_checkpoints(fs, "run").value(),
        ElementsAre(checkpoint_name(9), checkpoint_name(step)));
  }
}

TEST(BackgroundWriter, WhatBeforeThrowsIsAnOutcome) {
  MemoryFs fs = with_folder();
  LiveState state;
  state.fill(1);
  CheckpointWriter writer(fs, "run", {.before = []() -> Status {
                            throw std::runtime_error("rows are gone");
                          }});
  writer.write(state.value(1), {.step = 1});
  const auto outcomes = writer.wait();
  ASSERT_EQ(outcomes.size(), 1U);
  EXPECT_THAT(outcomes[0].status.error().message, HasSubstr("rows are gone"));
  EXPECT_THAT(fs.list("run").value(), ::testing::IsEmpty());
}

} // namespace
} // namespace lockstep::train
