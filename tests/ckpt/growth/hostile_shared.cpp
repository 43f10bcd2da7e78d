// SPDX-License-Identifier: BSD-3-Clause
#include "tests/ckpt/bad_inputs/builders.h"
#include "tests/ckpt/growth/hostile_files.h"

namespace lockstep::ckpt::growth {
namespace {

using bad_inputs::checkpoint;
using bad_inputs::put_tensor;

// A value on the stack goes into the memo.
Pickle& keep(Pickle& pickle, std::uint64_t place) {
  return pickle.put(place).op('0');
}

std::string ones(std::size_t n) {
  return repeated(n / 4, [](std::size_t) { return "K\x01"; });
}

// Calls of entry 0 with entry 1, few enough for the budget. The list in entry
// 2, a part of that, is filled behind them: no call has counted its elements.
std::string calls_of_a_list(std::size_t n, Pickle& pickle) {
  pickle.op(']').mark().raw(
      repeated(n / 200, [](std::size_t) { return std::string("h\0h\1R", 5); }));
  pickle.op('e').get(2).mark().raw(ones(n)).op('e').op('0');
  return checkpoint(pickle.stop());
}
std::string sparse_sizes(std::size_t n) {
  Pickle pickle;
  keep(pickle.global("torch._utils", "_rebuild_sparse_tensor"), 0);
  keep(pickle.op(']'), 2);
  pickle.global("torch.serialization", "_get_layout");
  pickle.text("torch.sparse_coo").tuple(1).op('R');
  pickle.mark().raw("NN").get(2).op('t');
  keep(pickle.tuple(2), 1);
  return calls_of_a_list(n, pickle);
}
std::string meta_strides(std::size_t n) {
  Pickle pickle;
  keep(pickle.global("torch._utils", "_rebuild_meta_tensor_no_storage"), 0);
  keep(pickle.op(']'), 2);
  pickle.mark().global("torch", "float32").ints({1}).get(2).op(0x89).op('t');
  keep(pickle, 1);
  return calls_of_a_list(n, pickle);
}

// Objects of `module`.`name`, few enough, that all have the state in entry 1.
std::string objects_of_a_state(
    std::size_t n,
    Pickle& pickle,
    const char* module,
    const char* name) {
  keep(pickle.global(module, name), 2);
  pickle.op(']').mark().raw(repeated(n / 60, [](std::size_t) {
    return std::string("h\2)\x81h\1b", 7);
  }));
  return checkpoint(pickle.op('e').stop());
}
// None of them is a tensor.
Pickle& put_state(Pickle& pickle, std::size_t n) {
  pickle.op('}').mark().raw(repeated(n / 24, [](std::size_t i) {
    return Pickle(0).text(std::to_string(i)).int4(1).bytes();
  }));
  return keep(pickle.op('u'), 1);
}
std::string objects(std::size_t n) {
  Pickle pickle;
  return objects_of_a_state(n, put_state(pickle, n), "m", "C");
}
std::string namespaces(std::size_t n) {
  Pickle pickle;
  return objects_of_a_state(n, put_state(pickle, n), "argparse", "Namespace");
}

// A program of LibTorch: `entries` of its root, and a number.
std::string script(Pickle& pickle, const std::string& entries) {
  pickle.global("__torch__", "Module").raw(")\x81}").mark().raw(entries);
  pickle.text("step").raw("K\x01").op('u').op('b').stop();
  return checkpoint(
      pickle.bytes(),
      {.more = {
           {"a/code/__torch__.py", ""},
           {"a/constants.pkl", "\x80\x02)."}}});
}
std::string script_dicts(std::size_t n) {
  Pickle pickle;
  keep(put_tensor(pickle), 0);
  pickle.hooks().mark().raw(repeated(n / 24, [](std::size_t i) {
    return Pickle(0).text(std::to_string(i)).get(0).bytes();
  }));
  keep(pickle.op('u'), 1);
  return script(pickle, repeated(n / 24, [](std::size_t i) {
                  return Pickle(0).text(std::to_string(i)).get(1).bytes();
                }));
}
std::string script_states(std::size_t n) {
  Pickle pickle;
  put_state(pickle, n);
  keep(pickle.global("__torch__", "Module"), 2);
  return script(pickle, repeated(n / 60, [](std::size_t i) {
                  return Pickle(0).text(std::to_string(i)).bytes() +
                         std::string("h\2)\x81h\1b", 7);
                }));
}

// Groups of an optimizer whose state has names.
std::string groups_of_a_list(std::size_t n) {
  Pickle pickle;
  pickle.op('}').mark().text("state").op('}').text("w").op('}').op('s');
  pickle.text("param_groups").op(']').mark().op('}').text("params").put(0);
  pickle.op(']').mark().raw(ones(n)).op('e').put(1).op('s');
  pickle.raw(
      repeated(n / 60, [](std::size_t) { return std::string("}h\0h\1s", 6); }));
  return checkpoint(pickle.op('e').op('u').stop());
}

} // namespace

std::vector<HostileFile> hostile_shared() {
  return {
      {"sparse sizes", sparse_sizes},
      {"meta strides", meta_strides},
      {"objects of a state", objects},
      {"namespaces of a state", namespaces},
      {"script dicts", script_dicts},
      {"script states", script_states},
      {"groups of a list", groups_of_a_list}};
}

} // namespace lockstep::ckpt::growth
