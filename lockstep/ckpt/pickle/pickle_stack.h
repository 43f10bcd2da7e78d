// SPDX-License-Identifier: BSD-3-Clause
//
// Stack, marks and memo of the pickle machine. Values below the last mark
// cannot be popped, as in Python.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lockstep/ckpt/pickle/memo_reads.h"
#include "lockstep/ckpt/pickle/pickle_finish.h"
#include "lockstep/ckpt/value.h"

namespace lockstep::ckpt {

/// A value on the stack. `depth` is the nesting below it.
struct Slot {
  Value value = {};
  std::uint64_t depth = 1;
};

/// Values taken off the stack, and the greatest of their depths.
struct Taken {
  std::vector<Value> values = {};
  std::uint64_t depth = 0;
};

/// Errors of all: kCorrupt (E_STACK, E_MEMO), kUnsafe (E_DEPTH,
/// E_LIMIT).
class PickleStack {
 public:
  /// Of the memo only `reads` are kept.
  PickleStack(std::uint64_t max_depth, std::uint64_t max_nodes, MemoReads reads)
      : max_depth_(max_depth),
        max_nodes_(max_nodes),
        reads_(std::move(reads)) {}
  ~PickleStack();
  PickleStack(const PickleStack&) = delete;
  PickleStack& operator=(const PickleStack&) = delete;

  /// `value` is whatever a `Value` is made of.
  template <class T>
  Status push(T&& value, std::uint64_t depth = 1) {
    if (depth > max_depth_ || ++pushed_ > max_nodes_) {
      return too_much(depth);
    }
    slots_.emplace_back(std::forward<T>(value), depth);
    return {};
  }
  Result<Slot> pop();
  /// The value on top. Ownership: until the next change of the stack.
  Result<Slot*> top();
  void mark();
  /// The `count` values on top, the last one at the end.
  Result<Taken> take(std::size_t count);
  /// Everything above the last mark, which goes, too.
  Result<Taken> take_to_mark();
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
  /// The tree has no cycle, and of what it shares are `kept`: leave it to the
  /// caller. What is not in it can hold itself and is emptied.
  void release(const SharedNodes& kept);

 private:
  [[nodiscard]] Error too_much(std::uint64_t depth) const;
  Taken take_from(std::size_t first);
  void note_reuse(const Value& value);

  std::uint64_t max_depth_;
  std::uint64_t max_nodes_;
  std::uint64_t pushed_ = 0;
  std::vector<Slot> slots_;
  std::vector<std::size_t> marks_;
  MemoReads reads_;
  std::map<std::uint64_t, Slot> memo_;
  // How many entries there are, kept or not: those below `dense_` and `far_`.
  std::uint64_t dense_ = 0;
  std::set<std::uint64_t> far_;
  // Containers taken from the memo or duplicated. Every cycle goes through
  // one of them; emptied on destruction unless released.
  std::unordered_map<const void*, Value> reused_;
};

} // namespace lockstep::ckpt
