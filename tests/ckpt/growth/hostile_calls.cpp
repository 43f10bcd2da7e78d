// SPDX-License-Identifier: BSD-3-Clause
#include "tests/ckpt/bad_inputs/builders.h"
#include "tests/ckpt/growth/hostile_files.h"

namespace lockstep::ckpt::growth {
namespace {

using bad_inputs::checkpoint;
using bad_inputs::put_ints;
using bad_inputs::put_tensor;

// Memo entries of what is used again, and what uses it.
constexpr int kUsed = 0;
constexpr int kUser = 1;

// Half of the bytes make `used`, the other half are calls of `user` with it.
std::string calls(std::size_t n, Pickle pickle, std::string_view call) {
  const std::size_t count = n / 2 / call.size();
  pickle.op(']').mark();
  pickle.raw(repeated(count, [call](std::size_t) { return call; }));
  return checkpoint(pickle.op('e').stop());
}

std::string_view with_one(std::string_view user, std::string_view used) {
  static std::string call;
  call = std::string(user) + std::string(used) + "\x85R";
  return call;
}

Pickle kept(const Pickle& pickle, int place) {
  return Pickle(pickle).put(static_cast<std::uint64_t>(place)).op('0');
}

std::string text(std::size_t n) {
  std::string made(n / 2, 'a');
  return made;
}

// `module.name(used)` again and again.
std::string called(
    std::size_t n,
    const Pickle& used,
    const char* module,
    const char* name) {
  const Pickle user = kept(kept(used, kUsed).global(module, name), kUser);
  return calls(n, user, with_one("h\x01", std::string_view("h\0", 2)));
}

Pickle numbers(std::size_t n, int begin, int end) {
  Pickle pickle;
  pickle.op(begin == 't' ? '(' : begin);
  if (begin != 't') {
    pickle.mark();
  }
  pickle.raw(repeated(n / 6, [](std::size_t i) {
    return std::string{'M', static_cast<char>(i), static_cast<char>(i >> 8)};
  }));
  return pickle.op(end);
}

Pickle pairs(std::size_t n, int last) {
  Pickle pickle;
  pickle.raw("K\x01K\x02\x86").put(9).op('0').op(']').mark();
  pickle.raw(repeated(n / 4, [](std::size_t) { return "h\x09"; }));
  return last == 0 ? pickle.op('e') : pickle.op(last).op('e');
}

Pickle dict(std::size_t n) {
  Pickle pickle;
  pickle.op('}').mark().raw(repeated(n / 10, [](std::size_t i) {
    return std::string{'M', static_cast<char>(i), static_cast<char>(i >> 8)} +
           "K\x01";
  }));
  return pickle.op('u');
}

std::string encoded_texts(std::size_t n) {
  Pickle used = kept(Pickle().text(text(n)), kUsed);
  used = kept(used.global("_codecs", "encode"), kUser);
  used = kept(used.text("latin1"), 2);
  return calls(n, used, std::string_view("h\x01h\0h\x02\x86R", 8));
}

std::string ordered_dicts(std::size_t n) {
  return called(n, pairs(n, 0), "collections", "OrderedDict");
}
// No dict after all: the last pair is a number.
std::string ordered_dicts_of_others(std::size_t n) {
  return called(n, pairs(n, 'N'), "collections", "OrderedDict");
}
std::string counters(std::size_t n) {
  return called(n, dict(n), "collections", "Counter");
}
std::string sets(std::size_t n) {
  return called(n, numbers(n, ']', 'e'), "__builtin__", "set");
}
std::string sizes(std::size_t n) {
  return called(n, numbers(n, 't', 't'), "torch", "Size");
}
std::string devices(std::size_t n) {
  return called(n, Pickle().text(text(n)), "torch", "device");
}
std::string bytearrays(std::size_t n) {
  return called(n, Pickle().text(text(n)), "__builtin__", "bytearray");
}

std::string attributes_of_ordered_dict(std::size_t n) {
  Pickle pickle = kept(dict(n), kUsed);
  pickle.hooks().raw(
      repeated(n / 6, [](std::size_t) { return std::string("h\0b", 3); }));
  return checkpoint(pickle.stop());
}

std::string names_of_texts(std::size_t n) {
  const Pickle used = kept(Pickle(4).text(text(n)), kUsed);
  return calls(n, used, std::string_view("h\0h\0\x93", 5));
}
std::string objects_of_long_names(std::size_t n) {
  const Pickle used = kept(Pickle().global(text(n), "C"), kUsed);
  return calls(n, used, std::string_view("h\0)R", 4));
}
std::string new_objects_of_long_names(std::size_t n) {
  const Pickle used = kept(Pickle(4).global(text(n), "C"), kUsed);
  return calls(n, used, std::string_view("h\0)}\x92", 5));
}

// A tensor whose class has the long name.
std::string tensors_of_long_classes(std::size_t n) {
  Pickle pickle = kept(Pickle().global(text(n), "C"), kUsed);
  pickle = kept(pickle.global("torch._utils", "_rebuild_from_type_v2"), kUser);
  pickle = kept(pickle.global("torch._utils", "_rebuild_tensor_v2"), 2);
  pickle.mark().storage("FloatStorage", "0", 4).int8(0);
  put_ints(pickle, {2});
  put_ints(pickle, {1}).op(0x89).hooks().op('t');
  pickle = kept(kept(pickle, 3).op('}'), 4);
  return calls(n, pickle, std::string_view("h\x01(h\x02h\0h\x03h\x04tR", 13));
}

// Each has 60 sizes and strides of its own.
std::string tensors_of_many_dimensions(std::size_t n) {
  Pickle pickle;
  pickle.mark().storage("FloatStorage", "0", 4).int8(0);
  const std::vector<std::int64_t> ones(60, 1);
  put_ints(pickle, ones);
  put_ints(pickle, ones).op(0x89).hooks().op('t');
  pickle = kept(
      kept(pickle, kUsed).global("torch._utils", "_rebuild_tensor_v2"),
      kUser);
  return calls(n, pickle, std::string_view("h\x01h\0R", 5));
}

Pickle storage_parts(std::size_t n) {
  Pickle pickle = kept(Pickle().text(text(n)), kUsed);
  pickle = kept(pickle.text("storage"), kUser);
  return kept(pickle.global("torch", "FloatStorage"), 2);
}

std::string storages_of_long_places(std::size_t n) {
  Pickle pickle = storage_parts(n);
  pickle.op(']').mark().raw(repeated(n / 32, [](std::size_t i) {
    const std::string key = std::to_string(i);
    return Pickle(0)
        .mark()
        .get(1)
        .get(2)
        .text(key)
        .get(0)
        .raw("K\x01tQ")
        .bytes();
  }));
  return checkpoint(pickle.op('e').stop());
}
std::string one_storage_of_a_long_place(std::size_t n) {
  Pickle pickle = storage_parts(n);
  pickle.mark().get(1).get(2).text("0").get(0).raw("K\x01t");
  return calls(n, kept(pickle, 3), "h\x03Q");
}

// A call whose arguments are looked at wherever it is referred to.
std::string shared_arguments(std::size_t n) {
  Pickle pickle;
  pickle.global("m", "f").mark().raw(
      repeated(n / 10, [](std::size_t) { return Pickle(0).int4(1).bytes(); }));
  pickle = kept(pickle.op('t').op('R'), kUsed);
  return calls(n, pickle, std::string_view("j\0\0\0\0", 5));
}

std::string scalars_of_numpy(std::size_t n) {
  Pickle pickle(3);
  pickle.global("numpy", "dtype").text("f8").raw("\x89\x88\x87R(K\x03");
  pickle.text("<").raw("NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xff");
  pickle.raw(std::string_view("K\0tb", 4));
  pickle = kept(pickle, kUsed);
  pickle = kept(
      pickle.raw("C\x08"
                 "12345678"),
      2);
  pickle = kept(pickle.global("numpy.core.multiarray", "scalar"), kUser);
  return calls(n, pickle, std::string_view("h\x01h\0h\x02\x86R", 8));
}

} // namespace

std::vector<HostileFile> hostile_calls() {
  return {
      {"texts encoded", encoded_texts},
      {"OrderedDict(pairs)", ordered_dicts},
      {"OrderedDict(no pairs)", ordered_dicts_of_others},
      {"Counter(dict)", counters},
      {"set(list)", sets},
      {"Size(tuple)", sizes},
      {"device(text)", devices},
      {"bytearray(text)", bytearrays},
      {"BUILD of OrderedDict", attributes_of_ordered_dict},
      {"STACK_GLOBAL of texts", names_of_texts},
      {"REDUCE of a long name", objects_of_long_names},
      {"NEWOBJ_EX of a long name", new_objects_of_long_names},
      {"long tensor class", tensors_of_long_classes},
      {"tensors of 60 dimensions", tensors_of_many_dimensions},
      {"storages at a long place", storages_of_long_places},
      {"one storage again", one_storage_of_a_long_place},
      {"shared arguments", shared_arguments},
      {"NumPy scalars", scalars_of_numpy}};
}

} // namespace lockstep::ckpt::growth
