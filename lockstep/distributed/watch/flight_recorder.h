// SPDX-License-Identifier: BSD-3-Clause
//
// What a rank knows about its collectives: which run, which have ended, and why
// one does not. One for all groups of a rank.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/ivalue.h>
#include <ATen/record_function.h>
#include <torch/csrc/distributed/c10d/Backend.hpp>

#include "lockstep/base/error.h"
#include "lockstep/distributed/watch/diagnosis.h"
#include "lockstep/distributed/watch/flight_log.h"
#include "lockstep/distributed/watch/peers.h"

namespace lockstep::dist::internal {

/// The backend that carries a group's collectives, while it lives.
class Carrier {
 public:
  explicit Carrier(c10d::Backend* backend) : backend_(backend) {}
  /// Ends what runs, with errors here and at the other ranks.
  void abort();
  void forget();

 private:
  std::mutex mutex_;
  c10d::Backend* backend_ = nullptr;
};

/// A group's name, and its ranks as ranks of the job.
struct FlightGroup {
  std::string name = {};
  std::vector<int> ranks = {};
};

/// A collective that runs.
struct Flight {
  FlightEntry entry = {};
  std::uint64_t ticket = 0;
  std::shared_ptr<const FlightGroup> group = {};
  std::shared_ptr<Carrier> carrier = {};
  /// What waits for it; null until it was handed to the backend.
  c10::intrusive_ptr<c10::ivalue::Future> future = {};
  std::atomic_flag is_over = {};
  /// Of a trace that is recorded, if any; ends with the flight.
  std::unique_ptr<at::RecordFunction> span = {};
};

/// Threads: safe to call from several.
class FlightRecorder {
 public:
  FlightRecorder(
      int rank,
      int size,
      const c10::intrusive_ptr<c10d::Store>& store);
  /// Tells the others that this rank has left.
  ~FlightRecorder();
  FlightRecorder(const FlightRecorder&) = delete;
  FlightRecorder& operator=(const FlightRecorder&) = delete;

  [[nodiscard]] Peers& peers() {
    return peers_;
  }
  [[nodiscard]] int rank() const {
    return rank_;
  }

  /// What the next collectives are for; "" for themselves.
  void set_purpose(std::string_view purpose);
  void begin(const std::shared_ptr<Flight>& flight);
  /// Errors: throws kMismatch if a rank of this host has begun something else
  /// as the same collective. Nothing of this one has been sent then.
  void check_same(const Flight& flight);
  /// What waits for it, from now on.
  void set_future(
      Flight& flight,
      const c10::intrusive_ptr<c10::ivalue::Future>& future);
  /// False if it was ended before: by the watch.
  bool end(Flight& flight, bool has_failed);
  /// The one that has run longest; null if none runs.
  [[nodiscard]] std::shared_ptr<Flight> oldest() const;

  /// Why it did not end: ours, with who is to blame. Looks for that rank for
  /// up to a second the first time in a group. `text` is the backend's, or "".
  std::exception_ptr failure(const Flight& flight, const std::string& text);
  /// The same for an error of the backend's.
  std::exception_ptr failure(
      const Flight& flight,
      const std::exception_ptr& error);
  /// Ends all that run, as they cannot end by themselves.
  void fail_all();

  /// What is known about a collective now.
  [[nodiscard]] Answer ask(const Flight& flight, bool is_timeout) const;
  /// Writes the rings of all ranks of this host beside the rank's error file.
  /// The file's name; "" without a launcher that names one.
  std::string write(const std::string& reason) const;

  /// The watch's part of `failure`: the store may keep it waiting, and nobody
  /// else. `wake` is readable when the views are wanted.
  [[nodiscard]] int wake() const {
    return wake_.get();
  }
  void exchange_views();

 private:
  /// Why the collectives of a group do not end.
  struct GroupAnswer {
    std::string group = {};
    Answer answer = {};
  };
  [[nodiscard]] c10::intrusive_ptr<c10::ivalue::Future> future_of(
      const Flight& flight) const;
  [[nodiscard]] Answer answer_for(
      const Flight& flight,
      const std::string& text);
  [[nodiscard]] Answer find_out(const Flight& flight, bool is_timeout);
  void want_views(std::chrono::milliseconds patience);

  int rank_ = 0;
  int size_ = 0;
  std::unique_ptr<FlightLog> log_;
  Peers peers_;
  mutable std::mutex mutex_;
  std::string purpose_;
  std::vector<std::shared_ptr<Flight>> running_;
  std::mutex failing_;
  /// The group that failed first comes first.
  std::vector<GroupAnswer> answers_;
  std::string file_;
  Descriptor wake_;
  std::mutex views_mutex_;
  std::condition_variable views_have_come_;
  std::uint64_t views_wanted_ = 0;
  std::uint64_t views_seen_ = 0;
};

/// Says for the time of its life what collectives are for.
class Purpose {
 public:
  Purpose(FlightRecorder* recorder, std::string_view text)
      : recorder_(recorder) {
    if (recorder_ != nullptr) {
      recorder_->set_purpose(text);
    }
  }
  ~Purpose() {
    if (recorder_ != nullptr) {
      recorder_->set_purpose("");
    }
  }
  Purpose(const Purpose&) = delete;
  Purpose& operator=(const Purpose&) = delete;

 private:
  FlightRecorder* recorder_ = nullptr;
};

/// Their types do not tell a timeout from other errors.
bool is_timeout_text(const std::string& text);

/// What c10d and Gloo say, without the stack.
std::string text_of(const std::exception& error);

/// False for what a backend refuses before it sends anything, on all ranks
/// alike: elements of a type that it does not carry. The group works on.
bool ends_group(const std::exception& error);
bool ends_group(const std::exception_ptr& error);

/// Ours for a call that cannot work on this rank by itself; nothing for what
/// the network and other ranks do, which comes as another class or says so.
/// `dtype`: that of the elements, if known, for a type that is refused.
std::optional<Error> own_mistake(
    std::string_view op,
    const std::exception& error,
    std::string_view dtype = {});

} // namespace lockstep::dist::internal
