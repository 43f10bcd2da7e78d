// SPDX-License-Identifier: BSD-3-Clause
//
// The pickle machine: its stack, marks and memo, as Python's unpickler has
// them. What the values on the stack are is up to a policy, which makes them:
// a value tree (pickle_machine.cpp), or only what names are made of (the scan).
//   StackMachine<TreeBuilder> machine(bytes, limits.max_opcodes, builder);
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/base/internal/numbers.h"
#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/read_error.h"
#include "lockstep/ckpt/pickle/memo_reads.h"
#include "lockstep/ckpt/pickle/pickle_decoder.h"

namespace lockstep::ckpt {

/// Runs one pickle. A `Policy` has a type `Slot` of the values and
///   Result<Slot> plain(const Instruction&);
///   Result<Slot> container(const Instruction&, std::span<Slot> taken);
///   Result<Slot> call(const Instruction&, std::span<Slot> taken);
///   Status add(const Instruction&, Slot& target, std::span<Slot> taken);
/// for the actions of those names; `Status pushed(const Slot&)`, which sees all
/// that comes onto the stack, and `void reused(const Slot&)`, which sees what
/// comes from the memo or is doubled.
/// Errors of all: kCorrupt (E_STACK, E_MEMO, E_PICKLE), kUnsafe (E_LIMIT),
/// those of the decoder and of the policy; with the opcode's name and offset.
template <class Policy>
class StackMachine {
 public:
  using Slot = typename Policy::Slot;

  StackMachine(ByteSpan bytes, std::uint64_t max_opcodes, Policy& policy)
      : decoder_(bytes),
        max_opcodes_(max_opcodes),
        policy_(policy),
        reads_(find_memo_reads(bytes, max_opcodes)) {}

  /// The same for the pickles that `decoder` takes. `reads`: the memo entries
  /// that are kept.
  StackMachine(
      PickleDecoder decoder,
      std::uint64_t max_opcodes,
      Policy& policy,
      MemoReads reads)
      : decoder_(std::move(decoder)),
        max_opcodes_(max_opcodes),
        policy_(policy),
        reads_(std::move(reads)) {}

  /// Goes up to STOP.
  Status run() {
    while (opcodes_ < max_opcodes_) {
      const Instruction* next = decoder_.next();
      if (next == nullptr) {
        return decoder_.error();
      }
      ++opcodes_;
      if (next->info->action == Action::kStop) {
        return {};
      }
      Status status = execute(*next);
      if (!status) {
        return in_opcode(*next, std::move(status).error());
      }
    }
    return read_error(
        ErrorCode::kUnsafe,
        "E_LIMIT",
        format("more than {} opcodes", max_opcodes_),
        "Limits::max_opcodes allows more");
  }

  /// The value that STOP gives. Stack and memo are empty afterwards.
  Result<Slot> take_root() {
    if (!marks_.empty()) {
      return corrupt_file("E_STACK", "unmatched MARK");
    }
    LOCKSTEP_TRY(need(1));
    Slot root = std::move(slots_.back());
    slots_.clear();
    memo_.clear();
    return root;
  }

  /// What STOP gives Python, whatever lies below a mark; null if nothing.
  [[nodiscard]] const Slot* top() const {
    const std::size_t floor = marks_.empty() ? 0 : marks_.back();
    return slots_.size() > floor ? &slots_.back() : nullptr;
  }

  /// Opcodes that were executed.
  [[nodiscard]] std::uint64_t opcodes() const noexcept {
    return opcodes_;
  }
  [[nodiscard]] const PickleDecoder& decoder() const noexcept {
    return decoder_;
  }
  [[nodiscard]] PickleDecoder& decoder() noexcept {
    return decoder_;
  }

 private:
  Status execute(const Instruction& in) {
    switch (in.info->action) {
      case Action::kSkip:
      case Action::kStop:
        return {};
      case Action::kMark:
        marks_.push_back(slots_.size());
        return {};
      case Action::kPop:
        return pop();
      case Action::kPopMark: {
        LOCKSTEP_ASSIGN(const std::span<Slot> taken, above_mark());
        drop(taken.size());
        return {};
      }
      case Action::kDup:
        LOCKSTEP_TRY(need(1));
        return push_again(Slot(slots_.back()));
      case Action::kPut: {
        LOCKSTEP_ASSIGN(const std::uint64_t index, memo_index(in));
        return put(index);
      }
      case Action::kMemoize:
        return put(dense_ + far_.size());
      case Action::kGet: {
        LOCKSTEP_ASSIGN(const std::uint64_t index, memo_index(in));
        return get(index);
      }
      case Action::kPlain:
        return push(policy_.plain(in));
      case Action::kContainer:
      case Action::kCall:
        return make(in);
      case Action::kAdd:
        return add(in);
    }
    __builtin_unreachable();
  }

  Status make(const Instruction& in) {
    LOCKSTEP_ASSIGN(const std::span<Slot> taken, take(in.info->takes));
    Result<Slot> made = in.info->action == Action::kCall
                            ? policy_.call(in, taken)
                            : policy_.container(in, taken);
    drop(taken.size());
    return push(std::move(made));
  }

  Status add(const Instruction& in) {
    LOCKSTEP_ASSIGN(const std::span<Slot> taken, take(in.info->takes));
    LOCKSTEP_TRY(need(taken.size() + 1));
    Slot& target = slots_[slots_.size() - taken.size() - 1];
    LOCKSTEP_TRY(policy_.add(in, target, taken));
    drop(taken.size());
    return {};
  }

  // A mark counts as one, too.
  Status pop() {
    if (!marks_.empty() && slots_.size() == marks_.back()) {
      marks_.pop_back();
      return {};
    }
    LOCKSTEP_TRY(need(1));
    slots_.pop_back();
    return {};
  }

  Status put(std::uint64_t index) {
    LOCKSTEP_TRY(need(1));
    if (index > dense_) {
      far_.insert(index);
    } else if (index == dense_) {
      ++dense_;
      far_.erase(index);
    }
    if (reads_.contains(index)) {
      memo_.insert_or_assign(index, slots_.back());
    }
    return {};
  }

  Status get(std::uint64_t index) {
    const auto found = memo_.find(index);
    if (found == memo_.end()) {
      return corrupt_file(
          "E_MEMO",
          format("memo entry {} was never set", index));
    }
    return push_again(Slot(found->second));
  }

  Result<std::uint64_t> memo_index(const Instruction& in) {
    if (in.info->operand != Operand::kLine) {
      return in.number;
    }
    const auto digits = memo_digits(in.text);
    if (!digits) {
      return corrupt_file(
          "E_PICKLE",
          format("'{}' is not a memo number", escape(in.text)));
    }
    if (const auto index = parse_number<std::int64_t>(*digits)) {
      return static_cast<std::uint64_t>(*index);
    }
    // Python has a dict, which takes numbers of any size.
    const std::uint64_t row = far_names_.size();
    return ~far_names_.try_emplace(*digits, row).first->second;
  }

  Status push(Slot&& slot) {
    LOCKSTEP_TRY(policy_.pushed(slot));
    slots_.push_back(std::move(slot));
    return {};
  }

  Status push(Result<Slot>&& made) {
    return made ? push(std::move(*made)) : Status(std::move(made).error());
  }

  Status push_again(Slot slot) {
    policy_.reused(slot);
    return push(std::move(slot));
  }

  // The mark goes, the values stay until `drop`.
  Result<std::span<Slot>> above_mark() {
    if (marks_.empty()) {
      return corrupt_file("E_STACK", "no MARK on the stack");
    }
    const std::size_t first = marks_.back();
    marks_.pop_back();
    return std::span(slots_).subspan(first);
  }

  Result<std::span<Slot>> take(std::uint8_t count) {
    if (count == kToMark) {
      return above_mark();
    }
    LOCKSTEP_TRY(need(count));
    return std::span(slots_).last(count);
  }

  // Values below the last mark are out of reach.
  [[nodiscard]] Status need(std::size_t count) const {
    const std::size_t floor = marks_.empty() ? 0 : marks_.back();
    return slots_.size() - floor >= count
               ? Status()
               : Status(corrupt_file(
                     "E_STACK",
                     "stack is empty; expected a value"));
  }

  void drop(std::size_t count) {
    slots_.resize(slots_.size() - count);
  }

  PickleDecoder decoder_;
  std::uint64_t max_opcodes_;
  std::uint64_t opcodes_ = 0;
  Policy& policy_;
  std::vector<Slot> slots_;
  std::vector<std::size_t> marks_;
  // The memo, without what is never read back.
  MemoReads reads_;
  std::map<std::uint64_t, Slot> memo_;
  // How many entries there are, kept or not: those below `dense_` and `far_`.
  std::uint64_t dense_ = 0;
  std::set<std::uint64_t> far_;
  // Numbers of 64 bits and more, and the order of their first use.
  std::map<std::string, std::uint64_t> far_names_;
};

} // namespace lockstep::ckpt
