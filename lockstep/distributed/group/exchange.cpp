// SPDX-License-Identifier: BSD-3-Clause
//
// How the ranks tell each other something before there are collectives.
#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <c10/util/Exception.h>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/distributed/group/group_impl.h"

namespace lockstep::dist::internal {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

/// How often a rank looks whether the others still come.
constexpr milliseconds kLook{500};
constexpr milliseconds kLongestPause{50};
/// As a collective's (hang_watch.cpp).
constexpr double kFirstWarning = 5.0;
/// How long the store stays for those that are still to read from it. One that
/// is stopped keeps it so long, beyond the timeout of what comes next.
constexpr milliseconds kGoodbye{1500};
constexpr milliseconds kLastWords{1000};

std::vector<std::uint8_t> stored(const std::string& text) {
  return {text.begin(), text.end()};
}

double seconds(Clock::duration time) {
  return std::chrono::duration<double>(time).count();
}

/// "rank 1", "ranks 1, 2".
std::string ranks_text(const std::vector<std::string>& ranks) {
  return format("rank{} {}", ranks.size() == 1 ? "" : "s", join(ranks, ", "));
}

/// Pauses that grow, so that what comes at once costs little.
class Pauses {
 public:
  void pause() {
    std::this_thread::sleep_for(next_);
    next_ = std::min(2 * next_, kLongestPause);
  }

 private:
  milliseconds next_{1};
};

/// One exchange of a rank. c10d's own `wait` writes two lines into the log
/// whenever its time is over, so this one asks.
class Exchange {
 public:
  Exchange(const ProcessGroup::Impl& impl, std::string key, std::string_view op)
      : store_(impl.store),
        recorder_(impl.recorder),
        rank_(impl.group->getRank()),
        size_(impl.group->getSize()),
        ranks_(impl.ranks),
        timeout_(impl.timeout),
        key_(std::move(key)),
        op_(op) {}

  std::vector<std::string> run(const std::string& text) {
    store_->set(key_of(rank_), stored(text));
    const auto missing = wait_for_all();
    if (missing) {
      raise_missing(*missing);
    }
    std::vector<std::string> texts;
    for (int rank = 0; rank < size_; ++rank) {
      const auto bytes = store_->get(key_of(rank));
      texts.emplace_back(bytes.begin(), bytes.end());
    }
    try {
      leave();
    } catch (const Exception& error) {
      // If its host has ended: this rank has what it needs.
      if (error.error().code != ErrorCode::kUnavailable) {
        throw;
      }
    }
    return texts;
  }

 private:
  [[nodiscard]] std::string key_of(int rank) const {
    return format("lockstep/{}/{}", key_, rank);
  }
  [[nodiscard]] std::string key_of(const char* name) const {
    return format("lockstep/{}/{}", key_, name);
  }
  bool has(const std::string& key) {
    return store_->check({key});
  }
  std::int64_t add(const char* name, std::int64_t number) {
    return store_->add(key_of(name), number);
  }

  /// Nothing once all have come; else who has not, as all who wait say it.
  std::optional<std::string> wait_for_all() {
    Pauses pauses;
    auto next_look = start_ + kLook;
    int first = 0;
    while (true) {
      while (first < size_ && has(key_of(first))) {
        ++first;
      }
      if (first == size_) {
        return std::nullopt;
      }
      const bool is_late = Clock::now() - start_ >= timeout_;
      if (is_late || Clock::now() >= next_look) {
        next_look += kLook;
        const auto gone = absent(/*must_be_gone=*/true);
        if (is_late || !gone.empty() || has(key_of("late"))) {
          return settle(gone);
        }
        warn();
      }
      pauses.pause();
    }
  }

  /// The ranks of a job that starts may take their time; later on they come
  /// about at once.
  void warn() {
    const double waited = seconds(Clock::now() - start_);
    if (is_start() || waited < next_warning_) {
      return;
    }
    next_warning_ = 2 * waited;
    TORCH_WARN(format(
        "rank {} has waited {:.0f} s in {}: not there yet: {}",
        recorder_->rank(),
        waited,
        op_,
        ranks_text(absent(/*must_be_gone=*/false))));
  }

  [[nodiscard]] bool is_start() const {
    return op_ == kInit;
  }

  /// Ranks of the job whose text is not there; or those of them that have
  /// ended.
  std::vector<std::string> absent(bool must_be_gone) {
    std::vector<std::string> found;
    for (const PeerView& view : recorder_->peers().look("")) {
      const auto place = std::ranges::find(ranks_, view.rank);
      const auto rank = static_cast<int>(place - ranks_.begin());
      const bool has_ended =
          view.kind == PeerKind::kGone || view.kind == PeerKind::kLeft;
      if (place != ranks_.end() && (has_ended || !must_be_gone) &&
          !has(key_of(rank))) {
        found.push_back(std::to_string(view.rank));
      }
    }
    return found;
  }

  /// The first to give up says who is missing. Rank 0, which may hold the
  /// store, stays until the others have read it.
  std::string settle(const std::vector<std::string>& gone) {
    const auto late = gone.empty() ? absent(/*must_be_gone=*/false) : gone;
    if (!has(key_of("late"))) {
      const std::string text = format(
          "{}{}",
          ranks_text(late),
          gone.empty()       ? ""
          : gone.size() == 1 ? ", which has ended"
                             : ", which have ended");
      store_->set(key_of("late"), stored(text));
    }
    const auto bytes = store_->get(key_of("late"));
    add("given_up", 1);
    const auto waiting = size_ - static_cast<std::int64_t>(late.size());
    const auto end = Clock::now() + kLastWords;
    Pauses pauses;
    while (rank_ == 0 && add("given_up", 0) < waiting && Clock::now() < end) {
      pauses.pause();
    }
    return {bytes.begin(), bytes.end()};
  }

  [[noreturn]] void raise_missing(const std::string& who) const {
    raise(
        {.code = ErrorCode::kTimeout,
         .op = op_,
         .message = format(
             "rank {} waited {:.1f} s for {}",
             recorder_->rank(),
             seconds(
                 std::min<Clock::duration>(Clock::now() - start_, timeout_)),
             escape(who)),
         .hint = is_start()
                     ? "they did not start, have ended, or do something else"
                     : "they have ended, or do something else",
         .detail = "E_RANKS_LATE"});
  }

  /// Rank 0 leaves last: if it ended at once, the others would find no store
  /// instead of what they are to read.
  void leave() {
    add("readers", 1);
    const auto end = Clock::now() + kGoodbye;
    Pauses pauses;
    while (rank_ == 0 && add("readers", 0) < size_ && Clock::now() < end) {
      pauses.pause();
    }
  }

  c10::intrusive_ptr<c10d::Store> store_;
  std::shared_ptr<FlightRecorder> recorder_;
  int rank_ = 0;
  int size_ = 1;
  /// The group's, as ranks of the job.
  std::vector<int> ranks_;
  Clock::duration timeout_ = {};
  std::string key_;
  std::string op_;
  double next_warning_ = kFirstWarning;
  Clock::time_point start_ = Clock::now();
};

} // namespace

std::vector<std::string> exchange(
    ProcessGroup::Impl& impl,
    const std::string& key,
    const std::string& text,
    std::string_view op) {
  return Exchange(impl, key, op).run(text);
}

} // namespace lockstep::dist::internal
