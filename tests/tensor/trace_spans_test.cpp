// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/tensor/internal/trace_spans.h"

#include <latch>
#include <thread>

#include <ATen/ops/ones.h>
#include <c10/util/thread_name.h>
#include <gmock/gmock.h>

namespace lockstep {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

// Those with this name.
std::vector<RecordedSpan> named(
    const std::vector<RecordedSpan>& spans,
    std::string_view name) {
  std::vector<RecordedSpan> found;
  for (const RecordedSpan& span : spans) {
    if (span.name == name) {
      found.push_back(span);
    }
  }
  return found;
}

std::int64_t end_of(const RecordedSpan& span) {
  return span.start + span.duration;
}

bool holds(const RecordedSpan& outer, const RecordedSpan& inner) {
  return outer.start <= inner.start && end_of(inner) <= end_of(outer);
}

TEST(TraceSpans, OperatorsLieInTheSpanAroundThem) {
  const auto recorder = TraceRecorder::begin();
  {
    const TraceSpan outer("outer");
    const TraceSpan inner("inner");
    const at::Tensor sum = at::ones({2}).add(1);
  }
  const auto spans = recorder->take();
  ASSERT_THAT(named(spans, "outer"), SizeIs(1));
  const RecordedSpan outer = named(spans, "outer").front();
  EXPECT_EQ(outer.lane, "main");
  EXPECT_EQ(outer.category, "user_annotation");
  ASSERT_THAT(named(spans, "aten::add"), SizeIs(2))
      << "of a number, of a tensor";
  const RecordedSpan add = named(spans, "aten::add").front();
  EXPECT_EQ(add.lane, "main");
  EXPECT_EQ(add.category, "cpu_op");
  EXPECT_TRUE(holds(outer, named(spans, "inner").front()));
  EXPECT_TRUE(holds(named(spans, "inner").front(), add));
}

TEST(TraceSpans, ALaneTakesWhatLiesInItsSpans) {
  const auto recorder = TraceRecorder::begin();
  {
    const TraceSpan outer("outer");
    {
      const TraceSpan replica("forward", "replica", 1);
      const at::Tensor sum = at::ones({2}).add(1);
    }
    const at::Tensor product = at::ones({2}).mul(2);
  }
  const auto spans = recorder->take();
  EXPECT_EQ(named(spans, "forward").front().lane, "replica 1");
  EXPECT_EQ(named(spans, "aten::add").front().lane, "replica 1");
  EXPECT_EQ(named(spans, "aten::mul").front().lane, "main");
}

TEST(TraceSpans, ThreadsHaveLanesByTheirNames) {
  const auto recorder = TraceRecorder::begin();
  std::jthread([] {
    c10::setThreadName("worker 7");
    const TraceSpan span("work");
  }).join();
  EXPECT_EQ(recorder->take().front().lane, "worker 7");
}

TEST(TraceSpans, WhatOverlapsInALaneGetsAnother) {
  const auto recorder = TraceRecorder::begin();
  std::latch both(2);
  const auto read = [&both] {
    {
      const TraceSpan span("read", "loader");
      both.arrive_and_wait();
    }
  };
  {
    const std::jthread first(read);
    const std::jthread second(read);
  }
  { const TraceSpan span("read", "loader"); }
  const auto spans = recorder->take();
  ASSERT_THAT(spans, SizeIs(3));
  EXPECT_EQ(spans[0].lane, "loader");
  EXPECT_EQ(spans[1].lane, "loader (2)");
  EXPECT_EQ(spans[2].lane, "loader") << "it is free again";
}

TEST(TraceSpans, AnAsyncSpanHoldsNothing) {
  const auto recorder = TraceRecorder::begin();
  auto flight = begin_async_span("all_reduce", "collectives");
  { const TraceSpan span("compute"); }
  std::jthread([&flight] { flight.reset(); }).join();
  const auto spans = recorder->take();
  ASSERT_THAT(spans, SizeIs(2));
  EXPECT_EQ(spans[0].lane, "collectives");
  EXPECT_EQ(spans[1].lane, "main");
  EXPECT_TRUE(holds(spans[0], spans[1])) << "in time";
}

TEST(TraceSpans, OneThatHasNotEndedLastsUntilNow) {
  const auto recorder = TraceRecorder::begin();
  const TraceSpan open("open");
  { const TraceSpan inner("inner"); }
  const auto spans = recorder->take();
  ASSERT_THAT(spans, SizeIs(2));
  EXPECT_TRUE(holds(spans[0], spans[1]));
  EXPECT_THAT(recorder->take(), IsEmpty());
}

TEST(TraceSpans, ThereIsOneRecorderAtATime) {
  auto recorder = TraceRecorder::begin();
  ASSERT_NE(recorder, nullptr);
  EXPECT_EQ(TraceRecorder::begin(), nullptr);
  // Ends when the next one records: it is none of its.
  auto old = std::make_unique<TraceSpan>("old");
  recorder.reset();
  recorder = TraceRecorder::begin();
  ASSERT_NE(recorder, nullptr);
  { const TraceSpan span("new"); }
  old.reset();
  const auto spans = recorder->take();
  ASSERT_THAT(spans, SizeIs(1));
  EXPECT_EQ(spans.front().name, "new");
}

TEST(TraceSpans, NothingIsRecordedWithoutARecorder) {
  EXPECT_FALSE(is_traced());
  EXPECT_EQ(begin_async_span("all_reduce", "collectives"), nullptr);
  { const TraceSpan before("before"); }
  const auto recorder = TraceRecorder::begin();
  EXPECT_TRUE(is_traced());
  EXPECT_THAT(recorder->take(), IsEmpty());
}

} // namespace
} // namespace lockstep
