// SPDX-License-Identifier: BSD-3-Clause
//
// Files with a tensor in every place where a value can hold another: arguments,
// state, keys, attributes, sets ... Our writers write no foreign class, so the
// pickles are made opcode by opcode.
//   for (const Slot& slot : kSlots) { std::string file = slot_file(slot); }
#pragma once

#include <array>
#include <functional>
#include <string>
#include <string_view>

#include "tests/ckpt/bad_inputs/builders.h"

namespace lockstep::ckpt::slots {

/// Leaves a value on the stack.
using Put = std::function<void(Pickle&)>;

/// One place.
struct Slot {
  std::string_view name = {};
  /// Leaves a value on the stack that has what `inner` leaves in the place.
  void (*put)(Pickle& pickle, const Put& inner) = nullptr;
};

/// The tensor that is looked for: storage '1' of 16 bytes.
inline void put_hidden(Pickle& pickle) {
  bad_inputs::put_tensor(pickle, {.key = "1"});
}

inline void put_plain(Pickle& pickle) {
  bad_inputs::put_tensor(pickle, {.key = "0"});
}

/// `rl.Step`, a class that nobody knows.
inline Pickle& put_class(Pickle& pickle) {
  return pickle.global("rl", "Step");
}

/// An OrderedDict with what `fill` leaves as its attributes.
inline void put_attributes(Pickle& pickle, const Put& fill) {
  pickle.global("collections", "OrderedDict").op(')').op('R').op('}');
  fill(pickle);
  pickle.op('s').op('b');
}

/// A module whose state has the entry that `fill` leaves (a key, a value).
inline void put_module(Pickle& pickle, const Put& fill) {
  pickle.global("net", "Net").op(')').op(0x81).op('}');
  for (const char* part : {"_parameters", "_buffers", "_modules"}) {
    pickle.text(part).op('}').op('s');
  }
  fill(pickle);
  pickle.op('s').op('b');
}

/// The class, the arguments and the beginning of the state {"ema": inner},
/// which is left open.
inline void put_plain_with(Pickle& pickle, const Put& inner) {
  pickle.global("torch", "Tensor").mark();
  pickle.storage("FloatStorage", "0", 4).int8(0);
  bad_inputs::put_ints(pickle, {2, 2});
  bad_inputs::put_ints(pickle, {2, 1});
  pickle.op(0x89).hooks().op('t').op('}').text("ema");
  inner(pickle);
}

/// A tensor with attributes: `_rebuild_from_type_v2(f, Tensor, args, state)`.
inline void put_typed(Pickle& pickle, const Put& inner) {
  pickle.global("torch._tensor", "_rebuild_from_type_v2").mark();
  pickle.global("torch._utils", "_rebuild_tensor_v2");
  put_plain_with(pickle, inner);
  pickle.op('s').op('t').op('R');
}

/// A tensor whose attributes are set twice: a `_rebuild_from_type_v2` of a
/// `_rebuild_from_type_v2`.
inline void put_typed_twice(Pickle& pickle, const Put& inner) {
  pickle.global("torch._tensor", "_rebuild_from_type_v2").mark();
  pickle.global("torch._tensor", "_rebuild_from_type_v2");
  pickle.global("torch", "Tensor").mark();
  pickle.global("torch._utils", "_rebuild_tensor_v2");
  put_plain_with(pickle, inner);
  pickle.op('s').op('t').op('}').text("step").int8(1).op('s').op('t').op('R');
}

/// Hooks with what `inner` leaves.
inline void put_hooks(Pickle& pickle, const Put& inner) {
  pickle.hooks().int8(1);
  inner(pickle);
  pickle.op('s');
}

/// `{'w': tensor, 'x': ...}` of the slots' parts.
inline constexpr std::array kSlots{
    Slot{
        "element of a list",
        [](Pickle& p, const Put& inner) {
          p.op(']');
          inner(p);
          p.op('a');
        }},
    Slot{
        "element of a tuple",
        [](Pickle& p, const Put& inner) {
          inner(p);
          p.tuple(1);
        }},
    Slot{
        "value of a dict",
        [](Pickle& p, const Put& inner) {
          p.op('}').text("k");
          inner(p);
          p.op('s');
        }},
    Slot{
        "key of a dict",
        [](Pickle& p, const Put& inner) {
          p.op('}');
          inner(p);
          p.int8(1).op('s');
        }},
    Slot{
        "part of a key",
        [](Pickle& p, const Put& inner) {
          p.op('}').text("k");
          inner(p);
          p.tuple(2).int8(1).op('s');
        }},
    Slot{
        "value of an OrderedDict",
        [](Pickle& p, const Put& inner) {
          p.hooks().text("k");
          inner(p);
          p.op('s');
        }},
    Slot{
        "attribute of an OrderedDict",
        [](Pickle& p, const Put& inner) {
          put_attributes(p, [&inner](Pickle& q) {
            q.text("ema");
            inner(q);
          });
        }},
    Slot{
        "name of an attribute",
        [](Pickle& p, const Put& inner) {
          put_attributes(p, [&inner](Pickle& q) {
            inner(q);
            q.int8(1);
          });
        }},
    Slot{
        "value of a Counter",
        [](Pickle& p, const Put& inner) {
          p.global("collections", "Counter").op('}').text("k");
          inner(p);
          p.op('s').tuple(1).op('R');
        }},
    Slot{
        "element of a set",
        [](Pickle& p, const Put& inner) {
          p.global("builtins", "set").op(']');
          inner(p);
          p.op('a').tuple(1).op('R');
        }},
    Slot{
        "element of a frozenset",
        [](Pickle& p, const Put& inner) {
          p.mark();
          inner(p);
          p.op(0x91);
        }},
    Slot{
        "argument of a call",
        [](Pickle& p, const Put& inner) {
          put_class(p);
          inner(p);
          p.tuple(1).op('R');
        }},
    Slot{
        "argument of __new__",
        [](Pickle& p, const Put& inner) {
          put_class(p);
          inner(p);
          p.tuple(1).op(0x81);
        }},
    Slot{
        "keyword argument of __new__",
        [](Pickle& p, const Put& inner) {
          put_class(p).op(')').op('}').text("k");
          inner(p);
          p.op('s').op(0x92);
        }},
    Slot{
        "argument of the result of a call",
        [](Pickle& p, const Put& inner) {
          put_class(p).op(')').op('R');
          inner(p);
          p.tuple(1).op('R');
        }},
    Slot{
        "state of an object",
        [](Pickle& p, const Put& inner) {
          put_class(p).op(')').op(0x81).op('}').text("k");
          inner(p);
          p.op('s').op('b');
        }},
    Slot{
        "state of an object before more state",
        [](Pickle& p, const Put& inner) {
          put_class(p).op(')').op(0x81).op('}').text("k");
          inner(p);
          p.op('s').op('b').op('}').text("j").int8(1).op('s').op('b');
        }},
    Slot{
        "slots of an object",
        [](Pickle& p, const Put& inner) {
          put_class(p).op(')').op(0x81).op('N').op('}').text("k");
          inner(p);
          p.op('s').tuple(2).op('b');
        }},
    Slot{
        "item of a subclass of dict",
        [](Pickle& p, const Put& inner) {
          put_class(p).op(')').op('R').text("k");
          inner(p);
          p.op('s');
        }},
    Slot{
        "key of a subclass of dict",
        [](Pickle& p, const Put& inner) {
          put_class(p).op(')').op('R');
          inner(p);
          p.int8(1).op('s');
        }},
    Slot{
        "element of a subclass of list",
        [](Pickle& p, const Put& inner) {
          put_class(p).op(')').op('R');
          inner(p);
          p.op('a');
        }},
    Slot{
        "factory of a defaultdict",
        [](Pickle& p, const Put& inner) {
          p.global("collections", "defaultdict");
          p.global("functools", "partial").global("torch", "clone");
          p.tuple(1).op('R').mark().global("torch", "clone");
          inner(p);
          p.tuple(1).op('}').op('N').op('t').op('b');
          p.tuple(1).op('R');
        }},
    Slot{"attribute of a tensor", put_typed},
    Slot{
        "hook of a tensor",
        [](Pickle& p, const Put& inner) {
          p.global("torch._utils", "_rebuild_tensor_v2").mark();
          p.storage("FloatStorage", "0", 4).int8(0);
          bad_inputs::put_ints(p, {2, 2});
          bad_inputs::put_ints(p, {2, 1});
          p.op(0x89);
          put_hooks(p, inner);
          p.op('t').op('R');
        }},
    Slot{"attribute of a tensor that gets more", put_typed_twice},
    Slot{
        "hook of a parameter with state",
        [](Pickle& p, const Put& inner) {
          p.global("torch.nn.parameter", "Parameter");
          put_plain(p);
          p.tuple(1).op('R').op(0x88).op(0x89);
          put_hooks(p, inner);
          p.tuple(3).op('b');
        }},
    Slot{
        "hook of a parameter of torch 0.1",
        [](Pickle& p, const Put& inner) {
          p.global("torch.nn.parameter", "Parameter").op(')').op('R').mark();
          put_plain(p);
          p.op('N');
          put_hooks(p, inner);
          p.op(0x88).op(0x89).op('t').op('b');
        }},
    Slot{
        "array of objects",
        [](Pickle& p, const Put& inner) {
          p.global("numpy.core.multiarray", "_reconstruct");
          p.global("numpy", "ndarray").int8(0).tuple(1).text("b").tuple(3);
          p.op('R').mark().int8(1).int8(1).tuple(1);
          p.global("numpy", "dtype").text("O8").op(0x89).op(0x88).tuple(3);
          p.op('R').op(0x89).op(']');
          inner(p);
          p.op('a').op('t').op('b');
        }},
    Slot{
        "attribute of a module",
        [](Pickle& p, const Put& inner) {
          put_module(p, [&inner](Pickle& q) {
            q.text("ema");
            inner(q);
          });
        }},
    Slot{
        "buffer of a module that is not saved",
        [](Pickle& p, const Put& inner) {
          put_module(p, [&inner](Pickle& q) {
            q.text("_non_persistent_buffers_set");
            q.global("builtins", "set").op(']').text("b").op('a');
            q.tuple(1).op('R').op('s').text("_buffers").op('}').text("b");
            inner(q);
            q.op('s');
          });
        }},
    Slot{
        "argument of a child that rebuilds itself",
        [](Pickle& p, const Put& inner) {
          put_module(p, [&inner](Pickle& q) {
            q.text("_modules").op('}').text("child");
            put_class(q);
            inner(q);
            q.tuple(1).op('R').op('s');
          });
        }},
};

/// Below the root dict: "w" is a plain tensor, "x" the value of the slot.
inline std::string slot_pickle(const Put& x, std::string_view front = "") {
  Pickle pickle(4);
  pickle.op('}').text(std::string(front) + "w");
  put_plain(pickle);
  pickle.op('s').text(std::string(front) + "x");
  x(pickle);
  pickle.op('s').stop();
  return pickle.bytes();
}

inline constexpr std::string_view kHiddenBytes = "hidden tensor 16";

/// What a file of a slot is to be.
struct SlotFile {
  /// In front of the root's keys.
  std::string_view front = "";
  /// Bytes of the tensor.
  std::string_view bytes = kHiddenBytes;
  bool is_damaged = false;
};

inline std::string slot_file(const Put& x, const SlotFile& file = {}) {
  std::string hidden(file.bytes);
  EntryLies lies;
  if (file.is_damaged) {
    lies.crc = lies.local_crc = 1;
  }
  ZipBytes zip;
  zip.add("a/data.pkl", slot_pickle(x, file.front));
  zip.add("a/data/0", "0123456789abcdef");
  zip.add("a/data/1", hidden, lies);
  zip.add("a/version", "3\n");
  return zip.finish();
}

inline Put in_slot(const Slot& slot, const Put& inner = put_hidden) {
  return [&slot, inner](Pickle& pickle) { slot.put(pickle, inner); };
}

} // namespace lockstep::ckpt::slots
