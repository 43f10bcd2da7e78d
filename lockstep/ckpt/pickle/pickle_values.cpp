// SPDX-License-Identifier: BSD-3-Clause
//
// Opcodes of plain values, of the stack and of the memo.
#include <utility>

#include "lockstep/base/numbers.h"
#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/read_error.h"
#include "lockstep/ckpt/pickle/pickle_ops.h"
#include "lockstep/ckpt/pickle/pickle_text.h"

namespace lockstep::ckpt::internal {
namespace {

Error bad_text(std::string_view what, std::string_view text) {
  return corrupt_pickle(
      "E_PICKLE",
      format("'{}' is not {}", escape(text), what));
}

Result<std::uint64_t> memo_index(std::string_view text) {
  const auto index = parse_number<std::uint64_t>(text);
  if (!index) {
    return bad_text("a memo number", text);
  }
  return *index;
}

Status check_integer_size(std::size_t bytes) {
  if (bytes > kMaxIntegerBytes) {
    return pickle_error(
        ErrorCode::kUnsafe,
        "E_LIMIT",
        format("integer of {} bytes, at most {}", bytes, kMaxIntegerBytes));
  }
  return {};
}

} // namespace

Status Machine::op_none(const Instruction& /*in*/) {
  return stack_.push(None{});
}

Status Machine::op_true(const Instruction& /*in*/) {
  return stack_.push(true);
}

Status Machine::op_false(const Instruction& /*in*/) {
  return stack_.push(false);
}

Status Machine::op_int(const Instruction& in) {
  return stack_.push(static_cast<std::int64_t>(in.number));
}

Status Machine::op_int_line(const Instruction& in) {
  if (in.text == "00" || in.text == "01") { // how protocol 0 spells bool
    return stack_.push(in.text == "01");
  }
  return op_long_line(in);
}

Status Machine::op_long(const Instruction& in) {
  LOCKSTEP_TRY(check_integer_size(in.text.size()));
  return stack_.push(integer_from_bytes(in.text));
}

Status Machine::op_long_line(const Instruction& in) {
  LOCKSTEP_TRY(check_integer_size(in.text.size()));
  auto integer = integer_from_decimal(in.text);
  if (!integer) {
    return bad_text("an integer", in.text);
  }
  return stack_.push(*std::move(integer));
}

Status Machine::op_float(const Instruction& in) {
  return stack_.push(in.real);
}

Status Machine::op_float_line(const Instruction& in) {
  const auto real = parse_number<double>(in.text);
  if (!real) {
    return bad_text("a float", in.text);
  }
  return stack_.push(*real);
}

// Python 2's byte strings are text here, too: keys and tags are ASCII. Bytes
// that are no UTF-8 are kept as they are.
Status Machine::op_text(const Instruction& in) {
  return stack_.push(in.text);
}

Status Machine::op_string_line(const Instruction& in) {
  auto text = unquote(in.text);
  if (!text) {
    return bad_text("a quoted string", in.text);
  }
  return stack_.push(*std::move(text));
}

Status Machine::op_unicode_line(const Instruction& in) {
  auto text = unescape_unicode(in.text);
  if (!text) {
    return bad_text("an escaped string", in.text);
  }
  return stack_.push(*std::move(text));
}

Status Machine::op_bytes(const Instruction& in) {
  note_bytes(in.text, in.offset);
  return stack_.push(Bytes{std::string(in.text)});
}

Status Machine::op_bytearray(const Instruction& in) {
  note_bytes(in.text, in.offset);
  return stack_.push(
      Object{
          .global = "builtins.bytearray",
          .args = std::make_shared<Value>(
              Value::tuple({Bytes{std::string(in.text)}}))},
      3);
}

Status Machine::op_mark(const Instruction& /*in*/) {
  stack_.mark();
  return {};
}

Status Machine::op_pop(const Instruction& /*in*/) {
  auto slot = stack_.pop();
  if (!slot && stack_.has_marks()) {
    return op_pop_mark({}); // POP takes a mark, too
  }
  return slot ? Status() : Status(std::move(slot).error());
}

Status Machine::op_pop_mark(const Instruction& /*in*/) {
  LOCKSTEP_ASSIGN([[maybe_unused]] auto popped, stack_.take_to_mark());
  return {};
}

Status Machine::op_dup(const Instruction& /*in*/) {
  return stack_.duplicate();
}

Status Machine::op_put(const Instruction& in) {
  return stack_.put(in.number);
}

Status Machine::op_put_line(const Instruction& in) {
  LOCKSTEP_ASSIGN(const std::uint64_t index, memo_index(in.text));
  return stack_.put(index);
}

Status Machine::op_get(const Instruction& in) {
  return stack_.get(in.number);
}

Status Machine::op_get_line(const Instruction& in) {
  LOCKSTEP_ASSIGN(const std::uint64_t index, memo_index(in.text));
  return stack_.get(index);
}

Status Machine::op_memoize(const Instruction& /*in*/) {
  return stack_.memoize();
}

} // namespace lockstep::ckpt::internal
