// SPDX-License-Identifier: BSD-3-Clause
//
// Rows 43 to 56: streams of opcodes that lie about lengths, types and depth.
#include "tests/ckpt/bad_inputs/bad_input.h"
#include "tests/ckpt/bad_inputs/builders.h"

namespace lockstep::ckpt::bad_inputs {
namespace {

struct StreamExpectation {
  int row = 0;
  std::string name = {};
  std::string detail = {};
  /// Name of the opcode in the message.
  std::string opcode = {};
  ErrorCode code = ErrorCode::kCorrupt;
};

BadInput stream(const StreamExpectation& expected, const Pickle& pickle) {
  return {
      .row = expected.row,
      .name = expected.name,
      .bytes = checkpoint(pickle),
      .detail = expected.detail,
      .code = expected.code,
      .says = {expected.opcode, "record a/data.pkl", "offset 0x"}};
}

BadInput reads(int row, std::string name, const Pickle& p, std::string says) {
  return {
      .row = row,
      .name = std::move(name),
      .bytes = checkpoint(p),
      .outcome = Outcome::kRead,
      .says = {std::move(says)}};
}

std::vector<BadInput> stack() {
  Pickle tensor;
  put_tensor(tensor).text("k").op('N').op('s').stop();
  return {
      {.row = 43,
       .name = "opcode_0",
       .bytes = checkpoint(Pickle().op('N').op(0).stop()),
       .detail = "E_OPCODE",
       .code = ErrorCode::kUnsupported,
       .says = {"unknown opcode 0x00", "Hint: "},
       .offset = 3},
      stream(
          {44, "reduce_nothing", "E_STACK", "REDUCE"},
          Pickle().op('R').stop()),
      stream({44, "no_mark", "E_STACK", "TUPLE"}, Pickle().op('t').stop()),
      stream({44, "stop_with_mark", "E_STACK", "STOP"}, Pickle().mark().stop()),
      stream(
          {45, "odd_setitems", "E_STACK", "SETITEMS"},
          Pickle().op('}').mark().int4(1).op('u').stop()),
      stream({46, "setitem_on_tensor", "E_PICKLE_TYPE", "SETITEM"}, tensor),
      stream(
          {47, "get_of_unset", "E_MEMO", "LONG_BINGET"},
          Pickle()
              .op('N')
              .op('r')
              .number(0x0FFFFFFF, 4)
              .op('j')
              .number(0x0FFFFFFE, 4)
              .stop()),
      {.row = 47,
       .name = "put_far_away",
       .bytes =
           checkpoint(Pickle().op('N').op('r').number(0x0FFFFFFF, 4).stop()),
       .outcome = Outcome::kRead},
  };
}

// Containers inside containers; `open` starts the innermost.
Pickle nested(int levels) {
  Pickle pickle;
  pickle.op('N');
  for (int i = 0; i < levels; ++i) {
    pickle.op(0x85);
  }
  return pickle.stop();
}

// l0 = []; l1 = [l0, l0]; ... : 2^40 paths over 40 nodes.
Pickle memo_bomb() {
  Pickle pickle;
  pickle.op(']').put(0);
  for (std::uint64_t i = 1; i <= 40; ++i) {
    pickle.op(']').mark().get(i - 1).get(i - 1).op('e').put(i);
  }
  return pickle.stop();
}

std::vector<BadInput> lengths() {
  const auto integer = [](std::size_t bytes) {
    return Pickle()
        .op(0x8B)
        .number(bytes, 4)
        .raw(std::string(bytes, 'x'))
        .stop();
  };
  const ErrorCode unsafe = ErrorCode::kUnsafe;
  return {
      stream(
          {48, "text_of_4_gb", "E_TRUNCATED", "BINUNICODE"},
          Pickle().op('X').number(0xFFFFFFFF, 4).stop()),
      stream(
          {48, "text_of_2_to_63", "E_TRUNCATED", "BINUNICODE8"},
          Pickle(4).op(0x8D).number(1ULL << 63, 8).stop()),
      {.row = 49,
       .name = "integer_of_1_kb",
       .bytes = checkpoint(integer(1024)),
       .outcome = Outcome::kRead},
      stream(
          {49, "integer_of_2_kb", "E_LIMIT", "LONG4", unsafe},
          integer(2048)),
      stream(
          {49, "integer_of_2_gb", "E_TRUNCATED", "LONG4"},
          Pickle().op(0x8B).number(0x7FFFFFFF, 4).stop()),
      stream(
          {49, "integer_of_negative_size", "E_TRUNCATED", "LONG4"},
          Pickle().op(0x8B).number(0xFFFFFFFF, 4).stop()),
      stream(
          {50, "tuples_2_million", "E_DEPTH", "TUPLE1", unsafe},
          nested(2'000'000)),
      {.row = 51,
       .name = "memo_bomb",
       .bytes = checkpoint(memo_bomb()),
       .outcome = Outcome::kExpands,
       .detail = "E_LIMIT",
       .code = unsafe},
  };
}

std::vector<BadInput> cycles() {
  Pickle list;
  list.op(']').put(0).get(0).op('a').stop();
  Pickle dict;
  dict.op('}').put(0).text("self").get(0).op('s').stop();
  Pickle module;
  module.global("m", "Net").op(')').op(0x81).put(0).op('}');
  module.text("_modules")
      .op('}')
      .text("me")
      .get(0)
      .op('s')
      .op('s')
      .op('b')
      .stop();
  return {
      reads(52, "list_in_itself", list, "0 tensors"),
      reads(52, "dict_in_itself", dict, "<ref"),
      {.row = 52,
       .name = "module_in_itself",
       .bytes = checkpoint(module),
       .outcome = Outcome::kOpaque,
       .detail = "E_UNSAFE_GLOBAL",
       .code = ErrorCode::kUnsafe,
       .says = {"m.Net"}},
  };
}

std::vector<BadInput> framing() {
  const ErrorCode unsupported = ErrorCode::kUnsupported;
  return {
      stream(
          {54, "frame_past_end", "E_FRAME", "FRAME"},
          Pickle(4).op(0x95).number(100, 8).op('N').stop()),
      stream(
          {54, "frame_cuts_opcode", "E_FRAME", "BININT"},
          Pickle(4).op(0x95).number(3, 8).int4(1).stop()),
      stream(
          {55, "protocol_6", "E_PROTO", "PROTO", unsupported},
          Pickle(6).op('N').stop()),
      stream(
          {55, "protocol_255", "E_PROTO", "PROTO", unsupported},
          Pickle(255).op('N').stop()),
      stream(
          {55, "protocol_twice", "E_PROTO", "PROTO"},
          Pickle().op(0x80).number(2, 1).op('N').stop()),
      stream(
          {55, "no_protocol_2", "E_PROTO", "NEWTRUE"},
          Pickle(0).op(0x88).stop()),
      {.row = 55,
       .name = "no_protocol_0",
       .bytes = checkpoint(Pickle(0).op('N').stop()),
       .outcome = Outcome::kRead},
      reads(
          56,
          "invalid_utf8",
          Pickle().op('}').text("k\xff").text("v\xc3(").op('s').stop(),
          "\\xff"),
      reads(
          56,
          "surrogates",
          Pickle().op('}').text("\xed\xa0\x80").op('N').op('s').stop(),
          ""),
      reads(
          56,
          "terminal_control",
          Pickle().op('}').text("\x1b[31m\x07").op('N').op('s').stop(),
          "\\x1b[31m"),
  };
}

} // namespace

std::vector<BadInput> opcode_rows() {
  std::vector<BadInput> rows;
  for (auto&& more : {stack(), lengths(), cycles(), framing()}) {
    rows.insert(rows.end(), more.begin(), more.end());
  }
  return rows;
}

} // namespace lockstep::ckpt::bad_inputs
