// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/dist/shm/internal/room.h"

#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
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

/// What the others see of a rank.
struct alignas(kCacheLine) Room::Line {
  std::uint32_t phase = 0;
  std::uint32_t sleepers = 0;
  std::uint32_t has_left = 0;
};

enum class Room::Cause : std::uint32_t { kNone, kEnded, kLeft, kLate };

std::size_t Room::bytes_for(int size) {
  const auto ranks = static_cast<std::size_t>(size);
  return kCacheLine + ranks * (sizeof(Line) + 2 * kBoxBytes);
}

Room::Room(Mapping memory, RoomOptions options)
    : memory_(std::move(memory)), options_(std::move(options)) {}

Room::~Room() {
  abort();
}

void Room::abort() {
  is_aborted_.store(true);
  Line& own = line(options_.rank);
  Word(own.has_left).store(1);
  futex(own.phase, FUTEX_WAKE, INT32_MAX, nullptr);
}

Room::Line& Room::line(int rank) const {
  return reinterpret_cast<Line*>(memory_.data() + kCacheLine)[rank];
}

std::uint32_t& Room::reason() const {
  return *reinterpret_cast<std::uint32_t*>(memory_.data());
}

std::byte* Room::box(int rank, std::uint32_t phase) const {
  const auto index = 2 * static_cast<std::size_t>(rank) + phase % 2;
  auto* const boxes = reinterpret_cast<std::byte*>(&line(options_.size));
  return boxes + index * kBoxBytes;
}

std::byte* Room::own_box() const {
  return box(options_.rank, phase_);
}

const std::byte* Room::box_of(int rank) const {
  return box(rank, phase_ - 1);
}

void Room::meet() {
  if (!broken_.empty()) {
    throw std::runtime_error(broken_);
  }
  check_aborted();
  ++phase_;
  Line& own = line(options_.rank);
  // In one order with what sleepers do: they count themselves, then look.
  Word(own.phase).store(phase_);
  if (Word(own.sleepers).load() != 0) {
    futex(own.phase, FUTEX_WAKE, INT32_MAX, nullptr);
  }
  for (int rank = 0; rank < options_.size; ++rank) {
    if (!has_come(rank)) {
      wait_for(rank);
    }
  }
}

bool Room::has_come(int rank) const {
  const std::uint32_t ahead =
      Word(line(rank).phase).load(std::memory_order_acquire) - phase_;
  return static_cast<std::int32_t>(ahead) >= 0;
}

void Room::wait_for(int rank) {
  const auto start = Clock::now();
  while (Clock::now() - start < kSpin) {
    for (int look = 0; look < 100; ++look) {
      if (has_come(rank)) {
        return;
      }
    }
    ::sched_yield(); // where there are more ranks than cores
  }
  while (!has_come(rank)) {
    check_process(rank);
    if (Clock::now() - start > options_.timeout) {
      fail(Cause::kLate, rank);
    }
    sleep_for(rank);
  }
}

void Room::sleep_for(int rank) const {
  constexpr timespec kTime{
      .tv_sec = 0,
      .tv_nsec = std::chrono::nanoseconds(kLook).count()};
  Line& other = line(rank);
  Word(other.sleepers).fetch_add(1);
  const std::uint32_t seen = Word(other.phase).load();
  if (!has_come(rank)) {
    futex(other.phase, FUTEX_WAIT, seen, &kTime);
  }
  Word(other.sleepers).fetch_sub(1);
}

void Room::check_aborted() {
  if (is_aborted_.load()) {
    break_off("the group was aborted");
  }
}

// What it did last before it ended or left may have been to come.
void Room::check_process(int rank) {
  check_aborted();
  if (Word(reason()).load() != 0) {
    fail(Cause::kNone, rank);
  }
  if (Word(line(rank).has_left).load() != 0 && !has_come(rank)) {
    fail(Cause::kLeft, rank);
  }
  const Descriptor& process =
      options_.processes[static_cast<std::size_t>(rank)];
  pollfd poll{.fd = process.get(), .events = POLLIN, .revents = 0};
  if (process && ::poll(&poll, 1, 0) == 1 && !has_come(rank)) {
    fail(Cause::kEnded, rank);
  }
}

// The first reason is that of all ranks.
void Room::fail(Cause cause, int rank) {
  const auto mine = static_cast<std::uint32_t>(cause) |
                    static_cast<std::uint32_t>(rank) << 8U;
  std::uint32_t first = 0;
  if (!Word(reason()).compare_exchange_strong(first, mine)) {
    cause = static_cast<Cause>(first & 0xFFU);
    rank = static_cast<int>(first >> 8U);
  }
  if (cause == Cause::kLate) {
    break_off(format(
        "timed out: rank {} did not come within {} s",
        rank,
        static_cast<double>(options_.timeout.count()) / 1000.0));
  }
  break_off(
      cause == Cause::kEnded ? format("the process of rank {} has ended", rank)
                             : format("rank {} has left the group", rank));
}

void Room::break_off(std::string text) {
  broken_ = std::move(text);
  throw std::runtime_error(broken_);
}

} // namespace lockstep::dist::shm
