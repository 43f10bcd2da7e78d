// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/base/internal/temporary_paths.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <climits>

namespace lockstep::internal {
namespace {

enum class SlotState { kFree, kTaken, kNoted };

// The handler reads a path only once it is whole.
struct Slot {
  std::atomic<SlotState> state = SlotState::kFree;
  std::array<char, PATH_MAX> path = {};
};
static_assert(std::atomic<SlotState>::is_always_lock_free);

constexpr std::size_t kSlots = 16;
std::array<Slot, kSlots> slots;

} // namespace

TemporaryPath::TemporaryPath(const std::string& path) {
  if (path.size() >= PATH_MAX) {
    return;
  }
  for (std::size_t i = 0; i < kSlots; ++i) {
    Slot& slot = slots.at(i);
    SlotState expected = SlotState::kFree;
    if (slot.state.compare_exchange_strong(expected, SlotState::kTaken)) {
      *std::ranges::copy(path, slot.path.begin()).out = '\0';
      slot.state = SlotState::kNoted;
      slot_ = i;
      return;
    }
  }
}

TemporaryPath::~TemporaryPath() {
  if (slot_) {
    slots.at(*slot_).state = SlotState::kFree;
  }
}

void remove_noted_temporaries() {
  for (const Slot& slot : slots) {
    if (slot.state == SlotState::kNoted) {
      ::unlink(slot.path.data());
    }
  }
}

} // namespace lockstep::internal
