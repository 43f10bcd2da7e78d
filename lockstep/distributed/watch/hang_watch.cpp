// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/distributed/watch/hang_watch.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <chrono>
#include <utility>
#include <vector>

#include <c10/util/Exception.h>

#include "lockstep/base/strings.h"

namespace lockstep::dist::internal {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

namespace {

constexpr int kTickMs = 1000;
constexpr double kFirstHangWarning = 5.0;
// What the backend says by itself comes first: it knows more.
constexpr milliseconds kGrace{500};

/// Which collective was looked at last, and what was said about it.
struct Seen {
  std::uint64_t ticket = 0;
  bool is_new = true;
  double next_warning = kFirstHangWarning;
  /// Since when it cannot end any more.
  std::optional<steady_clock::time_point> hopeless_since = {};
};

bool is_readable(const pollfd& entry) {
  return (entry.revents & POLLIN) != 0;
}

class Watch {
 public:
  Watch(FlightRecorder& recorder, int stop)
      : recorder_(recorder), stop_(stop) {}

  void run() {
    while (wait()) {
      look();
    }
  }

 private:
  // False when it is to stop.
  bool wait() {
    std::vector<pollfd> entries{
        {stop_, POLLIN, 0},
        {recorder_.wake(), POLLIN, 0}};
    for (const int end : recorder_.peers().watched_ends()) {
      entries.push_back({end, POLLIN, 0});
    }
    const int patience =
        seen_.hopeless_since ? static_cast<int>(kGrace.count() / 5) : kTickMs;
    ::poll(entries.data(), entries.size(), patience);
    if (is_readable(entries[1])) {
      std::uint64_t count = 0;
      static_cast<void>(!::read(recorder_.wake(), &count, sizeof count));
      exchange_views();
    }
    return !is_readable(entries[0]);
  }

  void exchange_views() {
    try {
      recorder_.exchange_views();
    } catch (const std::exception&) {
      // The store has ended, mostly with rank 0, or does not answer now: nobody
      // can be asked.
    }
  }

  void look() {
    const std::shared_ptr<Flight> flight = recorder_.oldest();
    if (flight == nullptr) {
      seen_ = {};
      return;
    }
    if (seen_.is_new || seen_.ticket != flight->ticket) {
      seen_ = {.ticket = flight->ticket, .is_new = false};
    }
    const double waited =
        static_cast<double>(now_ns() - flight->entry.start) / 1e9;
    if (recorder_.peers().has_remote() && waited >= kTickMs / 1000.0) {
      exchange_views();
    }
    const Answer answer = recorder_.ask(*flight, /*is_timeout=*/true);
    end_if_hopeless(answer);
    if (waited >= seen_.next_warning) {
      seen_.next_warning = 2 * waited;
      warn(*flight, answer, waited);
    }
  }

  void end_if_hopeless(const Answer& answer) {
    if (answer.certainty != Certainty::kSure) {
      seen_.hopeless_since.reset();
      return;
    }
    const auto now = steady_clock::now();
    if (!seen_.hopeless_since) {
      seen_.hopeless_since = now;
    } else if (now - *seen_.hopeless_since >= kGrace) {
      recorder_.fail_all();
    }
  }

  void warn(const Flight& flight, const Answer& answer, double waited) const {
    const std::string file = recorder_.write("a collective takes long");
    TORCH_WARN(format(
        "rank {} has waited {:.0f} s in collective {}: {}{}",
        recorder_.rank(),
        waited,
        flight.entry.text(),
        answer.text.empty() ? "all ranks are in it" : answer.text,
        file.empty() ? "" : format("; all collectives: {}", file)));
  }

  FlightRecorder& recorder_;
  int stop_ = -1;
  Seen seen_ = {};
};

} // namespace

HangWatch::HangWatch(std::shared_ptr<FlightRecorder> recorder)
    : stop_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
      thread_([recorder = std::move(recorder), stop = stop_.get()] {
        Watch(*recorder, stop).run();
      }) {}

HangWatch::~HangWatch() {
  const std::uint64_t one = 1;
  static_cast<void>(!::write(stop_.get(), &one, sizeof one));
}

} // namespace lockstep::dist::internal
