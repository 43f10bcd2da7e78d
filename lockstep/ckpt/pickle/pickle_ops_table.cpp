// SPDX-License-Identifier: BSD-3-Clause
#include <array>
#include <utility>

#include "lockstep/ckpt/pickle/pickle_ops.h"

namespace lockstep::ckpt::internal {
namespace {

constexpr std::array<std::pair<std::uint8_t, OpHandler>, 65> kHandlers{{
    {'N', &Machine::op_none},
    {0x88, &Machine::op_true},
    {0x89, &Machine::op_false},
    {'J', &Machine::op_int},
    {'K', &Machine::op_int},
    {'M', &Machine::op_int},
    {'I', &Machine::op_int_line},
    {0x8A, &Machine::op_long},
    {0x8B, &Machine::op_long},
    {'L', &Machine::op_long_line},
    {'G', &Machine::op_float},
    {'F', &Machine::op_float_line},
    {'X', &Machine::op_text},
    {0x8C, &Machine::op_text},
    {0x8D, &Machine::op_text},
    {'T', &Machine::op_text},
    {'U', &Machine::op_text},
    {'S', &Machine::op_string_line},
    {'V', &Machine::op_unicode_line},
    {'B', &Machine::op_bytes},
    {'C', &Machine::op_bytes},
    {0x8E, &Machine::op_bytes},
    {0x96, &Machine::op_bytearray},
    {'(', &Machine::op_mark},
    {'0', &Machine::op_pop},
    {'1', &Machine::op_pop_mark},
    {'2', &Machine::op_dup},
    {'q', &Machine::op_put},
    {'r', &Machine::op_put},
    {'p', &Machine::op_put_line},
    {'h', &Machine::op_get},
    {'j', &Machine::op_get},
    {'g', &Machine::op_get_line},
    {0x94, &Machine::op_memoize},
    {']', &Machine::op_empty_list},
    {')', &Machine::op_empty_tuple},
    {'}', &Machine::op_empty_dict},
    {0x8F, &Machine::op_empty_set},
    {'l', &Machine::op_list},
    {'t', &Machine::op_tuple},
    {0x85, &Machine::op_tuple_n},
    {0x86, &Machine::op_tuple_n},
    {0x87, &Machine::op_tuple_n},
    {'d', &Machine::op_dict},
    {0x91, &Machine::op_frozenset},
    {'a', &Machine::op_append},
    {'e', &Machine::op_appends},
    {'s', &Machine::op_setitem},
    {'u', &Machine::op_setitems},
    {0x90, &Machine::op_additems},
    {'c', &Machine::op_global},
    {0x93, &Machine::op_stack_global},
    {'i', &Machine::op_inst},
    {'o', &Machine::op_obj},
    {'R', &Machine::op_reduce},
    {0x81, &Machine::op_reduce}, // NEWOBJ: the same, nothing is run
    {0x92, &Machine::op_newobj_ex},
    {'b', &Machine::op_build},
    {'P', &Machine::op_persid},
    {'Q', &Machine::op_binpersid},
    {0x82, &Machine::op_refused},
    {0x83, &Machine::op_refused},
    {0x84, &Machine::op_refused},
    {0x97, &Machine::op_refused},
    {0x98, &Machine::op_refused},
}};

} // namespace

constexpr std::array<OpHandler, 256> kOpHandlers = [] {
  std::array<OpHandler, 256> handlers{};
  for (const auto& [code, handler] : kHandlers) {
    handlers.at(code) = handler;
  }
  return handlers;
}();

} // namespace lockstep::ckpt::internal
