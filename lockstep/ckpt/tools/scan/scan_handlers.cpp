// SPDX-License-Identifier: BSD-3-Clause
//
// What each kind of opcode does to the sketches on the stack.
#include <optional>
#include <utility>

#include "lockstep/base/numbers.h"
#include "lockstep/base/strings.h"
#include "lockstep/ckpt/pickle/pickle_text.h"
#include "lockstep/ckpt/tools/scan/scan_machine.h"

namespace lockstep::ckpt::internal {
namespace {

using Kind = Sketch::Kind;

} // namespace

Status ScanMachine::push_other(const Instruction& /*in*/) {
  push({});
  return {};
}

Status ScanMachine::push_text(const Instruction& in) {
  push_text_value(in.text, in.offset);
  return {};
}

Status ScanMachine::push_string_line(const Instruction& in) {
  auto text = unquote(in.text);
  push_text_value(text ? own(*std::move(text)) : in.text, in.offset);
  return {};
}

Status ScanMachine::push_unicode_line(const Instruction& in) {
  auto text = unescape_unicode(in.text);
  push_text_value(text ? own(*std::move(text)) : in.text, in.offset);
  return {};
}

Status ScanMachine::push_bytes(const Instruction& in) {
  look_inside(in.text, in.offset);
  push({});
  return {};
}

Status ScanMachine::push_mark(const Instruction& /*in*/) {
  push({.kind = Kind::kMark});
  return {};
}

Status ScanMachine::push_empty_tuple(const Instruction& /*in*/) {
  push_tuple({});
  return {};
}

// The registry of extension numbers lives in the reading program.
Status ScanMachine::push_extension(const Instruction& in) {
  note(format("?extension.{}", in.number), in.offset, /*is_nested=*/false);
  push({});
  return {};
}

Status ScanMachine::global(const Instruction& in) {
  return push_name(in.text, in.second, in.offset);
}

Status ScanMachine::stack_global(const Instruction& in) {
  LOCKSTEP_ASSIGN(const Sketch name, take());
  LOCKSTEP_ASSIGN(const Sketch module, take());
  if (name.kind != Kind::kText || module.kind != Kind::kText) {
    note("?", in.offset, /*is_nested=*/false);
    push({});
    return {};
  }
  return push_name(text_of(module), text_of(name), in.offset);
}

Status ScanMachine::inst(const Instruction& in) {
  LOCKSTEP_TRY(take_to_mark());
  LOCKSTEP_TRY(push_name(in.text, in.second, in.offset));
  stack_.back() = {};
  return {};
}

Status ScanMachine::collapse(const Instruction& /*in*/) {
  LOCKSTEP_TRY(take_to_mark());
  push({});
  return {};
}

Status ScanMachine::drop_to_mark(const Instruction& /*in*/) {
  LOCKSTEP_TRY(take_to_mark());
  return {};
}

Status ScanMachine::tuple(const Instruction& /*in*/) {
  LOCKSTEP_ASSIGN(auto parts, take_to_mark());
  push_tuple(std::move(parts));
  return {};
}

Status ScanMachine::tuple_n(const Instruction& in) {
  std::vector<Sketch> parts(short_tuple_items(in.info->op));
  for (std::size_t i = parts.size(); i-- > 0;) {
    LOCKSTEP_ASSIGN(parts[i], take());
  }
  push_tuple(std::move(parts));
  return {};
}

Status ScanMachine::drop_one(const Instruction& /*in*/) {
  return take_values(1);
}

Status ScanMachine::drop_two(const Instruction& /*in*/) {
  return take_values(2);
}

Status ScanMachine::call_two(const Instruction& /*in*/) {
  LOCKSTEP_TRY(take_values(2));
  push({});
  return {};
}

Status ScanMachine::reduce(const Instruction& /*in*/) {
  LOCKSTEP_ASSIGN(const Sketch args, take());
  LOCKSTEP_ASSIGN(const Sketch callable, take());
  if (is_getattr(callable) && is_member_of_enum(args)) {
    --open_getattrs_;
  }
  push({});
  return {};
}

Status ScanMachine::call_three(const Instruction& /*in*/) {
  LOCKSTEP_TRY(take_values(3));
  push({});
  return {};
}

Status ScanMachine::pop(const Instruction& /*in*/) {
  if (stack_.empty()) {
    return stack_error("nothing is on the stack");
  }
  stack_.pop_back();
  return {};
}

Status ScanMachine::dup(const Instruction& /*in*/) {
  LOCKSTEP_ASSIGN(const Sketch top, take());
  push(top);
  push(top);
  return {};
}

Status ScanMachine::put(const Instruction& in) {
  if (stack_.empty()) {
    return stack_error("nothing is on the stack");
  }
  store(in.number);
  return {};
}

Status ScanMachine::put_line(const Instruction& in) {
  const auto index = parse_number<std::uint64_t>(in.text);
  if (!index || stack_.empty()) {
    return stack_error("no index, or nothing is on the stack");
  }
  store(*index);
  return {};
}

Status ScanMachine::memoize(const Instruction& /*in*/) {
  if (stack_.empty()) {
    return stack_error("nothing is on the stack");
  }
  store(memo_.size() + far_memo_.size());
  return {};
}

Status ScanMachine::get(const Instruction& in) {
  return fetch(in.number);
}

Status ScanMachine::get_line(const Instruction& in) {
  const auto index = parse_number<std::uint64_t>(in.text);
  return index ? fetch(*index) : Status(stack_error("no index"));
}

Status ScanMachine::binpersid(const Instruction& /*in*/) {
  LOCKSTEP_ASSIGN(const Sketch id, take());
  if (id.kind == Kind::kStorageId) {
    const auto& parts = tuples_[id.index];
    result.storages.push_back(
        {.key = std::string(text_of(parts[2])),
         .class_name = std::string(text_of(parts[1]))});
  }
  push({});
  return {};
}

Status ScanMachine::nothing(const Instruction& /*in*/) {
  return {};
}

} // namespace lockstep::ckpt::internal
