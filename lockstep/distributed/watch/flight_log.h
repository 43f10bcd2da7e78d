// SPDX-License-Identifier: BSD-3-Clause
//
// The last collectives of one rank, in memory that the other ranks of the host
// read, too: also while this one hangs, and after it was killed.
#pragma once

#include <array>
#include <atomic>
#include <concepts>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/internal/descriptor.h"

namespace lockstep::dist::internal {

/// Text of a fixed size: it is cut off where it is longer.
template <std::size_t N>
class ShortText {
 public:
  ShortText() = default;
  // Implicit on purpose: fields are filled from text.
  template <std::convertible_to<std::string_view> Text>
  // NOLINTNEXTLINE(google-explicit-constructor)
  ShortText(const Text& text) {
    std::string_view(text).copy(chars_.data(), N - 1);
  }
  [[nodiscard]] std::string_view view() const {
    const std::string_view all(chars_.data(), N);
    return all.substr(0, all.find('\0'));
  }

 private:
  std::array<char, N> chars_ = {};
};

/// One collective. Times: nanoseconds since the epoch.
struct FlightEntry {
  /// In its group, from 1; 0: making its connections.
  std::uint64_t number = 0;
  std::int64_t start = 0;
  /// 0 while it runs.
  std::int64_t end = 0;
  bool has_failed = false;
  ShortText<32> name = {};
  /// What ranks must agree on, too: "max", "from rank 2"; "" for a sum, and for
  /// the group's first rank.
  ShortText<32> how = {};
  /// Why: "sync_buffers"; "" for a call of its own.
  ShortText<32> purpose = {};
  ShortText<32> group = {};
  /// "Float", "sparse Float".
  ShortText<24> dtype = {};
  /// "(64, 1, 28, 28)", of the first tensor; "" where ranks may differ.
  ShortText<64> sizes = {};
  std::int64_t elements = 0;

  /// "17 (broadcast for sync_buffers)"
  [[nodiscard]] std::string text() const;
  /// The same call, as far as ranks must agree.
  [[nodiscard]] bool matches(const FlightEntry& other) const;
};

/// What two ranks have begun as the same collective.
struct CollectiveMismatch {
  FlightEntry own = {};
  FlightEntry other = {};
};

/// Why a rank has given up.
struct Blame {
  ShortText<256> text = {};
  /// Ranks do different things: an error of the program.
  bool is_mismatch = false;
};

/// What a rank has said about itself.
enum class RankState { kRunning, kLeft, kFailed };

/// Threads: safe to call from several; other processes read meanwhile.
class FlightLog {
 public:
  /// Collectives that are kept.
  static constexpr std::uint64_t kCapacity = 512;

  /// An empty one. Errors: throws kIo without memory.
  static std::unique_ptr<FlightLog> create();
  /// That of another process; it can be read only. Nothing if there is none.
  static std::unique_ptr<FlightLog> open(const std::string& path);

  FlightLog(const FlightLog&) = delete;
  FlightLog& operator=(const FlightLog&) = delete;
  ~FlightLog();

  /// Its memory; -1 if no other process can have it.
  [[nodiscard]] int descriptor() const {
    return file_.get();
  }

  /// Notes a start, now; the result is for `end`.
  std::uint64_t begin(FlightEntry entry);
  void end(std::uint64_t ticket, bool has_failed);
  /// The rank has left the job, or has given up: the first of them counts.
  void leave();
  void fail(const Blame& blame);

  [[nodiscard]] RankState state() const;
  /// Nothing unless it has given up.
  [[nodiscard]] std::optional<Blame> blame() const;
  /// Those that are kept, the oldest first.
  [[nodiscard]] std::vector<FlightEntry> entries() const;
  /// The last one that was begun, in any group or in this one.
  [[nodiscard]] std::optional<FlightEntry> last() const;
  [[nodiscard]] std::optional<FlightEntry> last_of(
      std::string_view group) const;
  /// The group's collective of this number; nothing if it has not begun or is
  /// not kept any more.
  [[nodiscard]] std::optional<FlightEntry> find(
      std::string_view group,
      std::uint64_t number) const;
  /// The first of the group's collectives, among those that both keep, that
  /// are not the same call.
  [[nodiscard]] std::optional<CollectiveMismatch> first_difference(
      const FlightLog& other,
      std::string_view group) const;
  /// Number of the first collective of the group, among those that are kept,
  /// that has not ended well; the next one's if all have.
  [[nodiscard]] std::uint64_t first_open(std::string_view group) const;

 private:
  /// An entry that is written while others read it. Its place is that of older
  /// ones, too, and `ticket` says whose it is. Only `begin` writes the words;
  /// `end` writes one number, so that it hides the entry from nobody.
  struct Slot {
    static constexpr std::size_t kWords =
        sizeof(FlightEntry) / sizeof(std::uint64_t);

    void store(std::uint64_t number, const FlightEntry& entry);
    /// Nothing if it is another's by now.
    [[nodiscard]] std::optional<FlightEntry> load(std::uint64_t number) const;

    /// Plus 1; 0 while it is written.
    std::atomic<std::uint64_t> ticket = 0;
    /// When it ended, negative if it failed; 0 while it runs.
    std::atomic<std::int64_t> end = 0;
    std::array<std::atomic<std::uint64_t>, kWords> words = {};
  };
  static_assert(sizeof(FlightEntry) % sizeof(std::uint64_t) == 0);
  struct Page {
    std::uint64_t layout = 0;
    std::atomic<std::uint64_t> count = 0;
    std::atomic<RankState> state = RankState::kRunning;
    /// Written once, before `state`.
    Blame blame = {};
    std::array<Slot, kCapacity> slots = {};
  };
  FlightLog(Descriptor file, Page* page);
  [[nodiscard]] std::optional<FlightEntry> read(std::uint64_t ticket) const {
    return page_->slots[ticket % kCapacity].load(ticket);
  }

  Descriptor file_;
  Page* page_ = nullptr;
  std::mutex writing_;
};

/// Nanoseconds since the epoch.
std::int64_t now_ns();

} // namespace lockstep::dist::internal
