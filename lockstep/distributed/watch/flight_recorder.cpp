// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/distributed/watch/flight_recorder.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <utility>

#include <c10/util/Exception.h>

#include "lockstep/base/error.h"
#include "lockstep/base/internal/atomic_file.h"
#include "lockstep/base/json.h"
#include "lockstep/base/strings.h"
#include "lockstep/tensor/internal/trace_spans.h"

namespace lockstep::dist::internal {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr const char* kFile = "collectives.json";

Json to_json(const FlightEntry& entry) {
  return Json::object()
      .set("number", entry.number)
      .set("name", entry.name.view())
      .set("how", entry.how.view())
      .set("for", entry.purpose.view())
      .set("group", entry.group.view())
      .set("dtype", entry.dtype.view())
      .set("sizes", entry.sizes.view())
      .set("start_ns", entry.start)
      .set("end_ns", entry.end)
      .set(
          "state",
          entry.has_failed ? "failed"
          : entry.end == 0 ? "running"
                           : "ended");
}

Json to_json(int rank, const FlightLog& log) {
  static constexpr std::array kStates{"running", "left", "failed"};
  Json entries = Json::array();
  for (const FlightEntry& entry : log.entries()) {
    entries.push(to_json(entry));
  }
  return Json::object()
      .set("rank", rank)
      .set("state", kStates[static_cast<std::size_t>(log.state())])
      .set("collectives", std::move(entries));
}

/// "broadcast for sync_buffers"
std::string span_name(const FlightEntry& entry) {
  const std::string_view purpose = entry.purpose.view();
  return format(
      "{}{}{}",
      entry.name.view(),
      purpose.empty() ? "" : " for ",
      purpose);
}

/// An answer with which the search for a better one ends.
Certainty enough(bool is_timeout) {
  return is_timeout ? Certainty::kLate : Certainty::kSure;
}

// Beside the error file that the launcher reads; "" without one.
std::string file_name() {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nobody sets variables by then
  const char* const path = std::getenv("TORCHELASTIC_ERROR_FILE");
  return path == nullptr || *path == '\0'
             ? ""
             : format("{}/{}", parent_directory(path), kFile);
}

} // namespace

void Carrier::abort() {
  const std::scoped_lock lock(mutex_);
  if (backend_ != nullptr) {
    backend_->abort();
  }
}

void Carrier::forget() {
  const std::scoped_lock lock(mutex_);
  backend_ = nullptr;
}

FlightRecorder::FlightRecorder(
    int rank,
    int size,
    const c10::intrusive_ptr<c10d::Store>& store)
    : rank_(rank),
      size_(size),
      log_(FlightLog::create()),
      peers_(rank, size, store, *log_),
      wake_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}

FlightRecorder::~FlightRecorder() {
  log_->leave();
}

void FlightRecorder::set_purpose(std::string_view purpose) {
  const std::scoped_lock lock(mutex_);
  purpose_ = purpose;
}

void FlightRecorder::begin(const std::shared_ptr<Flight>& flight) {
  {
    const std::scoped_lock lock(mutex_);
    if (purpose_ != flight->entry.name.view()) {
      flight->entry.purpose = purpose_;
    }
  }
  if (is_traced()) { // whose callbacks are anybody's
    flight->span = begin_async_span(span_name(flight->entry), "collectives");
  }
  const std::scoped_lock lock(mutex_);
  flight->entry.start = now_ns();
  flight->ticket = log_->begin(flight->entry);
  running_.push_back(flight);
}

void FlightRecorder::check_same(const Flight& flight) {
  if (!peers_.agree(flight.entry)) {
    std::rethrow_exception(failure(flight, ""));
  }
}

void FlightRecorder::set_future(
    Flight& flight,
    const c10::intrusive_ptr<c10::ivalue::Future>& future) {
  const std::scoped_lock lock(mutex_);
  flight.future = future;
}

c10::intrusive_ptr<c10::ivalue::Future> FlightRecorder::future_of(
    const Flight& flight) const {
  const std::scoped_lock lock(mutex_);
  return flight.future;
}

bool FlightRecorder::end(Flight& flight, bool has_failed) {
  if (flight.is_over.test_and_set()) {
    return false;
  }
  log_->end(flight.ticket, has_failed);
  flight.span.reset();
  const std::scoped_lock lock(mutex_);
  std::erase_if(running_, [&](const auto& each) {
    return each.get() == &flight;
  });
  return true;
}

std::shared_ptr<Flight> FlightRecorder::oldest() const {
  const std::scoped_lock lock(mutex_);
  return running_.empty() ? nullptr : running_.front();
}

Answer FlightRecorder::ask(const Flight& flight, bool is_timeout) const {
  return who_is_missing(
      {.entry = flight.entry,
       .ranks = flight.group->ranks,
       .is_timeout = is_timeout,
       .now = now_ns()},
      peers_.look(flight.group->name));
}

// A rank that was killed closes its connections before its process is seen to
// have ended, and what another host knows takes its way through the store.
Answer FlightRecorder::find_out(const Flight& flight, bool is_timeout) {
  const auto deadline =
      steady_clock::now() + milliseconds(peers_.has_remote() ? 1000 : 500);
  while (true) {
    if (peers_.has_remote()) {
      want_views(milliseconds(100));
    }
    Answer answer = ask(flight, is_timeout);
    if (answer.certainty >= enough(is_timeout) ||
        steady_clock::now() >= deadline) {
      return answer;
    }
    std::this_thread::sleep_for(milliseconds(5));
  }
}

// What has failed first is also why a later group fails that knows no better.
Answer FlightRecorder::answer_for(
    const Flight& flight,
    const std::string& text) {
  const auto known =
      std::ranges::find(answers_, flight.group->name, &GroupAnswer::group);
  if (known != answers_.end()) {
    return known->answer;
  }
  const bool is_timeout = is_timeout_text(text);
  Answer answer = find_out(flight, is_timeout);
  if (answers_.empty()) {
    // From here on the others know that this rank is not the first.
    log_->end(flight.ticket, true);
    log_->fail(
        {.text = answer.cause.empty() ? text : answer.cause,
         .is_mismatch = answer.is_mismatch});
    if (peers_.has_remote()) {
      want_views(milliseconds(500));
    }
    file_ = write(answer.text.empty() ? text : answer.text);
  } else if (answer.certainty < enough(is_timeout)) {
    answer = answers_.front().answer;
  }
  answers_.push_back({.group = flight.group->name, .answer = answer});
  return answer;
}

std::exception_ptr FlightRecorder::failure(
    const Flight& flight,
    const std::string& text) {
  const std::scoped_lock lock(failing_);
  const Answer answer = answer_for(flight, text);
  std::vector<std::string> reasons;
  for (const std::string& reason : {answer.text, text}) {
    if (!reason.empty()) {
      reasons.push_back(reason);
    }
  }
  const auto waited = static_cast<double>(now_ns() - flight.entry.start);
  return std::make_exception_ptr(Exception(
      {.code = answer.is_mismatch      ? ErrorCode::kMismatch
               : is_timeout_text(text) ? ErrorCode::kTimeout
                                       : ErrorCode::kUnavailable,
       .op = format("dist.{}", flight.entry.name.view()),
       .message = format(
           "collective {} of rank {} of {} did not end in {:.1f} s: {}",
           flight.entry.text(),
           rank_,
           size_,
           waited / 1e9,
           join(reasons, "; ")),
       .hint = format(
           "look first at the output of the rank that is named{}",
           file_.empty() ? "" : format("; all collectives: {}", file_)),
       .detail = answer.is_mismatch ? "E_RANKS_DIFFER" : "E_COLLECTIVE"}));
}

std::exception_ptr FlightRecorder::failure(
    const Flight& flight,
    const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& exception) {
    const auto mistake = own_mistake(
        flight.entry.name.view(),
        exception,
        flight.entry.dtype.view());
    if (!mistake) {
      return failure(flight, text_of(exception));
    }
    const std::scoped_lock lock(failing_);
    log_->end(flight.ticket, true);
    if (ends_group(exception)) {
      log_->fail({.text = mistake->message});
      answers_.push_back(
          {.group = flight.group->name,
           .answer = {.text = mistake->message, .cause = mistake->message}});
    }
    return std::make_exception_ptr(Exception(*mistake));
  } catch (...) {
    return failure(flight, "an exception that is no std::exception");
  }
}

void FlightRecorder::fail_all() {
  std::vector<std::shared_ptr<Flight>> flights;
  {
    const std::scoped_lock lock(mutex_);
    flights = running_;
  }
  for (const auto& flight : flights) {
    const std::exception_ptr error = failure(*flight, "");
    const auto future = future_of(*flight);
    if (future != nullptr && end(*flight, true)) {
      future->setError(error);
    }
    flight->carrier->abort();
  }
}

std::string FlightRecorder::write(const std::string& reason) const {
  const std::string path = file_name();
  if (path.empty()) {
    return "";
  }
  Json ranks = Json::array();
  for (int rank = 0; rank < size_; ++rank) {
    const FlightLog* const log =
        rank == rank_ ? log_.get() : peers_.log_of(rank);
    if (log != nullptr) {
      ranks.push(to_json(rank, *log));
    }
  }
  const Json root = Json::object()
                        .set("rank", rank_)
                        .set("world_size", size_)
                        .set("reason", reason)
                        .set("written_ns", now_ns())
                        .set("ranks", std::move(ranks));
  const auto done = write_file_atomically(
      real_fs(),
      path,
      root.dump(1) + "\n",
      {.durable = false});
  return done ? path : "";
}

void FlightRecorder::want_views(milliseconds patience) {
  std::unique_lock lock(views_mutex_);
  const std::uint64_t wanted = ++views_wanted_;
  const std::uint64_t one = 1;
  static_cast<void>(!::write(wake_.get(), &one, sizeof one));
  views_have_come_.wait_for(lock, patience, [&] {
    return views_seen_ >= wanted;
  });
}

void FlightRecorder::exchange_views() {
  std::uint64_t wanted = 0;
  {
    const std::scoped_lock lock(views_mutex_);
    wanted = views_wanted_;
  }
  peers_.exchange_views();
  const std::scoped_lock lock(views_mutex_);
  views_seen_ = std::max(views_seen_, wanted);
  views_have_come_.notify_all();
}

} // namespace lockstep::dist::internal
