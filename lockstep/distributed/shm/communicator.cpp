// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/distributed/shm/communicator.h"

#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "lockstep/base/strings.h"

namespace lockstep::dist::shm {
namespace {

using Clock = std::chrono::steady_clock;
using Word = std::atomic_ref<std::uint32_t>;

constexpr std::size_t kCacheLine = 64;
/// Ranks that work in step come within it; sleeping and waking takes as long.
constexpr auto kSpin = std::chrono::microseconds(200);
/// How often a waiting rank looks whether those it waits for still live.
constexpr auto kLook = std::chrono::milliseconds(100);

void futex(
    std::uint32_t& word,
    int operation,
    std::uint32_t value,
    const timespec* timeout) {
  ::syscall(SYS_futex, &word, operation, value, timeout, nullptr, 0);
}

} // namespace

/// A number that one rank sets and others wait for.
struct Communicator::Mark {
  std::uint32_t value = 0;
  std::uint32_t sleepers = 0;

  [[nodiscard]] std::uint32_t get() {
    return Word(value).load(std::memory_order_acquire);
  }

  // In one order with what sleepers do: they count themselves, then look.
  void set(std::uint32_t number) {
    Word(value).store(number);
    if (Word(sleepers).load() != 0) {
      wake();
    }
  }

  void wake() {
    futex(value, FUTEX_WAKE, INT32_MAX, nullptr);
  }

  template <class HasCome>
  void sleep(const HasCome& has_come) {
    constexpr timespec kTime{
        .tv_sec = 0,
        .tv_nsec = std::chrono::nanoseconds(kLook).count()};
    Word(sleepers).fetch_add(1);
    const std::uint32_t seen = Word(value).load();
    if (!has_come()) {
      futex(value, FUTEX_WAIT, seen, &kTime);
    }
    Word(sleepers).fetch_sub(1);
  }
};

/// What the others see of a rank.
struct alignas(kCacheLine) Communicator::Line {
  Mark phase = {};
  std::uint32_t has_left = 0;
  /// For which call it is there, in this phase and in the one before.
  std::array<std::uint64_t, 2> calls = {};
};

/// From one rank to another. Pages count on, from message to message.
struct alignas(kCacheLine) Communicator::Message {
  /// The sender sets it last, of what is here.
  Mark sent = {};
  std::uint32_t phase = 0;
  std::int32_t tag = 0;
  std::uint64_t bytes = 0;
  /// The receiver's.
  Mark taken = {};
};

/// kKnown: the first rank that gave up has said why.
enum class Communicator::Cause : std::uint32_t {
  kNone,
  kEnded,
  kLeft,
  kLate,
  kAstray,
  kKnown
};

std::size_t Communicator::bytes_for(int size) {
  const auto ranks = static_cast<std::size_t>(size);
  return kCacheLine +
         ranks * (sizeof(Line) + ranks * sizeof(Message) + 2 * kBoxBytes);
}

Communicator::Communicator(Mapping memory, CommunicatorOptions options)
    : memory_(std::move(memory)), options_(std::move(options)) {}

Communicator::~Communicator() {
  abort();
}

void Communicator::abort() {
  is_aborted_.store(true);
  Line& own = line(options_.rank);
  Word(own.has_left).store(1);
  own.phase.wake();
}

Communicator::Line& Communicator::line(int rank) const {
  return reinterpret_cast<Line*>(memory_.data() + kCacheLine)[rank];
}

Communicator::Message& Communicator::message(int from, int to) const {
  return reinterpret_cast<Message*>(
      &line(options_.size))[from * options_.size + to];
}

std::uint32_t& Communicator::reason() const {
  return *reinterpret_cast<std::uint32_t*>(memory_.data());
}

std::byte* Communicator::box(int rank, std::uint32_t phase) const {
  const auto index = 2 * static_cast<std::size_t>(rank) + phase % 2;
  auto* const boxes = reinterpret_cast<std::byte*>(&message(options_.size, 0));
  return boxes + index * kBoxBytes;
}

std::byte* Communicator::own_box() const {
  return box(options_.rank, phase_);
}

const std::byte* Communicator::box_of(int rank) const {
  return box(rank, phase_ - 1);
}

void Communicator::meet() {
  check_usable();
  ++phase_;
  line(options_.rank).calls[phase_ % 2] = call_;
  line(options_.rank).phase.set(phase_);
  for (int rank = 0; rank < options_.size; ++rank) {
    Line& other = line(rank);
    const auto has_come = [&] {
      return static_cast<std::int32_t>(other.phase.get() - phase_) >= 0;
    };
    const Partner partner{.rank = rank, .timeout = options_.timeout};
    check(wait(partner, other.phase, has_come), partner);
    check(
        other.calls[phase_ % 2] == call_ ? Cause::kNone : Cause::kAstray,
        partner);
  }
  // Who comes late meets those who have given up.
  if (Word(reason()).load() != 0) {
    check(Cause::kKnown, {.timeout = options_.timeout});
  }
}

void Communicator::send(const Partner& to, std::span<const std::byte> bytes) {
  check_usable();
  Message& message = this->message(options_.rank, to.rank);
  message.phase = phase_;
  message.tag = to.tag;
  message.bytes = bytes.size();
  do {
    const auto page = bytes.first(std::min(bytes.size(), kBoxBytes));
    std::ranges::copy(page, own_box());
    const std::uint32_t number = message.sent.value + 1;
    message.sent.set(number);
    const auto has_come = [&] { return message.taken.get() == number; };
    check(wait(to, message.taken, has_come), to);
    bytes = bytes.subspan(page.size());
  } while (!bytes.empty());
}

void Communicator::receive(const Partner& from, std::span<std::byte> bytes) {
  check_usable();
  Message& message = this->message(from.rank, options_.rank);
  const std::size_t size = bytes.size();
  do {
    check(wait_for_message(from), from);
    if (message.bytes != size) {
      abort(); // else the sender waits
      break_off(format(
          "rank {} sends {} bytes, expected {}",
          from.rank,
          message.bytes,
          size));
    }
    const std::size_t page = std::min(bytes.size(), kBoxBytes);
    std::copy_n(box(from.rank, message.phase), page, bytes.data());
    message.taken.set(message.sent.value);
    bytes = bytes.subspan(page);
  } while (!bytes.empty());
}

bool Communicator::expects(const Partner& from) {
  check_usable();
  return wait_for_message(from) == Cause::kNone;
}

Communicator::Cause Communicator::wait_for_message(const Partner& from) {
  Message& message = this->message(from.rank, options_.rank);
  return wait(from, message.sent, [&] {
    return message.sent.get() != message.taken.value && message.tag == from.tag;
  });
}

template <class HasCome>
Communicator::Cause Communicator::wait(
    const Partner& partner,
    Mark& mark,
    const HasCome& has_come) {
  if (has_come()) {
    return Cause::kNone;
  }
  const auto start = Clock::now();
  while (Clock::now() - start < kSpin) {
    for (int look = 0; look < 100; ++look) {
      if (has_come()) {
        return Cause::kNone;
      }
    }
    ::sched_yield(); // where there are more ranks than cores
  }
  while (!has_come()) {
    // What it did last before it ended or left may have been to come.
    const Cause state = state_of(partner.rank);
    if (state != Cause::kNone && !has_come()) {
      return state;
    }
    if (Clock::now() - start > partner.timeout) {
      return Cause::kLate;
    }
    mark.sleep(has_come);
  }
  return Cause::kNone;
}

Communicator::Cause Communicator::state_of(int rank) {
  check_aborted();
  if (Word(reason()).load() != 0) {
    return Cause::kKnown;
  }
  if (Word(line(rank).has_left).load() != 0) {
    return Cause::kLeft;
  }
  const Descriptor& process =
      options_.processes[static_cast<std::size_t>(rank)];
  pollfd poll{.fd = process.get(), .events = POLLIN, .revents = 0};
  return process && ::poll(&poll, 1, 0) == 1 ? Cause::kEnded : Cause::kNone;
}

void Communicator::check_usable() {
  if (!broken_.empty()) {
    throw std::runtime_error(broken_);
  }
  check_aborted();
}

void Communicator::check_aborted() {
  if (is_aborted_.load()) {
    break_off("the group was aborted");
  }
}

// The first reason is that of all ranks.
void Communicator::check(Cause cause, const Partner& partner) {
  if (cause == Cause::kNone) {
    return;
  }
  auto rank = static_cast<std::uint32_t>(partner.rank);
  std::uint32_t first = 0;
  const bool is_first = Word(reason()).compare_exchange_strong(
      first,
      static_cast<std::uint32_t>(cause) | rank << 8U);
  // Of two that do not agree each names the other.
  const bool is_about_this_rank =
      first >> 8U == static_cast<std::uint32_t>(options_.rank);
  if (!is_first && is_about_this_rank && cause == Cause::kKnown) {
    break_off("another rank has given up waiting for this one");
  }
  if (!is_first && !is_about_this_rank && cause != Cause::kAstray) {
    cause = static_cast<Cause>(first & 0xFFU);
    rank = first >> 8U;
  }
  switch (cause) {
    case Cause::kLate:
      break_off(format(
          "timed out: rank {} did not come within {} s",
          rank,
          static_cast<double>(partner.timeout.count()) / 1000.0));
    case Cause::kEnded:
      break_off(format("the process of rank {} has ended", rank));
    case Cause::kAstray:
      break_off(format("rank {} does something else", rank));
    default:
      break_off(format("rank {} has left the group", rank));
  }
}

void Communicator::break_off(std::string text) {
  broken_ = std::move(text);
  throw std::runtime_error(broken_);
}

} // namespace lockstep::dist::shm
