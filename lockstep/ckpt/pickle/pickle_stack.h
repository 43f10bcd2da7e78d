// SPDX-License-Identifier: BSD-3-Clause
//
// Stack, marks and memo of the pickle machine. Values below the last mark
// cannot be popped, as in Python.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "lockstep/ckpt/value.h"

namespace lockstep::ckpt {

/// A value on the stack. `depth` is the nesting below it.
struct Slot {
  Value value = {};
  std::uint64_t depth = 1;
};

/// Errors of all: kCorrupt (E_STACK, E_MEMO), kUnsafe (E_DEPTH,
/// E_LIMIT).
class PickleStack {
 public:
  PickleStack(std::uint64_t max_depth, std::uint64_t max_nodes)
      : max_depth_(max_depth), max_nodes_(max_nodes) {}
  ~PickleStack();
  PickleStack(const PickleStack&) = delete;
  PickleStack& operator=(const PickleStack&) = delete;

  Status push(Value value, std::uint64_t depth = 1);
  Result<Slot> pop();
  /// The value on top. Ownership: until the next change of the stack.
  Result<Slot*> top();
  void mark();
  /// Everything above the last mark, which goes, too.
  Result<std::vector<Slot>> pop_to_mark();
  Status duplicate();
  /// Notes that `slot`, a container, now holds something of `child_depth`.
  Status deepen(Slot& slot, std::uint64_t child_depth) const;

  Status put(std::uint64_t index);
  Status get(std::uint64_t index);
  /// PUT at the number of entries so far.
  Status memoize();

  [[nodiscard]] bool has_marks() const noexcept {
    return !marks_.empty();
  }
  /// Drops stack and memo, so that use counts tell who shares what.
  void forget();
  /// The tree has no cycle: leave it to the caller.
  void release();

 private:
  [[nodiscard]] const Slot* find(std::uint64_t index) const;
  void note_reuse(const Value& value);

  std::uint64_t max_depth_;
  std::uint64_t max_nodes_;
  std::uint64_t pushed_ = 0;
  std::vector<Slot> slots_;
  std::vector<std::size_t> marks_;
  // Sparse: an entry exists because a PUT ran, not because of its number.
  std::vector<Slot> memo_;
  std::unordered_map<std::uint64_t, Slot> far_memo_;
  // Containers taken from the memo or duplicated. Every cycle goes through
  // one of them; emptied on destruction unless released.
  std::unordered_map<const void*, Value> reused_;
};

} // namespace lockstep::ckpt
