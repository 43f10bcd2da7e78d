// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/tensor/internal/trace_spans.h"

#include <chrono>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include <c10/util/thread_name.h>

#include "lockstep/base/strings.h"

namespace lockstep {
namespace {

/// Between the name of a span and its lane.
constexpr std::string_view kLaneMark = " @ ";
constexpr std::string_view kMainLane = "main";
/// Of a library's spans that another thread may end.
constexpr std::string_view kAsyncLane = "async";
constexpr std::uint64_t kNotYet = std::numeric_limits<std::uint64_t>::max();

/// What was begun. Begins and ends are counted together: clocks may stand
/// still between two of them.
struct TraceEvent {
  std::string name = {};
  bool is_user_scope = false;
  bool is_async = false;
  std::uint64_t thread = 0;
  std::int64_t start = 0;
  std::int64_t end = 0;
  std::uint64_t begun = 0;
  std::uint64_t ended = kNotYet;
};

/// By LibTorch's numbers of threads.
using ThreadNames = std::map<std::uint64_t, std::string>;

/// Of the recorder. Callbacks are plain functions, and a thread may end a span
/// after the recorder is gone.
struct Recording {
  std::mutex mutex;
  /// Counts recorders: a span of an earlier one ends unseen.
  std::uint64_t generation = 0;
  bool is_taken = false;
  bool is_open = false;
  std::uint64_t count = 0;
  std::uint64_t main_thread = 0;
  ThreadNames threads = {};
  std::vector<TraceEvent> events = {};
};

// For good: a thread may end a span after main.
Recording& recording() {
  static auto* const the_one = new Recording;
  return *the_one;
}

std::int64_t steady_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// What turns steady times into those since 1970.
std::int64_t epoch_offset() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
             .count() -
         steady_ns();
}

struct BegunEvent final : at::ObserverContext {
  BegunEvent(std::uint64_t of, std::size_t place)
      : generation(of), index(place) {}
  std::uint64_t generation;
  std::size_t index;
};

std::unique_ptr<at::ObserverContext> on_begin(const at::RecordFunction& scope) {
  Recording& all = recording();
  const std::lock_guard lock(all.mutex);
  if (!all.is_open) {
    return nullptr;
  }
  const std::uint64_t thread = scope.threadId();
  if (!all.threads.contains(thread)) {
    all.threads.emplace(thread, c10::getThreadName());
  }
  all.events.push_back(
      {.name = scope.name(),
       .is_user_scope = scope.scope() == at::RecordScope::USER_SCOPE,
       .is_async = scope.isAsync(),
       .thread = thread,
       .start = steady_ns(),
       .begun = all.count++});
  return std::make_unique<BegunEvent>(all.generation, all.events.size() - 1);
}

void on_end(const at::RecordFunction& /*scope*/, at::ObserverContext* context) {
  const auto* const begun = dynamic_cast<const BegunEvent*>(context);
  if (begun == nullptr) {
    return;
  }
  const std::int64_t now = steady_ns();
  Recording& all = recording();
  const std::lock_guard lock(all.mutex);
  if (all.is_open && begun->generation == all.generation) {
    TraceEvent& event = all.events[begun->index];
    event.end = now;
    event.ended = all.count++;
  }
}

/// Spans that lie inside of the first of them, in one lane.
struct Block {
  std::string lane = {};
  std::int64_t start = 0;
  std::int64_t end = 0;
};

/// Puts events into blocks, in the order in which they began.
class Blocks {
 public:
  Blocks(const std::vector<TraceEvent>& events, ThreadNames threads)
      : events_(events), threads_(std::move(threads)) {}

  /// Takes the lane off the event's name. Returns the event's block.
  std::size_t place(std::size_t index, std::string& name);
  /// With numbers for lanes of blocks that overlap.
  std::vector<Block> take();

 private:
  struct Around {
    std::size_t event = 0;
    std::size_t block = 0;
  };

  const std::vector<TraceEvent>& events_;
  ThreadNames threads_;
  /// The events of each thread that have not ended.
  std::map<std::uint64_t, std::vector<Around>> open_ = {};
  std::vector<Block> blocks_ = {};
};

std::size_t Blocks::place(std::size_t index, std::string& name) {
  const TraceEvent& event = events_[index];
  std::vector<Around>& open = open_[event.thread];
  while (!open.empty() && events_[open.back().event].ended < event.begun) {
    open.pop_back();
  }
  std::string lane;
  if (const std::size_t mark = name.rfind(kLaneMark);
      event.is_user_scope && mark != std::string::npos) {
    lane = name.substr(mark + kLaneMark.size());
    name.resize(mark);
  } else if (event.is_async) {
    lane = kAsyncLane;
  } else if (!open.empty()) {
    lane = blocks_[open.back().block].lane;
  } else {
    lane = threads_[event.thread];
  }
  if (event.is_async || open.empty() ||
      blocks_[open.back().block].lane != lane) {
    blocks_.push_back(
        {.lane = std::move(lane), .start = event.start, .end = event.end});
  } else {
    open.push_back({.event = index, .block = open.back().block});
    return open.back().block;
  }
  if (!event.is_async) {
    open.push_back({.event = index, .block = blocks_.size() - 1});
  }
  return blocks_.size() - 1;
}

std::vector<Block> Blocks::take() {
  // When each lane of a name is free again.
  std::map<std::string, std::vector<std::int64_t>> lanes;
  for (Block& block : blocks_) {
    std::vector<std::int64_t>& free_at = lanes[block.lane];
    std::size_t number = 0;
    while (number < free_at.size() && free_at[number] > block.start) {
      ++number;
    }
    if (number == free_at.size()) {
      free_at.push_back(0);
    }
    free_at[number] = block.end;
    if (number > 0) {
      block.lane += format(" ({})", number + 1);
    }
  }
  return std::move(blocks_);
}

/// "main", a name that the thread was given, "thread 4".
ThreadNames lane_names(ThreadNames names, std::uint64_t main_thread) {
  const std::string program = names[main_thread];
  for (auto& [thread, name] : names) {
    if (thread == main_thread) {
      name = kMainLane;
    } else if (name.empty() || name == program) {
      name = format("thread {}", thread);
    }
  }
  return names;
}

std::string with_lane(std::string_view name, std::string_view lane) {
  return format("{}{}{}", name, kLaneMark, lane);
}

} // namespace

TraceSpan::TraceSpan(std::string_view name, std::string_view lane)
    : scope_(at::RecordScope::USER_SCOPE) {
  if (scope_.isActive()) {
    const std::string full =
        lane.empty() ? std::string(name) : with_lane(name, lane);
    scope_.before(std::string_view(full));
  }
}

TraceSpan::TraceSpan(
    std::string_view name,
    std::string_view lane,
    std::size_t number)
    : scope_(at::RecordScope::USER_SCOPE) {
  if (scope_.isActive()) {
    const std::string full = with_lane(name, format("{} {}", lane, number));
    scope_.before(std::string_view(full));
  }
}

TraceSpan::TraceSpan(StepNumber number) : scope_(at::RecordScope::USER_SCOPE) {
  if (scope_.isActive()) {
    const std::string name = format("ProfilerStep#{}", number.value);
    scope_.before(std::string_view(name));
  }
}

bool is_traced() {
  return at::getStepCallbacksUnlessEmpty(at::RecordScope::USER_SCOPE)
      .has_value();
}

std::unique_ptr<at::RecordFunction> begin_async_span(
    std::string_view name,
    std::string_view lane) {
  auto callbacks = at::getStepCallbacksUnlessEmpty(at::RecordScope::USER_SCOPE);
  if (!callbacks) {
    return nullptr;
  }
  auto span = std::make_unique<at::RecordFunction>(std::move(*callbacks));
  const std::string full = with_lane(name, lane);
  span->_setAsync(); // before the callbacks look
  span->before(std::string_view(full));
  return span;
}

// Threads run meanwhile: LibTorch changes its list of callbacks under a lock,
// and each thread takes the new one with its next scope.
TraceRecorder::TraceRecorder()
    : handle_(at::addGlobalCallback(at::RecordFunctionCallback(on_begin, on_end)
                                        .scopes(
                                            {at::RecordScope::FUNCTION,
                                             at::RecordScope::BACKWARD_FUNCTION,
                                             at::RecordScope::USER_SCOPE}))) {}

std::unique_ptr<TraceRecorder> TraceRecorder::begin() {
  Recording& all = recording();
  {
    const std::lock_guard lock(all.mutex);
    if (std::exchange(all.is_taken, true)) {
      return nullptr;
    }
    ++all.generation;
    all.is_open = true;
    all.events.clear();
    all.main_thread = at::RecordFunction::currentThreadId();
    all.threads = {{all.main_thread, c10::getThreadName()}};
  }
  return std::unique_ptr<TraceRecorder>(new TraceRecorder());
}

TraceRecorder::~TraceRecorder() {
  at::removeCallback(handle_);
  Recording& all = recording();
  const std::lock_guard lock(all.mutex);
  all.is_open = false;
  all.is_taken = false;
}

std::vector<RecordedSpan> TraceRecorder::take() {
  std::vector<TraceEvent> events;
  ThreadNames threads;
  {
    Recording& all = recording();
    const std::lock_guard lock(all.mutex);
    all.is_open = false;
    events = std::exchange(all.events, {});
    threads = lane_names(std::exchange(all.threads, {}), all.main_thread);
  }
  const std::int64_t now = steady_ns();
  const std::int64_t offset = epoch_offset();
  for (TraceEvent& event : events) {
    event.end = event.ended == kNotYet ? now : event.end;
  }
  Blocks blocks(events, std::move(threads));
  std::vector<std::size_t> places;
  places.reserve(events.size());
  for (std::size_t i = 0; i < events.size(); ++i) {
    places.push_back(blocks.place(i, events[i].name));
  }
  const std::vector<Block> lanes = blocks.take();
  std::vector<RecordedSpan> spans;
  spans.reserve(events.size());
  for (std::size_t i = 0; i < events.size(); ++i) {
    spans.push_back(
        {.name = std::move(events[i].name),
         .category = events[i].is_user_scope ? "user_annotation" : "cpu_op",
         .lane = lanes[places[i]].lane,
         .start = events[i].start + offset,
         .duration = events[i].end - events[i].start});
  }
  return spans;
}

} // namespace lockstep
