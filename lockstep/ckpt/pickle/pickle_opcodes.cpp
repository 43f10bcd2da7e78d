// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/pickle/pickle_opcodes.h"

#include <algorithm>
#include <array>

namespace lockstep::ckpt {
namespace {

using enum Operand;
using enum Action;

// clang-format off
constexpr std::array kOpcodes{
    OpcodeInfo{Op::kMark, "MARK", kNone, 0, kMark},
    OpcodeInfo{Op::kEmptyTuple, "EMPTY_TUPLE", kNone, 1, kContainer},
    OpcodeInfo{Op::kStop, "STOP", kNone, 0, kStop},
    OpcodeInfo{Op::kPop, "POP", kNone, 0, kPop},
    OpcodeInfo{Op::kPopMark, "POP_MARK", kNone, 1, kPopMark},
    OpcodeInfo{Op::kDup, "DUP", kNone, 0, kDup},
    OpcodeInfo{Op::kBinBytes, "BINBYTES", kBytes4, 3, kPlain},
    OpcodeInfo{Op::kShortBinBytes, "SHORT_BINBYTES", kBytes1, 3, kPlain},
    OpcodeInfo{Op::kFloat, "FLOAT", kLine, 0, kPlain},
    OpcodeInfo{Op::kBinFloat, "BINFLOAT", kF8, 1, kPlain},
    OpcodeInfo{Op::kInt, "INT", kLine, 0, kPlain},
    OpcodeInfo{Op::kBinInt, "BININT", kI4, 1, kPlain},
    OpcodeInfo{Op::kBinInt1, "BININT1", kU1, 1, kPlain},
    OpcodeInfo{Op::kLong, "LONG", kLine, 0, kPlain},
    OpcodeInfo{Op::kBinInt2, "BININT2", kU2, 1, kPlain},
    OpcodeInfo{Op::kNone, "NONE", kNone, 0, kPlain},
    OpcodeInfo{Op::kPersId, "PERSID", kLine, 0, kCall},
    OpcodeInfo{Op::kBinPersId, "BINPERSID", kNone, 1, kCall, 1},
    OpcodeInfo{Op::kReduce, "REDUCE", kNone, 0, kCall, 2},
    OpcodeInfo{Op::kString, "STRING", kLine, 0, kPlain},
    OpcodeInfo{Op::kBinString, "BINSTRING", kSignedBytes4, 1, kPlain},
    OpcodeInfo{Op::kShortBinString, "SHORT_BINSTRING", kBytes1, 1, kPlain},
    OpcodeInfo{Op::kUnicode, "UNICODE", kLine, 0, kPlain},
    OpcodeInfo{Op::kBinUnicode, "BINUNICODE", kBytes4, 1, kPlain},
    OpcodeInfo{Op::kEmptyList, "EMPTY_LIST", kNone, 1, kContainer},
    OpcodeInfo{Op::kAppend, "APPEND", kNone, 0, kAdd, 1},
    OpcodeInfo{Op::kBuild, "BUILD", kNone, 0, kAdd, 1},
    OpcodeInfo{Op::kGlobal, "GLOBAL", kTwoLines, 0, kCall},
    OpcodeInfo{Op::kDict, "DICT", kNone, 0, kContainer, kToMark},
    OpcodeInfo{Op::kAppends, "APPENDS", kNone, 1, kAdd, kToMark},
    OpcodeInfo{Op::kGet, "GET", kLine, 0, kGet},
    OpcodeInfo{Op::kBinGet, "BINGET", kU1, 1, kGet},
    OpcodeInfo{Op::kInst, "INST", kTwoLines, 0, kCall, kToMark},
    OpcodeInfo{Op::kLongBinGet, "LONG_BINGET", kU4, 1, kGet},
    OpcodeInfo{Op::kList, "LIST", kNone, 0, kContainer, kToMark},
    OpcodeInfo{Op::kObj, "OBJ", kNone, 1, kCall, kToMark},
    OpcodeInfo{Op::kPut, "PUT", kLine, 0, kPut},
    OpcodeInfo{Op::kBinPut, "BINPUT", kU1, 1, kPut},
    OpcodeInfo{Op::kLongBinPut, "LONG_BINPUT", kU4, 1, kPut},
    OpcodeInfo{Op::kSetItem, "SETITEM", kNone, 0, kAdd, 2},
    OpcodeInfo{Op::kTuple, "TUPLE", kNone, 0, kContainer, kToMark},
    OpcodeInfo{Op::kSetItems, "SETITEMS", kNone, 1, kAdd, kToMark},
    OpcodeInfo{Op::kEmptyDict, "EMPTY_DICT", kNone, 1, kContainer},
    OpcodeInfo{Op::kProto, "PROTO", kU1, 2, kSkip},
    OpcodeInfo{Op::kNewObj, "NEWOBJ", kNone, 2, kCall, 2},
    OpcodeInfo{Op::kExt1, "EXT1", kU1, 2, kCall},
    OpcodeInfo{Op::kExt2, "EXT2", kU2, 2, kCall},
    OpcodeInfo{Op::kExt4, "EXT4", kI4, 2, kCall},
    OpcodeInfo{Op::kTuple1, "TUPLE1", kNone, 2, kContainer, 1},
    OpcodeInfo{Op::kTuple2, "TUPLE2", kNone, 2, kContainer, 2},
    OpcodeInfo{Op::kTuple3, "TUPLE3", kNone, 2, kContainer, 3},
    OpcodeInfo{Op::kNewTrue, "NEWTRUE", kNone, 2, kPlain},
    OpcodeInfo{Op::kNewFalse, "NEWFALSE", kNone, 2, kPlain},
    OpcodeInfo{Op::kLong1, "LONG1", kBytes1, 2, kPlain},
    OpcodeInfo{Op::kLong4, "LONG4", kSignedBytes4, 2, kPlain},
    OpcodeInfo{Op::kShortBinUnicode, "SHORT_BINUNICODE", kBytes1, 4, kPlain},
    OpcodeInfo{Op::kBinUnicode8, "BINUNICODE8", kBytes8, 4, kPlain},
    OpcodeInfo{Op::kBinBytes8, "BINBYTES8", kBytes8, 4, kPlain},
    OpcodeInfo{Op::kEmptySet, "EMPTY_SET", kNone, 4, kContainer},
    OpcodeInfo{Op::kAddItems, "ADDITEMS", kNone, 4, kAdd, kToMark},
    OpcodeInfo{Op::kFrozenSet, "FROZENSET", kNone, 4, kContainer, kToMark},
    OpcodeInfo{Op::kNewObjEx, "NEWOBJ_EX", kNone, 4, kCall, 3},
    OpcodeInfo{Op::kStackGlobal, "STACK_GLOBAL", kNone, 4, kCall, 2},
    OpcodeInfo{Op::kMemoize, "MEMOIZE", kNone, 4, kMemoize},
    OpcodeInfo{Op::kFrame, "FRAME", kU8, 4, kSkip},
    OpcodeInfo{Op::kByteArray8, "BYTEARRAY8", kBytes8, 5, kPlain},
    OpcodeInfo{Op::kNextBuffer, "NEXT_BUFFER", kNone, 5, kCall},
    OpcodeInfo{Op::kReadonlyBuffer, "READONLY_BUFFER", kNone, 5, kCall, 1},
};
// clang-format on
static_assert(std::ranges::is_sorted(kOpcodes, {}, &OpcodeInfo::op));

} // namespace

constexpr std::array<const OpcodeInfo*, 256> internal::kOpcodeRows = [] {
  std::array<const OpcodeInfo*, 256> rows{};
  for (const OpcodeInfo& row : kOpcodes) {
    rows.at(opcode_byte(row.op)) = &row;
  }
  return rows;
}();

std::span<const OpcodeInfo> opcode_table() {
  return kOpcodes;
}

} // namespace lockstep::ckpt
