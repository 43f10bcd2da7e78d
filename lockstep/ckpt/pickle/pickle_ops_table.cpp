// SPDX-License-Identifier: BSD-3-Clause
#include <array>
#include <utility>

#include "lockstep/ckpt/pickle/pickle_ops.h"

namespace lockstep::ckpt::internal {
namespace {

constexpr std::array<std::pair<Op, OpHandler>, 65> kHandlers{{
    {Op::kNone, &Machine::op_none},
    {Op::kNewTrue, &Machine::op_true},
    {Op::kNewFalse, &Machine::op_false},
    {Op::kBinInt, &Machine::op_int},
    {Op::kBinInt1, &Machine::op_int},
    {Op::kBinInt2, &Machine::op_int},
    {Op::kInt, &Machine::op_int_line},
    {Op::kLong1, &Machine::op_long},
    {Op::kLong4, &Machine::op_long},
    {Op::kLong, &Machine::op_long_line},
    {Op::kBinFloat, &Machine::op_float},
    {Op::kFloat, &Machine::op_float_line},
    {Op::kBinUnicode, &Machine::op_text},
    {Op::kShortBinUnicode, &Machine::op_text},
    {Op::kBinUnicode8, &Machine::op_text},
    {Op::kBinString, &Machine::op_text},
    {Op::kShortBinString, &Machine::op_text},
    {Op::kString, &Machine::op_string_line},
    {Op::kUnicode, &Machine::op_unicode_line},
    {Op::kBinBytes, &Machine::op_bytes},
    {Op::kShortBinBytes, &Machine::op_bytes},
    {Op::kBinBytes8, &Machine::op_bytes},
    {Op::kByteArray8, &Machine::op_bytearray},
    {Op::kMark, &Machine::op_mark},
    {Op::kPop, &Machine::op_pop},
    {Op::kPopMark, &Machine::op_pop_mark},
    {Op::kDup, &Machine::op_dup},
    {Op::kBinPut, &Machine::op_put},
    {Op::kLongBinPut, &Machine::op_put},
    {Op::kPut, &Machine::op_put_line},
    {Op::kBinGet, &Machine::op_get},
    {Op::kLongBinGet, &Machine::op_get},
    {Op::kGet, &Machine::op_get_line},
    {Op::kMemoize, &Machine::op_memoize},
    {Op::kEmptyList, &Machine::op_empty_list},
    {Op::kEmptyTuple, &Machine::op_empty_tuple},
    {Op::kEmptyDict, &Machine::op_empty_dict},
    {Op::kEmptySet, &Machine::op_empty_set},
    {Op::kList, &Machine::op_list},
    {Op::kTuple, &Machine::op_tuple},
    {Op::kTuple1, &Machine::op_tuple_n},
    {Op::kTuple2, &Machine::op_tuple_n},
    {Op::kTuple3, &Machine::op_tuple_n},
    {Op::kDict, &Machine::op_dict},
    {Op::kFrozenSet, &Machine::op_frozenset},
    {Op::kAppend, &Machine::op_append},
    {Op::kAppends, &Machine::op_appends},
    {Op::kSetItem, &Machine::op_setitem},
    {Op::kSetItems, &Machine::op_setitems},
    {Op::kAddItems, &Machine::op_additems},
    {Op::kGlobal, &Machine::op_global},
    {Op::kStackGlobal, &Machine::op_stack_global},
    {Op::kInst, &Machine::op_inst},
    {Op::kObj, &Machine::op_obj},
    {Op::kReduce, &Machine::op_reduce},
    {Op::kNewObj, &Machine::op_reduce}, // NEWOBJ: the same, nothing is run
    {Op::kNewObjEx, &Machine::op_newobj_ex},
    {Op::kBuild, &Machine::op_build},
    {Op::kPersId, &Machine::op_persid},
    {Op::kBinPersId, &Machine::op_binpersid},
    {Op::kExt1, &Machine::op_refused},
    {Op::kExt2, &Machine::op_refused},
    {Op::kExt4, &Machine::op_refused},
    {Op::kNextBuffer, &Machine::op_refused},
    {Op::kReadonlyBuffer, &Machine::op_refused},
}};

} // namespace

constexpr std::array<OpHandler, 256> kOpHandlers = [] {
  std::array<OpHandler, 256> handlers{};
  for (const auto& [op, handler] : kHandlers) {
    handlers.at(opcode_byte(op)) = handler;
  }
  return handlers;
}();

} // namespace lockstep::ckpt::internal
