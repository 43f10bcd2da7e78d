// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <iterator>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/budget.h"
#include "lockstep/ckpt/core/dtensor.h"
#include "lockstep/ckpt/core/read_error.h"
#include "lockstep/ckpt/pickle/globals.h"
#include "lockstep/ckpt/pickle/pickle.h"
#include "lockstep/ckpt/pickle/pickle_finish.h"
#include "lockstep/ckpt/pickle/stack_machine.h"
#include "lockstep/ckpt/pickle/tree_builder.h"
#include "lockstep/ckpt/walk.h"

namespace lockstep::ckpt {
namespace internal {

Status TreeBuilder::finish(Value root) {
  result.root = std::move(root);
  LOCKSTEP_ASSIGN(
      const SharedNodes shared,
      finish_tree(result.root, limits_.max_depth));
  reused_.release(shared);
  if (nested_ > result.warnings.size()) {
    result.warnings.push_back(
        {.name = "W_NESTED_PICKLE",
         .text = format(
             "{} more hold pickles",
             counted(nested_ - result.warnings.size(), "text", "texts"))});
  }
  const bool has_dtensors = std::ranges::any_of(
      result.globals,
      [](const GlobalUse& use) { return is_dtensor_class(use.name); });
  if (has_dtensors) {
    LOCKSTEP_ASSIGN(
        auto warnings,
        take_whole_dtensors(
            result.root,
            {.max_visits = limits_.max_nodes, .budget = &budget_}));
    std::ranges::move(warnings, std::back_inserter(result.warnings));
  }
  return {};
}

void TreeBuilder::note_global(const std::string& name, std::uint64_t offset) {
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

void TreeBuilder::note_lookup(const Tuple& args) {
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

void TreeBuilder::note_bytes(std::string_view bytes, std::uint64_t offset) {
  constexpr std::uint64_t kMaxWarnings = 64;
  if (starts_like_pickle(bytes) &&
      bytes.back() == static_cast<char>(opcode_byte(Op::kStop)) &&
      ++nested_ <= kMaxWarnings) {
    result.warnings.push_back(
        {.name = "W_NESTED_PICKLE",
         .text = format("bytes at {:#x} hold a pickle", offset)});
  }
}

std::string TreeBuilder::unsafe_names() const {
  std::vector<std::string> names;
  for (const GlobalUse& use : result.globals) {
    if (find_global(use.name).is_dangerous()) {
      names.push_back(use.name);
    }
  }
  return some_names(names);
}

} // namespace internal

namespace {

Status run(
    ByteSpan bytes,
    const Limits& limits,
    Budget& budget,
    internal::TreeBuilder& builder) {
  StackMachine machine(bytes, limits.max_opcodes, builder);
  Status ran = machine.run();
  builder.result.consumed = machine.decoder().position();
  // An opcode has a byte: more of them come of pickles that are read again.
  Status counted = budget.step(machine.opcodes());
  LOCKSTEP_TRY(ran);
  if (!counted) {
    return in_opcode(
        machine.decoder().instruction(),
        std::move(counted).error());
  }
  builder.result.protocol = machine.decoder().protocol();
  auto root = machine.take_root();
  budget.note_depth(root ? root->depth : 0);
  Status status = root ? builder.finish(std::move(root->value))
                       : Status(std::move(root).error());
  return status ? Status()
                : Status(in_opcode(
                      machine.decoder().instruction(),
                      std::move(status).error()));
}

} // namespace

bool starts_like_pickle(std::string_view bytes) {
  return bytes.size() > 2 &&
         bytes[0] == static_cast<char>(opcode_byte(Op::kProto)) &&
         bytes[1] >= 0 && bytes[1] <= kNewestProtocol;
}

Result<PickleResult> read_pickle(
    ByteSpan bytes,
    PersistentIdHandler* handler,
    const Limits& limits) {
  if (bytes.size() > limits.max_pickle_bytes) {
    return read_error(
        ErrorCode::kUnsafe,
        "E_LIMIT",
        format(
            "pickle is too large; expected at most {} bytes, got {}",
            limits.max_pickle_bytes,
            bytes.size()),
        "Limits::max_pickle_bytes allows more");
  }
  Limits bounded = limits;
  bounded.max_depth = std::min(limits.max_depth, kMaxTreeDepth);
  const auto budget = budget_of(limits, bytes.size());
  internal::TreeBuilder builder(handler, bounded, *budget);
  Status status = run(bytes, bounded, *budget, builder);
  if (!status) {
    Error error = std::move(status).error();
    const std::string names = builder.unsafe_names();
    if (!names.empty()) {
      error.hint = "do not load it elsewhere: it names " + names;
    }
    return error;
  }
  return std::move(builder.result);
}

} // namespace lockstep::ckpt
