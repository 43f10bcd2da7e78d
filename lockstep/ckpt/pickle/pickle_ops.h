// SPDX-License-Identifier: BSD-3-Clause
//
// The pickle machine and its opcode handlers: plain values (pickle_values.cpp),
// containers (pickle_containers.cpp), names and calls (pickle_calls.cpp).
#pragma once

#include <array>
#include <map>
#include <string>
#include <string_view>

#include "lockstep/ckpt/pickle/pickle_decoder.h"
#include "lockstep/ckpt/pickle/pickle_machine.h"
#include "lockstep/ckpt/pickle/pickle_stack.h"

namespace lockstep::ckpt::internal {

class Machine;
using OpHandler = Status (Machine::*)(const Instruction&);

/// What runs for an opcode, by code; null for those the decoder deals with.
extern const std::array<OpHandler, 256> kOpHandlers;

/// Stack machine of one pickle. Cycles: see `PickleStack`.
class Machine {
 public:
  Machine(ByteSpan bytes, PersistentIdHandler* handler, const Limits& limits)
      : decoder_(bytes),
        handler_(handler),
        limits_(limits),
        stack_(
            limits.max_depth,
            limits.max_nodes,
            find_memo_reads(bytes, limits.max_opcodes)) {}

  /// Reads up to STOP. Errors: as `read_pickle`.
  Status run();
  /// The first names that are not on the allow list, joined.
  [[nodiscard]] std::string unsafe_names() const;

  PickleResult result = {};

  // Plain values.
  Status op_none(const Instruction& in);
  Status op_true(const Instruction& in);
  Status op_false(const Instruction& in);
  Status op_int(const Instruction& in);
  Status op_int_line(const Instruction& in);
  Status op_long(const Instruction& in);
  Status op_long_line(const Instruction& in);
  Status op_float(const Instruction& in);
  Status op_float_line(const Instruction& in);
  Status op_text(const Instruction& in);
  Status op_string_line(const Instruction& in);
  Status op_unicode_line(const Instruction& in);
  Status op_bytes(const Instruction& in);
  Status op_bytearray(const Instruction& in);

  // Stack and memo.
  Status op_mark(const Instruction& in);
  Status op_pop(const Instruction& in);
  Status op_pop_mark(const Instruction& in);
  Status op_dup(const Instruction& in);
  Status op_put(const Instruction& in);
  Status op_put_line(const Instruction& in);
  Status op_get(const Instruction& in);
  Status op_get_line(const Instruction& in);
  Status op_memoize(const Instruction& in);

  // Containers.
  Status op_empty_list(const Instruction& in);
  Status op_empty_tuple(const Instruction& in);
  Status op_empty_dict(const Instruction& in);
  Status op_empty_set(const Instruction& in);
  Status op_list(const Instruction& in);
  Status op_tuple(const Instruction& in);
  Status op_tuple_n(const Instruction& in);
  Status op_dict(const Instruction& in);
  Status op_frozenset(const Instruction& in);
  Status op_append(const Instruction& in);
  Status op_appends(const Instruction& in);
  Status op_setitem(const Instruction& in);
  Status op_setitems(const Instruction& in);
  Status op_additems(const Instruction& in);

  // Names and calls.
  Status op_global(const Instruction& in);
  Status op_stack_global(const Instruction& in);
  Status op_inst(const Instruction& in);
  Status op_obj(const Instruction& in);
  Status op_reduce(const Instruction& in);
  Status op_newobj_ex(const Instruction& in);
  Status op_build(const Instruction& in);
  Status op_persid(const Instruction& in);
  Status op_binpersid(const Instruction& in);
  Status op_refused(const Instruction& in);

 private:
  Status stop(const Instruction& instruction);
  static Error at(const Instruction& instruction, Error error);

  Status push_tuple(Taken taken);
  Status append_all(Taken taken);
  Status set_all(Taken taken);
  Status push_global(
      std::string_view module,
      std::string_view name,
      std::uint64_t offset);
  Status push_call(const Slot& callable, const Slot& args);
  Status push_persistent(const Value& id);
  void note_global(const std::string& name, std::uint64_t offset);
  void note_lookup(const Tuple& args);
  void note_bytes(std::string_view bytes, std::uint64_t offset);

  PickleDecoder decoder_;
  PersistentIdHandler* handler_;
  Limits limits_;
  PickleStack stack_;
  std::map<std::string, std::size_t> global_rows_;
};

} // namespace lockstep::ckpt::internal
