// SPDX-License-Identifier: BSD-3-Clause
//
// Rows 37 to 42 and 53: names and calls. Nothing is ever called.
#include "tests/ckpt/bad_inputs/bad_input.h"
#include "tests/ckpt/bad_inputs/builders.h"

namespace lockstep::ckpt::bad_inputs {
namespace {

// os.system('id')
Pickle& put_call(Pickle& pickle) {
  return pickle.global("os", "system").text("id").tuple(1).op('R');
}

BadInput opaque(int row, std::string name, const Pickle& p, std::string says) {
  return {
      .row = row,
      .name = std::move(name),
      .bytes = checkpoint(p),
      .outcome = Outcome::kOpaque,
      .detail = "E_UNSAFE_GLOBAL",
      .code = ErrorCode::kUnsafe,
      .says = {std::move(says)}};
}

BadInput refused(int row, std::string name, const Pickle& p, std::string det) {
  return {
      .row = row,
      .name = std::move(name),
      .bytes = checkpoint(p),
      .detail = std::move(det),
      .says = {"record a/data.pkl", "offset 0x"}};
}

BadInput refused_opcode(std::string name, const Pickle& pickle) {
  BadInput row = refused(42, std::move(name), pickle, "E_OPCODE");
  row.code = ErrorCode::kUnsupported;
  return row;
}

std::vector<BadInput> calls() {
  Pickle call;
  Pickle broken;
  Pickle cut;
  return {
      opaque(37, "os_system", put_call(call).stop(), "os.system"),
      {.row = 38,
       .name = "payload_then_unknown_opcode",
       .bytes = checkpoint(put_call(broken).op(0).stop()),
       .detail = "E_OPCODE",
       .code = ErrorCode::kUnsupported,
       .says = {"unknown opcode 0x00", "it names 'os.system'"},
       .offset = 22},
      {.row = 38,
       .name = "payload_then_end",
       .bytes = checkpoint(put_call(cut)),
       .detail = "E_PICKLE",
       .says = {"without STOP", "it names 'os.system'"},
       .offset = 22},
      {.row = 39,
       .name = "second_pickle",
       .bytes = checkpoint(
           tensor_pickle() + Pickle().global("os", "system").stop().bytes()),
       .outcome = Outcome::kOpaque,
       .detail = "E_UNSAFE_GLOBAL",
       .code = ErrorCode::kUnsafe,
       .says = {"os.system"}},
      {.row = 39,
       .name = "second_pickle_is_warned_of",
       .bytes = checkpoint(tensor_pickle() + Pickle().op('N').stop().bytes()),
       .outcome = Outcome::kWarned,
       .detail = "W_TRAILING_PICKLE",
       .says = {"4 bytes follow"}},
      {.row = 40,
       .name = "pickle_in_bytes",
       .bytes =
           checkpoint(Pickle(3).op('C').number(4, 1).raw("\x80\x03N.").stop()),
       .outcome = Outcome::kWarned,
       .detail = "W_NESTED_PICKLE",
       .says = {"hold a pickle"}},
      opaque(
          40,
          "nested_loader",
          Pickle().global("pickle", "loads").text("N.").tuple(1).op('R').stop(),
          "pickle.loads"),
  };
}

std::vector<BadInput> global_names() {
  return {
      refused(
          41,
          "stack_global_of_numbers",
          Pickle(4).int4(1).int4(2).op(0x93).stop(),
          "E_PICKLE_TYPE"),
      refused(41, "memo_miss", Pickle().get(5).stop(), "E_MEMO"),
      opaque(
          41,
          "dotted_name",
          Pickle(4)
              .text("collections")
              .text("OrderedDict.__init__.__globals__")
              .op(0x93)
              .op(')')
              .op('R')
              .stop(),
          "collections:OrderedDict.__init__.__globals__"),
      opaque(
          42,
          "inst",
          Pickle().mark().text("id").op('i').raw("os\nsystem\n").stop(),
          "os.system"),
      opaque(
          42,
          "obj",
          Pickle().mark().global("os", "system").text("id").op('o').stop(),
          "os.system"),
      opaque(
          42,
          "newobj_ex",
          Pickle(4)
              .global("os", "system")
              .text("id")
              .tuple(1)
              .op('}')
              .op(0x92)
              .stop(),
          "os.system"),
      refused_opcode("ext1", Pickle().op(0x82).number(1, 1).stop()),
      refused_opcode("ext2", Pickle().op(0x83).number(1, 2).stop()),
      refused_opcode("ext4", Pickle().op(0x84).number(1, 4).stop()),
      refused_opcode("next_buffer", Pickle(5).op(0x97).stop()),
      refused_opcode("readonly_buffer", Pickle(5).op('N').op(0x98).stop()),
      refused(42, "persid", Pickle(0).raw("P0\n").stop(), "E_TYPE"),
  };
}

// Calls whose results leave the stack before the end.
std::vector<BadInput> hidden() {
  Pickle pop;
  Pickle pop_mark;
  Pickle twice;
  Pickle loose;
  put_call(pop_mark.mark()).op('1').op('N').stop();
  return {
      opaque(53, "popped", put_call(pop).op('0').op('N').stop(), "os.system"),
      opaque(53, "popped_to_mark", pop_mark, "os.system"),
      opaque(
          53,
          "duplicated",
          put_call(twice).op('2').op('0').op('0').op('N').stop(),
          "os.system"),
      opaque(
          53,
          "named_and_popped",
          loose.global("os", "system").op('0').op('N').stop(),
          "os.system"),
  };
}

} // namespace

std::vector<BadInput> pickle_rows() {
  std::vector<BadInput> rows;
  for (auto&& more : {calls(), global_names(), hidden()}) {
    rows.insert(rows.end(), more.begin(), more.end());
  }
  return rows;
}

} // namespace lockstep::ckpt::bad_inputs
