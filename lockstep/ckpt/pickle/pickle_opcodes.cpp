// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/pickle/pickle_opcodes.h"

#include <algorithm>
#include <array>

namespace lockstep::ckpt {
namespace {

using enum Operand;

constexpr std::array kOpcodes{
    OpcodeInfo{Op::kMark, "MARK"},
    OpcodeInfo{Op::kEmptyTuple, "EMPTY_TUPLE", kNone, 1},
    OpcodeInfo{Op::kStop, "STOP"},
    OpcodeInfo{Op::kPop, "POP"},
    OpcodeInfo{Op::kPopMark, "POP_MARK", kNone, 1},
    OpcodeInfo{Op::kDup, "DUP"},
    OpcodeInfo{Op::kBinBytes, "BINBYTES", kBytes4, 3},
    OpcodeInfo{Op::kShortBinBytes, "SHORT_BINBYTES", kBytes1, 3},
    OpcodeInfo{Op::kFloat, "FLOAT", kLine},
    OpcodeInfo{Op::kBinFloat, "BINFLOAT", kF8, 1},
    OpcodeInfo{Op::kInt, "INT", kLine},
    OpcodeInfo{Op::kBinInt, "BININT", kI4, 1},
    OpcodeInfo{Op::kBinInt1, "BININT1", kU1, 1},
    OpcodeInfo{Op::kLong, "LONG", kLine},
    OpcodeInfo{Op::kBinInt2, "BININT2", kU2, 1},
    OpcodeInfo{Op::kNone, "NONE"},
    OpcodeInfo{Op::kPersId, "PERSID", kLine},
    OpcodeInfo{Op::kBinPersId, "BINPERSID", kNone, 1},
    OpcodeInfo{Op::kReduce, "REDUCE"},
    OpcodeInfo{Op::kString, "STRING", kLine},
    OpcodeInfo{Op::kBinString, "BINSTRING", kSignedBytes4, 1},
    OpcodeInfo{Op::kShortBinString, "SHORT_BINSTRING", kBytes1, 1},
    OpcodeInfo{Op::kUnicode, "UNICODE", kLine},
    OpcodeInfo{Op::kBinUnicode, "BINUNICODE", kBytes4, 1},
    OpcodeInfo{Op::kEmptyList, "EMPTY_LIST", kNone, 1},
    OpcodeInfo{Op::kAppend, "APPEND"},
    OpcodeInfo{Op::kBuild, "BUILD"},
    OpcodeInfo{Op::kGlobal, "GLOBAL", kTwoLines},
    OpcodeInfo{Op::kDict, "DICT"},
    OpcodeInfo{Op::kAppends, "APPENDS", kNone, 1},
    OpcodeInfo{Op::kGet, "GET", kLine},
    OpcodeInfo{Op::kBinGet, "BINGET", kU1, 1},
    OpcodeInfo{Op::kInst, "INST", kTwoLines},
    OpcodeInfo{Op::kLongBinGet, "LONG_BINGET", kU4, 1},
    OpcodeInfo{Op::kList, "LIST"},
    OpcodeInfo{Op::kObj, "OBJ", kNone, 1},
    OpcodeInfo{Op::kPut, "PUT", kLine},
    OpcodeInfo{Op::kBinPut, "BINPUT", kU1, 1},
    OpcodeInfo{Op::kLongBinPut, "LONG_BINPUT", kU4, 1},
    OpcodeInfo{Op::kSetItem, "SETITEM"},
    OpcodeInfo{Op::kTuple, "TUPLE"},
    OpcodeInfo{Op::kSetItems, "SETITEMS", kNone, 1},
    OpcodeInfo{Op::kEmptyDict, "EMPTY_DICT", kNone, 1},
    OpcodeInfo{Op::kProto, "PROTO", kU1, 2},
    OpcodeInfo{Op::kNewObj, "NEWOBJ", kNone, 2},
    OpcodeInfo{Op::kExt1, "EXT1", kU1, 2},
    OpcodeInfo{Op::kExt2, "EXT2", kU2, 2},
    OpcodeInfo{Op::kExt4, "EXT4", kI4, 2},
    OpcodeInfo{Op::kTuple1, "TUPLE1", kNone, 2},
    OpcodeInfo{Op::kTuple2, "TUPLE2", kNone, 2},
    OpcodeInfo{Op::kTuple3, "TUPLE3", kNone, 2},
    OpcodeInfo{Op::kNewTrue, "NEWTRUE", kNone, 2},
    OpcodeInfo{Op::kNewFalse, "NEWFALSE", kNone, 2},
    OpcodeInfo{Op::kLong1, "LONG1", kBytes1, 2},
    OpcodeInfo{Op::kLong4, "LONG4", kSignedBytes4, 2},
    OpcodeInfo{Op::kShortBinUnicode, "SHORT_BINUNICODE", kBytes1, 4},
    OpcodeInfo{Op::kBinUnicode8, "BINUNICODE8", kBytes8, 4},
    OpcodeInfo{Op::kBinBytes8, "BINBYTES8", kBytes8, 4},
    OpcodeInfo{Op::kEmptySet, "EMPTY_SET", kNone, 4},
    OpcodeInfo{Op::kAddItems, "ADDITEMS", kNone, 4},
    OpcodeInfo{Op::kFrozenSet, "FROZENSET", kNone, 4},
    OpcodeInfo{Op::kNewObjEx, "NEWOBJ_EX", kNone, 4},
    OpcodeInfo{Op::kStackGlobal, "STACK_GLOBAL", kNone, 4},
    OpcodeInfo{Op::kMemoize, "MEMOIZE", kNone, 4},
    OpcodeInfo{Op::kFrame, "FRAME", kU8, 4},
    OpcodeInfo{Op::kByteArray8, "BYTEARRAY8", kBytes8, 5},
    OpcodeInfo{Op::kNextBuffer, "NEXT_BUFFER", kNone, 5},
    OpcodeInfo{Op::kReadonlyBuffer, "READONLY_BUFFER", kNone, 5},
};
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
