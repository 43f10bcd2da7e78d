// SPDX-License-Identifier: BSD-3-Clause
//
// Makes the value tree for the pickle machine: plain values
// (pickle_values.cpp), containers (pickle_containers.cpp), names and calls
// (pickle_calls.cpp).
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "lockstep/ckpt/core/budget.h"
#include "lockstep/ckpt/pickle/made_bytes.h"
#include "lockstep/ckpt/pickle/pickle.h"
#include "lockstep/ckpt/pickle/pickle_decoder.h"
#include "lockstep/ckpt/pickle/pickle_finish.h"

namespace lockstep::ckpt::internal {

/// A value on the stack. `depth` is the nesting below it.
struct TreeSlot {
  Value value = {};
  std::uint64_t depth = 1;
};

/// The policy of a `StackMachine`. Errors: as `read_pickle`.
class TreeBuilder {
 public:
  using Slot = TreeSlot;

  /// `budget` counts what it makes.
  TreeBuilder(
      PersistentIdHandler* handler,
      const Limits& limits,
      Budget& budget)
      : handler_(handler), limits_(limits), budget_(budget) {}

  Result<Slot> plain(const Instruction& in);
  Result<Slot> container(const Instruction& in, std::span<Slot> taken);
  Result<Slot> call(const Instruction& in, std::span<Slot> taken);
  Status add(const Instruction& in, Slot& target, std::span<Slot> taken);
  Status pushed(const Slot& slot) {
    return slot.depth > limits_.max_depth || ++pushed_ > limits_.max_nodes
               ? Status(too_much(slot.depth))
               : budget_.make(kValueBytes + bytes_of_node(slot.value));
  }
  void reused(const Slot& slot) {
    reused_.note(slot.value);
  }

  /// Makes a tree of `root`, the only value left of the machine.
  Status finish(Value root);
  /// The first names that are dangerous, joined.
  [[nodiscard]] std::string unsafe_names() const;

  PickleResult result = {};

 private:
  [[nodiscard]] Error too_much(std::uint64_t depth) const;
  // Notes that `slot`, a container, now holds something of `child_depth`.
  Status deepen(Slot& slot, std::uint64_t child_depth) const;
  Status append_all(Slot& target, std::span<Slot> taken) const;
  Status set_all(Slot& target, std::span<Slot> taken) const;
  Status add_members(Slot& target, std::span<Slot> taken) const;
  Status build(Slot& target, Slot& state);
  Status build_dict(Dict& dict, const Value& state);

  Result<Slot>
  name(std::string_view module, std::string_view name, const Instruction& in);
  Result<Slot>
  call_value(const Slot& callable, const Slot& args, const Instruction& in);
  Result<Slot> persistent(const Value& id);
  void note_global(const std::string& name, std::uint64_t offset);
  void note_lookup(const Tuple& args);
  void note_bytes(std::string_view bytes, std::uint64_t offset);

  PersistentIdHandler* handler_;
  Limits limits_;
  Budget& budget_;
  std::uint64_t pushed_ = 0;
  // Bytes that hold pickles.
  std::uint64_t nested_ = 0;
  ReusedNodes reused_;
  std::map<std::string, std::size_t> global_rows_;
};

/// The greatest depth of `slots`, 0 without any.
std::uint64_t depth_of(std::span<const TreeSlot> slots);
/// Their values, which are moved away.
std::vector<Value> values_of(std::span<TreeSlot> slots);

} // namespace lockstep::ckpt::internal
