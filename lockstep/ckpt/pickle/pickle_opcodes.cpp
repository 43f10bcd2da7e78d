// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/pickle/pickle_opcodes.h"

#include <algorithm>
#include <array>

namespace lockstep::ckpt {
namespace {

using enum Operand;
using enum Treatment;

constexpr std::array kOpcodes{
    OpcodeInfo{'(', "MARK"},
    OpcodeInfo{')', "EMPTY_TUPLE", kNone, 1},
    OpcodeInfo{'.', "STOP"},
    OpcodeInfo{'0', "POP"},
    OpcodeInfo{'1', "POP_MARK", kNone, 1},
    OpcodeInfo{'2', "DUP"},
    OpcodeInfo{'B', "BINBYTES", kBytes4, 3},
    OpcodeInfo{'C', "SHORT_BINBYTES", kBytes1, 3},
    OpcodeInfo{'F', "FLOAT", kLine},
    OpcodeInfo{'G', "BINFLOAT", kF8, 1},
    OpcodeInfo{'I', "INT", kLine},
    OpcodeInfo{'J', "BININT", kI4, 1},
    OpcodeInfo{'K', "BININT1", kU1, 1},
    OpcodeInfo{'L', "LONG", kLine},
    OpcodeInfo{'M', "BININT2", kU2, 1},
    OpcodeInfo{'N', "NONE"},
    OpcodeInfo{'P', "PERSID", kLine},
    OpcodeInfo{'Q', "BINPERSID", kNone, 1},
    OpcodeInfo{'R', "REDUCE"},
    OpcodeInfo{'S', "STRING", kLine},
    OpcodeInfo{'T', "BINSTRING", kSignedBytes4, 1},
    OpcodeInfo{'U', "SHORT_BINSTRING", kBytes1, 1},
    OpcodeInfo{'V', "UNICODE", kLine},
    OpcodeInfo{'X', "BINUNICODE", kBytes4, 1},
    OpcodeInfo{']', "EMPTY_LIST", kNone, 1},
    OpcodeInfo{'a', "APPEND"},
    OpcodeInfo{'b', "BUILD"},
    OpcodeInfo{'c', "GLOBAL", kTwoLines},
    OpcodeInfo{'d', "DICT"},
    OpcodeInfo{'e', "APPENDS", kNone, 1},
    OpcodeInfo{'g', "GET", kLine},
    OpcodeInfo{'h', "BINGET", kU1, 1},
    OpcodeInfo{'i', "INST", kTwoLines, 0, kOpaque},
    OpcodeInfo{'j', "LONG_BINGET", kU4, 1},
    OpcodeInfo{'l', "LIST"},
    OpcodeInfo{'o', "OBJ", kNone, 1, kOpaque},
    OpcodeInfo{'p', "PUT", kLine},
    OpcodeInfo{'q', "BINPUT", kU1, 1},
    OpcodeInfo{'r', "LONG_BINPUT", kU4, 1},
    OpcodeInfo{'s', "SETITEM"},
    OpcodeInfo{'t', "TUPLE"},
    OpcodeInfo{'u', "SETITEMS", kNone, 1},
    OpcodeInfo{'}', "EMPTY_DICT", kNone, 1},
    OpcodeInfo{0x80, "PROTO", kU1, 2},
    OpcodeInfo{0x81, "NEWOBJ", kNone, 2},
    OpcodeInfo{0x82, "EXT1", kU1, 2, kRefused},
    OpcodeInfo{0x83, "EXT2", kU2, 2, kRefused},
    OpcodeInfo{0x84, "EXT4", kI4, 2, kRefused},
    OpcodeInfo{0x85, "TUPLE1", kNone, 2},
    OpcodeInfo{0x86, "TUPLE2", kNone, 2},
    OpcodeInfo{0x87, "TUPLE3", kNone, 2},
    OpcodeInfo{0x88, "NEWTRUE", kNone, 2},
    OpcodeInfo{0x89, "NEWFALSE", kNone, 2},
    OpcodeInfo{0x8A, "LONG1", kBytes1, 2},
    OpcodeInfo{0x8B, "LONG4", kSignedBytes4, 2},
    OpcodeInfo{0x8C, "SHORT_BINUNICODE", kBytes1, 4},
    OpcodeInfo{0x8D, "BINUNICODE8", kBytes8, 4},
    OpcodeInfo{0x8E, "BINBYTES8", kBytes8, 4},
    OpcodeInfo{0x8F, "EMPTY_SET", kNone, 4},
    OpcodeInfo{0x90, "ADDITEMS", kNone, 4},
    OpcodeInfo{0x91, "FROZENSET", kNone, 4},
    OpcodeInfo{0x92, "NEWOBJ_EX", kNone, 4, kOpaque},
    OpcodeInfo{0x93, "STACK_GLOBAL", kNone, 4},
    OpcodeInfo{0x94, "MEMOIZE", kNone, 4},
    OpcodeInfo{0x95, "FRAME", kU8, 4},
    OpcodeInfo{0x96, "BYTEARRAY8", kBytes8, 5},
    OpcodeInfo{0x97, "NEXT_BUFFER", kNone, 5, kRefused},
    OpcodeInfo{0x98, "READONLY_BUFFER", kNone, 5, kRefused},
};
static_assert(std::ranges::is_sorted(kOpcodes, {}, &OpcodeInfo::code));

} // namespace

constexpr std::array<const OpcodeInfo*, 256> internal::kOpcodeRows = [] {
  std::array<const OpcodeInfo*, 256> rows{};
  for (const OpcodeInfo& row : kOpcodes) {
    rows.at(row.code) = &row;
  }
  return rows;
}();

constexpr std::array<std::uint8_t, 256> internal::kPlainBytes = [] {
  constexpr std::string_view kOthers = ".hj"; // STOP and what reads the memo
  std::array<std::uint8_t, 256> bytes{};
  for (const OpcodeInfo& row : kOpcodes) {
    const bool is_plain =
        (row.operand == kNone || operand_bytes(row.operand) != 0) &&
        !has_length(row.operand) &&
        kOthers.find(static_cast<char>(row.code)) == std::string_view::npos;
    const std::size_t whole = 1 + operand_bytes(row.operand);
    bytes.at(row.code) = static_cast<std::uint8_t>(is_plain ? whole : 0);
  }
  return bytes;
}();

std::span<const OpcodeInfo> opcode_table() {
  return kOpcodes;
}

} // namespace lockstep::ckpt
