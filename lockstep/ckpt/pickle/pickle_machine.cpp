// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/pickle/pickle_machine.h"

#include <algorithm>
#include <array>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/read_error.h"
#include "lockstep/ckpt/core/value_walk.h"
#include "lockstep/ckpt/pickle/globals.h"
#include "lockstep/ckpt/pickle/pickle_finish.h"
#include "lockstep/ckpt/pickle/pickle_ops.h"

namespace lockstep::ckpt {
namespace internal {

Status Machine::run() {
  for (std::uint64_t count = 0;; ++count) {
    if (count >= limits_.max_opcodes) {
      return pickle_error(
          ErrorCode::kUnsafe,
          "E_LIMIT",
          format("more than {} opcodes", limits_.max_opcodes));
    }
    const Instruction* next = decoder_.next();
    if (next == nullptr) {
      return decoder_.error();
    }
    const Instruction& instruction = *next;
    if (instruction.info->op == Op::kStop) {
      return stop(instruction);
    }
    const OpHandler handler = kOpHandlers[opcode_byte(instruction.info->op)];
    if (handler == nullptr) {
      continue; // PROTO and FRAME are the decoder's
    }
    Status status = (this->*handler)(instruction);
    if (!status) {
      return at(instruction, std::move(status).error());
    }
  }
}

Status Machine::stop(const Instruction& instruction) {
  if (stack_.has_marks()) {
    return at(instruction, corrupt_pickle("E_STACK", "MARK without an end"));
  }
  auto slot = stack_.pop();
  if (!slot) {
    return at(instruction, std::move(slot).error());
  }
  result.root = std::move(slot->value);
  result.consumed = decoder_.position();
  result.protocol = decoder_.protocol();
  stack_.forget();
  auto shared = finish_tree(result.root, limits_.max_depth);
  if (!shared) {
    return at(instruction, std::move(shared).error());
  }
  stack_.release(*shared);
  return {};
}

Error Machine::at(const Instruction& instruction, Error error) {
  if (!error.offset) {
    error.offset = instruction.offset;
    error.message = format("{}: {}", instruction.info->name, error.message);
  }
  return error;
}

void Machine::note_global(const std::string& name, std::uint64_t offset) {
  const auto [row, is_new] =
      global_rows_.try_emplace(name, result.globals.size());
  if (is_new) {
    result.globals.push_back(
        {.name = name,
         .offset = offset,
         .is_safe = find_global(name).is_safe()});
  }
  ++result.globals[row->second].count;
}

void Machine::note_lookup(const Tuple& args) {
  constexpr std::size_t kMaxKept = 64;
  constexpr std::size_t kMaxBytes = 256;
  const bool is_pair = args.items.size() == 2;
  const Object* owner = is_pair ? args.items[0].as_object() : nullptr;
  const std::string* name = is_pair ? args.items[1].as_string() : nullptr;
  const bool is_kept = owner != nullptr && is_bare_global(*owner) &&
                       name != nullptr &&
                       owner->global.size() + name->size() < kMaxBytes &&
                       result.lookups.size() < kMaxKept;
  result.lookups.insert(is_kept ? owner->global + "." + *name : "?");
}

void Machine::note_bytes(std::string_view bytes, std::uint64_t offset) {
  if (starts_like_pickle(bytes) &&
      bytes.back() == static_cast<char>(opcode_byte(Op::kStop))) {
    result.warnings.push_back(
        format("W_NESTED_PICKLE: bytes at {:#x} hold a pickle", offset));
  }
}

std::string Machine::unsafe_names() const {
  std::vector<std::string> names;
  for (const GlobalUse& use : result.globals) {
    if (find_global(use.name).is_dangerous()) {
      names.push_back(use.name);
    }
  }
  return some_names(names);
}

} // namespace internal

Result<PickleResult> read_pickle(
    ByteSpan bytes,
    PersistentIdHandler* handler,
    const Limits& limits) {
  if (bytes.size() > limits.max_pickle_bytes) {
    return pickle_error(
        ErrorCode::kUnsafe,
        "E_LIMIT",
        format(
            "pickle is too large; expected at most {} bytes, got {}",
            limits.max_pickle_bytes,
            bytes.size()));
  }
  Limits bounded = limits;
  bounded.max_depth = std::min(limits.max_depth, kMaxTreeDepth);
  internal::Machine machine(bytes, handler, bounded);
  Status status = machine.run();
  if (!status) {
    Error error = std::move(status).error();
    const std::string names = machine.unsafe_names();
    if (!names.empty()) {
      error.hint = "do not load it elsewhere: it names " + names;
    }
    return error;
  }
  return std::move(machine.result);
}

} // namespace lockstep::ckpt
