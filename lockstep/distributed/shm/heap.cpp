// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/distributed/shm/heap.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace lockstep::dist::shm {
namespace {

constexpr std::size_t kPage = 4096;

std::size_t whole_pages(std::size_t bytes) {
  return (std::max<std::size_t>(bytes, 1) + kPage - 1) / kPage * kPage;
}

} // namespace

// Asked once: machines with a balloon change.
std::size_t Heap::bytes_for_all() {
  static const std::size_t bytes =
      static_cast<std::size_t>(::sysconf(_SC_PHYS_PAGES)) *
      static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)) / kPage * kPage;
  return bytes;
}

Heap::Heap(Descriptor file, Mapping memory)
    : file_(std::move(file)), memory_(std::move(memory)) {
  free_.emplace(0, bytes_for_all());
}

Result<std::shared_ptr<Heap>> Heap::create() {
  LOCKSTEP_ASSIGN(Descriptor file, create_sparse_segment(bytes_for_all()));
  LOCKSTEP_ASSIGN(
      Mapping memory,
      Mapping::map(file, bytes_for_all(), Pages::kWhenUsed));
  return std::shared_ptr<Heap>(new Heap(std::move(file), std::move(memory)));
}

std::optional<std::span<std::byte>> Heap::allocate(std::size_t bytes) {
  bytes = whole_pages(bytes);
  const std::scoped_lock lock(mutex_);
  const auto gap = std::ranges::find_if(free_, [&](const auto& range) {
    return range.second - range.first >= bytes;
  });
  // Takes the memory now: later its lack would be a signal, not an error.
  if (gap == free_.end() || ::fallocate(
                                file_.get(),
                                0,
                                static_cast<off_t>(gap->first),
                                static_cast<off_t>(bytes)) != 0) {
    return std::nullopt;
  }
  const auto [begin, end] = *gap;
  free_.erase(gap);
  if (begin + bytes < end) {
    free_.emplace(begin + bytes, end);
  }
  return std::span(memory_.data() + begin, bytes);
}

void Heap::free(std::span<std::byte> block) {
  if (::getpid() != owner_) {
    return; // a fork: the memory is still the parent's
  }
  const std::scoped_lock lock(mutex_);
  auto begin = static_cast<std::size_t>(block.data() - memory_.data());
  auto end = begin + block.size();
  ::fallocate(
      file_.get(),
      FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
      static_cast<off_t>(begin),
      static_cast<off_t>(block.size()));
  const auto next = free_.upper_bound(begin);
  if (next != free_.end() && next->first == end) {
    end = next->second;
    free_.erase(next);
  }
  const auto after = free_.upper_bound(begin);
  if (after != free_.begin() && std::prev(after)->second == begin) {
    std::prev(after)->second = end;
  } else {
    free_.emplace(begin, end);
  }
}

std::optional<std::uint64_t> Heap::offset_of(
    std::span<const std::byte> bytes) const {
  const std::byte* const end = memory_.data() + bytes_for_all();
  if (std::less<>()(bytes.data(), memory_.data()) ||
      std::less<>()(end, bytes.data() + bytes.size())) {
    return std::nullopt;
  }
  return static_cast<std::uint64_t>(bytes.data() - memory_.data());
}

} // namespace lockstep::dist::shm
