// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/distributed/watch/flight_log.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <new>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/internal/errno_error.h"
#include "lockstep/base/internal/process.h"
#include "lockstep/base/strings.h"

namespace lockstep::dist::internal {
namespace {

// Changes with the layout of the page: another build may read it.
constexpr std::uint64_t kLayout = 0x4c53464c49470005;

} // namespace

std::int64_t now_ns() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

std::string FlightEntry::text() const {
  return format(
      "{} ({}{}{}{}{})",
      number,
      name.view(),
      how.view().empty() ? "" : " ",
      how.view(),
      purpose.view().empty() ? "" : " for ",
      purpose.view());
}

bool FlightEntry::matches(const FlightEntry& other) const {
  const bool has_sizes = !sizes.view().empty() && !other.sizes.view().empty();
  return name.view() == other.name.view() && how.view() == other.how.view() &&
         (!has_sizes ||
          (dtype.view() == other.dtype.view() && elements == other.elements));
}

FlightLog::FlightLog(Descriptor file, Page* page)
    : file_(std::move(file)), page_(page) {}

FlightLog::~FlightLog() {
  ::munmap(page_, sizeof(Page));
}

std::unique_ptr<FlightLog> FlightLog::create() {
  // A file without a name: nothing is left behind, however the ranks end.
  Descriptor file = memory_file("lockstep-collectives");
  if (file && ::ftruncate(file.get(), sizeof(Page)) != 0) {
    file.reset();
  }
  void* const memory = ::mmap(
      nullptr,
      sizeof(Page),
      PROT_READ | PROT_WRITE,
      file ? MAP_SHARED : MAP_SHARED | MAP_ANONYMOUS,
      file.get(),
      0);
  if (memory == MAP_FAILED) { // NOLINT(*-cstyle-cast,*-int-to-ptr): its value
    raise(errno_error("dist.record", "", errno));
  }
  auto* const page = new (memory) Page; // NOLINT(*-owning-memory): mapped
  page->layout = kLayout;
  return std::unique_ptr<FlightLog>(new FlightLog(std::move(file), page));
}

std::unique_ptr<FlightLog> FlightLog::open(const std::string& path) {
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat info {};
  if (!file || ::fstat(file.get(), &info) != 0 ||
      info.st_size != static_cast<off_t>(sizeof(Page))) {
    return nullptr;
  }
  void* const memory =
      ::mmap(nullptr, sizeof(Page), PROT_READ, MAP_SHARED, file.get(), 0);
  if (memory == MAP_FAILED) { // NOLINT(*-cstyle-cast,*-int-to-ptr): its value
    return nullptr;
  }
  auto log = std::unique_ptr<FlightLog>(
      new FlightLog(std::move(file), static_cast<Page*>(memory)));
  return log->page_->layout == kLayout ? std::move(log) : nullptr;
}

void FlightLog::Slot::store(std::uint64_t number, const FlightEntry& entry) {
  std::array<std::uint64_t, kWords> plain{};
  std::memcpy(plain.data(), &entry, sizeof entry);
  ticket.store(0, std::memory_order_relaxed);
  // Who sees a word of what follows sees that it is being written.
  std::atomic_thread_fence(std::memory_order_release);
  end.store(0, std::memory_order_relaxed);
  for (std::size_t i = 0; i < kWords; ++i) {
    words[i].store(plain[i], std::memory_order_relaxed);
  }
  ticket.store(number + 1, std::memory_order_release);
}

std::optional<FlightEntry> FlightLog::Slot::load(std::uint64_t number) const {
  if (ticket.load(std::memory_order_acquire) != number + 1) {
    return std::nullopt;
  }
  std::array<std::uint64_t, kWords> plain{};
  for (std::size_t i = 0; i < kWords; ++i) {
    plain[i] = words[i].load(std::memory_order_relaxed);
  }
  const std::int64_t ended = end.load(std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_acquire);
  if (ticket.load(std::memory_order_relaxed) != number + 1) {
    return std::nullopt;
  }
  FlightEntry entry;
  std::memcpy(static_cast<void*>(&entry), plain.data(), sizeof entry);
  entry.end = std::abs(ended);
  entry.has_failed = ended < 0;
  return entry;
}

std::uint64_t FlightLog::begin(FlightEntry entry) {
  const std::scoped_lock lock(writing_);
  const std::uint64_t ticket = page_->count.load(std::memory_order_relaxed);
  entry.start = now_ns();
  page_->slots[ticket % kCapacity].store(ticket, entry);
  page_->count.store(ticket + 1, std::memory_order_release);
  return ticket;
}

void FlightLog::end(std::uint64_t ticket, bool has_failed) {
  const std::scoped_lock lock(writing_);
  Slot& slot = page_->slots[ticket % kCapacity];
  if (slot.ticket.load(std::memory_order_relaxed) == ticket + 1) {
    slot.end.store(
        has_failed ? -now_ns() : now_ns(),
        std::memory_order_relaxed);
  } // else overwritten by a later one
}

void FlightLog::leave() {
  const std::scoped_lock lock(writing_);
  if (state() == RankState::kRunning) {
    page_->state.store(RankState::kLeft, std::memory_order_release);
  }
}

void FlightLog::fail(const Blame& blame) {
  const std::scoped_lock lock(writing_);
  if (state() == RankState::kRunning) {
    page_->blame = blame;
    page_->state.store(RankState::kFailed, std::memory_order_release);
  }
}

RankState FlightLog::state() const {
  return page_->state.load(std::memory_order_acquire);
}

std::optional<Blame> FlightLog::blame() const {
  return state() == RankState::kFailed ? std::optional(page_->blame)
                                       : std::nullopt;
}

std::vector<FlightEntry> FlightLog::entries() const {
  const std::uint64_t count = page_->count.load(std::memory_order_acquire);
  std::vector<FlightEntry> found;
  for (std::uint64_t i = count - std::min(count, kCapacity); i < count; ++i) {
    if (const auto entry = read(i)) {
      found.push_back(*entry);
    }
  }
  return found;
}

std::optional<FlightEntry> FlightLog::last() const {
  const auto count = [this] {
    return page_->count.load(std::memory_order_acquire);
  };
  std::uint64_t now = count();
  std::optional<FlightEntry> found;
  while (now != 0 && !(found = read(now - 1))) {
    now = count(); // so many have begun meanwhile
  }
  return found;
}

std::optional<FlightEntry> FlightLog::last_of(std::string_view group) const {
  const std::uint64_t count = page_->count.load(std::memory_order_acquire);
  for (std::uint64_t i = count; i > count - std::min(count, kCapacity); --i) {
    const auto entry = read(i - 1);
    if (entry && entry->group.view() == group) {
      return entry;
    }
  }
  return std::nullopt;
}

std::optional<FlightEntry> FlightLog::find(
    std::string_view group,
    std::uint64_t number) const {
  const std::uint64_t count = page_->count.load(std::memory_order_acquire);
  for (std::uint64_t i = count; i > count - std::min(count, kCapacity); --i) {
    const auto entry = read(i - 1);
    if (entry && entry->group.view() == group && entry->number <= number) {
      return entry->number == number ? entry : std::nullopt;
    }
  }
  return std::nullopt;
}

std::optional<CollectiveMismatch> FlightLog::first_difference(
    const FlightLog& other,
    std::string_view group) const {
  std::map<std::uint64_t, FlightEntry> own;
  for (const FlightEntry& entry : entries()) {
    if (entry.group.view() == group) {
      own.emplace(entry.number, entry);
    }
  }
  for (const FlightEntry& entry : other.entries()) {
    const auto same = own.find(entry.number);
    if (entry.group.view() == group && same != own.end() &&
        !entry.matches(same->second)) {
      return CollectiveMismatch{.own = same->second, .other = entry};
    }
  }
  return std::nullopt;
}

std::uint64_t FlightLog::first_open(std::string_view group) const {
  std::uint64_t next = 1;
  for (const FlightEntry& entry : entries()) {
    if (entry.group.view() != group) {
      continue;
    }
    if (entry.end == 0 || entry.has_failed) {
      return entry.number;
    }
    next = entry.number + 1;
  }
  return next;
}

} // namespace lockstep::dist::internal
