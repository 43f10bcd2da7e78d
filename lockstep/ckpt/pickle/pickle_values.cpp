// SPDX-License-Identifier: BSD-3-Clause
//
// Opcodes of plain values.
#include <optional>
#include <string>
#include <utility>

#include "lockstep/base/internal/numbers.h"
#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/read_error.h"
#include "lockstep/ckpt/pickle/pickle_text.h"
#include "lockstep/ckpt/pickle/tree_builder.h"

namespace lockstep::ckpt::internal {
namespace {

Error bad_text(std::string_view what, std::string_view text) {
  return corrupt_file("E_PICKLE", format("'{}' is not {}", escape(text), what));
}

Status check_integer_size(std::size_t bytes) {
  if (bytes > kMaxIntegerBytes) {
    return read_error(
        ErrorCode::kUnsafe,
        "E_LIMIT",
        format("integer of {} bytes, at most {}", bytes, kMaxIntegerBytes));
  }
  return {};
}

Result<TreeSlot> integer_of_line(std::string_view text) {
  LOCKSTEP_TRY(check_integer_size(text.size()));
  auto integer = integer_from_decimal(text);
  if (!integer) {
    return bad_text("an integer", text);
  }
  return TreeSlot{*std::move(integer)};
}

Result<TreeSlot> text_of_line(
    std::optional<std::string> text,
    std::string_view what,
    std::string_view line) {
  if (!text) {
    return bad_text(what, line);
  }
  return TreeSlot{*std::move(text)};
}

TreeSlot bytearray(std::string_view bytes) {
  return {
      Object{
          .global = "builtins.bytearray",
          .args = std::make_shared<Value>(
              Value::tuple({Bytes{std::string(bytes)}}))},
      3};
}

} // namespace

Result<TreeSlot> TreeBuilder::plain(const Instruction& in) {
  switch (in.info->op) {
    case Op::kNone:
      return TreeSlot{None{}};
    case Op::kNewTrue:
    case Op::kNewFalse:
      return TreeSlot{in.info->op == Op::kNewTrue};
    case Op::kBinInt:
    case Op::kBinInt1:
    case Op::kBinInt2:
      return TreeSlot{static_cast<std::int64_t>(in.number)};
    case Op::kInt:
      if (in.text == "00" || in.text == "01") { // how protocol 0 spells bool
        return TreeSlot{in.text == "01"};
      }
      return integer_of_line(in.text);
    case Op::kLong:
      return integer_of_line(in.text);
    case Op::kLong1:
    case Op::kLong4:
      LOCKSTEP_TRY(check_integer_size(in.text.size()));
      return TreeSlot{integer_from_bytes(in.text)};
    case Op::kBinFloat:
      return TreeSlot{in.real};
    case Op::kFloat: {
      const auto real = parse_number<double>(in.text);
      return real ? Result(TreeSlot{*real}) : bad_text("a float", in.text);
    }
    case Op::kString:
      return text_of_line(unquote(in.text), "a quoted string", in.text);
    case Op::kUnicode:
      return text_of_line(
          unescape_unicode(in.text),
          "an escaped string",
          in.text);
    case Op::kBinBytes:
    case Op::kShortBinBytes:
    case Op::kBinBytes8:
      note_bytes(in.text, in.offset);
      return TreeSlot{Bytes{std::string(in.text)}};
    case Op::kByteArray8:
      note_bytes(in.text, in.offset);
      return bytearray(in.text);
    default:
      // Text. Python 2's byte strings count as such: keys and tags are ASCII.
      // Bytes that are not UTF-8 are kept as they are.
      return TreeSlot{in.text};
  }
}

} // namespace lockstep::ckpt::internal
