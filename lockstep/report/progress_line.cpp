// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/report/progress_line.h"

#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>

namespace lockstep::report {
namespace {

constexpr auto kRest = std::chrono::milliseconds(300);

} // namespace

class ProgressLine::Impl {
 public:
  explicit Impl(ProgressOptions options)
      : options_(std::move(options)),
        own_console_(
            options_.console == nullptr
                ? std::make_unique<Console>(STDERR_FILENO)
                : nullptr),
        console_(own_console_ ? *own_console_ : *options_.console),
        animated_(
            options_.style == ProgressStyle::kAuto &&
            console_.traits().animated),
        start_(options_.now()),
        last_plain_(start_) {
    if (options_.timer && options_.style != ProgressStyle::kOff) {
      timer_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
    }
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl() {
    stop_timer();
    if (!finished_ && animated_) {
      console_.keep_status();
    }
  }

  // Several plain stores: a drawing may mix two updates, which nobody sees.
  void update(const ProgressUpdate& update) {
    constexpr auto kRelaxed = std::memory_order_relaxed;
    samples_.store(update.samples, kRelaxed);
    if (update.loss) {
      loss_.store(*update.loss, kRelaxed);
      has_loss_.store(true, kRelaxed);
    }
    if (update.accuracy) {
      accuracy_.store(*update.accuracy, kRelaxed);
      has_accuracy_.store(true, kRelaxed);
    }
    time_.store(options_.now().time_since_epoch().count(), kRelaxed);
    done_.store(update.done, std::memory_order_release);
  }

  void finish() {
    stop_timer();
    const std::scoped_lock lock(mutex_);
    if (std::exchange(finished_, true) ||
        options_.style == ProgressStyle::kOff) {
      return;
    }
    ProgressFacts facts = gather();
    facts.finished = true;
    facts.seconds =
        std::chrono::duration<double>(options_.now() - start_).count();
    if (!animated_) {
      console_.print(plain_line(facts));
      return;
    }
    draw(facts);
    console_.keep_status();
  }

  void clear() {
    stop_timer();
    const std::scoped_lock lock(mutex_);
    if (!std::exchange(finished_, true) && animated_) {
      console_.set_status("");
    }
  }

  void tick() {
    const std::scoped_lock lock(mutex_);
    if (finished_ || options_.style == ProgressStyle::kOff) {
      return;
    }
    const ProgressFacts facts = gather();
    if (animated_) {
      if (is_at_rest()) {
        draw(facts);
      }
    } else if (options_.now() - last_plain_ >= options_.plain_interval) {
      last_plain_ = options_.now();
      console_.print(plain_line(facts));
    }
  }

 private:
  void run(const std::stop_token& stop) {
    std::unique_lock lock(timer_mutex_);
    while (!stop.stop_requested()) {
      lock.unlock();
      tick();
      lock.lock();
      wake_.wait_for(lock, stop, options_.refresh, [] { return false; });
    }
  }

  void stop_timer() {
    if (timer_.joinable()) {
      timer_.request_stop();
      timer_.join();
    }
  }

  // Feeds the meter with what was stored, and collects what can be shown.
  ProgressFacts gather() {
    const std::int64_t done = done_.load(std::memory_order_acquire);
    const Clock::time_point time{Clock::duration(time_.load())};
    if (done > 0) {
      meter_.observe(done, samples_.load(), time);
    }
    ProgressFacts facts;
    facts.label = options_.label;
    facts.done = done;
    facts.total = options_.total;
    facts.seconds = meter_.remaining_seconds(options_.total, options_.now());
    facts.rate = meter_.samples_per_second();
    facts.unit = options_.unit;
    if (has_accuracy_) {
      facts.accuracy = accuracy_;
    }
    if (has_loss_) {
      facts.loss = loss_;
    }
    return facts;
  }

  // A window that is dragged: terminals tell its width late, tmux by up to a
  // quarter of a second, and what is too long for it is broken and stays. The
  // bar that is there can be found again in any width.
  bool is_at_rest() {
    const int width = console_.width();
    if (std::exchange(width_, width) != width) {
      resized_ = options_.now();
    }
    return !resized_ || options_.now() - *resized_ >= kRest;
  }

  void draw(const ProgressFacts& facts) {
    const TerminalTraits traits = console_.traits();
    console_.set_status(draw_bar(
        facts,
        {.width = console_.width(),
         .unicode = traits.unicode,
         .colour = traits.colour}));
  }

  const ProgressOptions options_;
  std::unique_ptr<Console> own_console_;
  Console& console_;
  const bool animated_;
  const Clock::time_point start_;

  std::atomic<std::int64_t> done_ = 0;
  std::atomic<std::int64_t> samples_ = 0;
  std::atomic<Clock::rep> time_ = 0;
  std::atomic<double> loss_ = 0.0;
  std::atomic<double> accuracy_ = 0.0;
  std::atomic<bool> has_loss_ = false;
  std::atomic<bool> has_accuracy_ = false;

  std::mutex mutex_; // of what follows
  RateMeter meter_;
  Clock::time_point last_plain_;
  int width_ = console_.width();
  std::optional<Clock::time_point> resized_;
  bool finished_ = false;

  std::mutex timer_mutex_;
  std::condition_variable_any wake_;
  std::jthread timer_;
};

ProgressLine::ProgressLine(ProgressOptions options)
    : impl_(std::make_unique<Impl>(std::move(options))) {}

ProgressLine::~ProgressLine() = default;

void ProgressLine::update(const ProgressUpdate& update) {
  impl_->update(update);
}

void ProgressLine::finish() {
  impl_->finish();
}

void ProgressLine::clear() {
  impl_->clear();
}

void ProgressLine::tick() {
  impl_->tick();
}

} // namespace lockstep::report
