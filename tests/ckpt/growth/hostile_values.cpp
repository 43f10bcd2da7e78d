// SPDX-License-Identifier: BSD-3-Clause
#include "tests/ckpt/bad_inputs/builders.h"
#include "tests/ckpt/growth/hostile_files.h"

namespace lockstep::ckpt::growth {
namespace {

using bad_inputs::checkpoint;
using bad_inputs::put_tensor;

// A list of what `piece` makes again and again.
std::string list_of(std::size_t n, std::string_view piece) {
  Pickle pickle(4);
  pickle.op(']').mark().raw(
      repeated(n / piece.size(), [piece](std::size_t) { return piece; }));
  return checkpoint(pickle.op('e').stop());
}

std::string nones(std::size_t n) {
  return list_of(n, "N");
}
std::string empty_dicts(std::size_t n) {
  return list_of(n, "}");
}
std::string empty_tuples(std::size_t n) {
  return list_of(n, ")");
}
std::string doubled(std::size_t n) {
  return checkpoint(
      Pickle().mark().op('N').raw(std::string(n, '2')).op('l').stop());
}
std::string nested_pickles(std::size_t n) {
  return list_of(n, "C\x03\x80\x02.");
}
std::string frozen_sets(std::size_t n) {
  return list_of(n, "(\x91");
}
std::string items_one_by_one(std::size_t n) {
  return checkpoint(
      Pickle()
          .op('}')
          .raw(repeated(n / 5, [](std::size_t) { return "K\x01K\x02s"; }))
          .stop());
}
std::string names(std::size_t n) {
  const std::string all = repeated(n / 12, [](std::size_t i) {
    return Pickle(0).global("m", std::to_string(i)).op('0').bytes();
  });
  return checkpoint(Pickle().raw(all).op('N').stop());
}

// Floats, which are not told apart as texts and integers are.
std::string equal_keys(std::size_t n) {
  Pickle pickle;
  put_tensor(pickle).put(0).op('0').op('}').mark();
  pickle.raw(repeated(n / 11, [](std::size_t) {
    return Pickle(0).op('G').number(0, 8).get(0).bytes();
  }));
  return checkpoint(pickle.op('u').stop());
}

// A key that is a tuple of the same text again and again.
std::string tuple_keys(std::size_t n) {
  Pickle pickle;
  put_tensor(pickle).put(0).op('0');
  pickle.text(std::string(n / 2, 'a'))
      .put(1)
      .op('0')
      .op('}')
      .mark()
      .raw(repeated(n / 4, [](std::size_t) { return "h\x01"; }));
  return checkpoint(pickle.op('t').get(0).op('s').stop());
}

// All names begin with a long key.
Pickle& put_tensors(Pickle& pickle, std::size_t n) {
  pickle.op('}').mark().raw(repeated(n / 24, [](std::size_t i) {
    return Pickle(0).text(std::to_string(i)).get(0).bytes();
  }));
  return pickle.op('u');
}
std::string long_prefix(std::size_t n) {
  Pickle pickle;
  put_tensor(pickle).put(0).op('0');
  pickle.op('}').text(std::string(n / 2, 'a'));
  return checkpoint(put_tensors(pickle, n).op('s').stop());
}
Pickle& begin_module(Pickle& pickle, std::string_view member) {
  return pickle.global("m", "C").raw(")\x81}").text(member);
}
std::string long_module_prefix(std::size_t n) {
  Pickle pickle;
  put_tensor(pickle).put(0).op('0');
  begin_module(pickle, "_modules").op('}').text(std::string(n / 2, 'a'));
  begin_module(pickle, "_parameters");
  return checkpoint(put_tensors(pickle, n).raw("sb").raw("ssb").stop());
}

// A path of its own for each dot.
std::string dotted_key(std::size_t n) {
  Pickle pickle;
  pickle.op('}').text(repeated(n / 2, [](std::size_t) { return "a."; }));
  return checkpoint(put_tensor(pickle).op('s').stop());
}

// `levels` dicts or modules in each other, with keys of n bytes together.
std::string nested(std::size_t n, bool is_module) {
  constexpr std::size_t kLevels = 200;
  Pickle pickle;
  const std::string key(n / kLevels, 'a');
  for (std::size_t i = 0; i < kLevels; ++i) {
    if (is_module) {
      begin_module(pickle, "_modules");
    }
    pickle.op('}').text(key);
  }
  put_tensor(pickle);
  return checkpoint(
      pickle
          .raw(repeated(
              kLevels,
              [is_module](std::size_t) { return is_module ? "ssb" : "s"; }))
          .stop());
}
std::string nested_dicts(std::size_t n) {
  return nested(n, false);
}
std::string nested_modules(std::size_t n) {
  return nested(n, true);
}

// Each level holds the one below ten times.
std::string
laughs(std::size_t n, std::string_view before, std::string_view after) {
  Pickle pickle;
  put_tensor(pickle).put(0).op('0');
  const std::uint64_t levels = 8 + n / 10'000;
  for (std::uint64_t level = 0; level < levels; ++level) {
    pickle.raw(before);
    for (int i = 0; i < 10; ++i) {
      if (after == "u") {
        pickle.text(std::to_string(i));
      }
      pickle.get(level);
    }
    pickle.raw(after).put(level + 1).op('0');
  }
  return checkpoint(pickle.get(levels).stop());
}
std::string laughing_lists(std::size_t n) {
  return laughs(n, "](", "e");
}
std::string laughing_tuples(std::size_t n) {
  return laughs(n, "(", "t");
}
std::string laughing_dicts(std::size_t n) {
  return laughs(n, "}(", "u");
}
// The same as the key of a dict.
std::string laughing_key(std::size_t n) {
  Pickle pickle;
  pickle.text("a").put(0).op('0');
  std::uint64_t level = 0;
  for (; level < n / 4096; ++level) {
    pickle.mark().raw(repeated(10, [level](std::size_t) {
      return Pickle(0).get(level).bytes();
    }));
    pickle.op('t').put(level + 1).op('0');
  }
  pickle.op('}').get(level);
  return checkpoint(put_tensor(pickle).op('s').stop());
}

// An optimizer of Python with very many parameters, or one state for all.
Pickle sgd() {
  Pickle pickle;
  pickle.op('}').mark();
  for (const char* name : {"lr", "momentum", "dampening", "weight_decay"}) {
    pickle.text(name).op('G').number(0, 8);
  }
  return pickle.text("nesterov").op(0x89);
}
std::string parameters(std::size_t n) {
  const std::size_t count = n / 10;
  Pickle pickle;
  pickle.op('}').mark().text("state").op('}').mark();
  pickle.op('}')
      .mark()
      .text("momentum_buffer")
      .op('N')
      .raw(repeated(count, [](std::size_t i) {
        return Pickle(0).int4(static_cast<int>(i)).op('N').bytes();
      }));
  pickle.op('u').put(0).op('0');
  pickle.raw(repeated(count, [](std::size_t i) {
    return Pickle(0).int4(static_cast<int>(i)).get(0).bytes();
  }));
  pickle.op('u').text("param_groups").op(']').raw(sgd().bytes().substr(2));
  pickle.text("params").op(']').mark().raw(repeated(count, [](std::size_t i) {
    return Pickle(0).int4(static_cast<int>(i)).bytes();
  }));
  return checkpoint(pickle.op('e').op('u').op('a').op('u').stop());
}
// One group again and again, without parameters and with very many options.
std::string groups(std::size_t n) {
  Pickle pickle;
  pickle.op('}').mark().text("state").op('}').text("param_groups").op(']');
  pickle.mark().raw(sgd().bytes().substr(2)).text("params").op(']');
  pickle.raw(repeated(n / 20, [](std::size_t i) {
    return Pickle(0).text(std::to_string(i)).op('N').bytes();
  }));
  pickle.op('u').put(0).raw(
      repeated(n / 4, [](std::size_t) { return std::string("h\0", 2); }));
  return checkpoint(pickle.op('e').op('u').stop());
}

} // namespace

std::vector<HostileFile> hostile_values() {
  return {
      {"None", nones},
      {"empty dicts", empty_dicts},
      {"empty tuples", empty_tuples},
      {"DUP", doubled},
      {"pickles in bytes", nested_pickles},
      {"frozensets", frozen_sets},
      {"SETITEM", items_one_by_one},
      {"names", names},
      {"equal keys", equal_keys},
      {"key of a tuple", tuple_keys},
      {"long prefix", long_prefix},
      {"long module prefix", long_module_prefix},
      {"key of dots", dotted_key},
      {"nested dicts", nested_dicts},
      {"nested modules", nested_modules},
      {"lists of lists", laughing_lists},
      {"tuples of tuples", laughing_tuples},
      {"dicts of dicts", laughing_dicts},
      {"key of tuples", laughing_key},
      {"parameters", parameters},
      {"parameter groups", groups}};
}

} // namespace lockstep::ckpt::growth
