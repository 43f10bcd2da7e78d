// SPDX-License-Identifier: BSD-3-Clause
#include <gmock/gmock.h>

#include "lockstep/ckpt/core/storage_class.h"
#include "lockstep/ckpt/pickle/pickle.h"
#include "lockstep/ckpt/pickle/pickle_opcodes.h"
#include "tests/ckpt/pickle/pickle_fixture.h"

namespace lockstep::ckpt {
namespace {

using testing::ElementsAre;

TEST(PickleOpcodes, TableHoldsEveryOpcodeOnce) {
  EXPECT_EQ(opcode_table().size(), 68U);
  EXPECT_EQ(find_opcode('.')->name, "STOP");
  EXPECT_EQ(find_opcode(0x98)->name, "READONLY_BUFFER");
  EXPECT_EQ(find_opcode(0), nullptr);
  EXPECT_EQ(find_opcode(0x99), nullptr);
}

TEST(PickleMachine, ReadsPlainValues) {
  const auto result = read(Pickle()
                               .mark()
                               .op('N')
                               .op(0x88)
                               .int4(-5)
                               .op('K')
                               .number(200, 1)
                               .op('M')
                               .number(60000, 2)
                               .op('G')
                               .raw(std::string_view("\x3f\xf8\0\0\0\0\0\0", 8))
                               .text("abc")
                               .op('t')
                               .stop());
  ASSERT_TRUE(result) << to_string(result.error());
  const auto& items = result->root.as_tuple()->items;
  EXPECT_TRUE(items[0].is_none());
  EXPECT_TRUE(*items[1].as_bool());
  EXPECT_EQ(*items[2].as_int(), -5);
  EXPECT_EQ(*items[3].as_int(), 200);
  EXPECT_EQ(*items[4].as_int(), 60000);
  EXPECT_EQ(*items[5].as_float(), 1.5);
  EXPECT_EQ(*items[6].as_string(), "abc");
  EXPECT_EQ(result->protocol, 2);
}

TEST(PickleMachine, ReadsLongIntegersOfAnyLength) {
  const auto value = [](std::string_view bytes) {
    return read(Pickle().op(0x8A).number(bytes.size(), 1).raw(bytes).stop())
        ->root;
  };
  EXPECT_EQ(*value("").as_int(), 0);
  EXPECT_EQ(*value("\xff").as_int(), -1);
  EXPECT_EQ(*value(std::string_view("\xff\0", 2)).as_int(), 255);
  const std::string_view wide("\0\0\0\0\0\0\0\0\1", 9);
  EXPECT_EQ((*value(wide).as_big_int()).bytes, wide);
}

TEST(PickleMachine, ReadsProtocol0) {
  const auto result = read(
      Pickle(0).raw("(lp0\nI42\naI01\naL-300000000000000000000L\naF1e-05\na"
                    "S'it\\'s\\x41'\naV\\u00e9\na(dp1\nag1\na."));
  ASSERT_TRUE(result) << to_string(result.error());
  const auto& items = result->root.as_list()->items;
  EXPECT_EQ(*items[0].as_int(), 42);
  EXPECT_TRUE(*items[1].as_bool());
  EXPECT_EQ(items[2].as_big_int()->bytes.size(), 9U);
  EXPECT_EQ(*items[3].as_float(), 1e-05);
  EXPECT_EQ(*items[4].as_string(), "it'sA");
  EXPECT_EQ(*items[5].as_string(), "\xc3\xa9");
}

TEST(PickleMachine, ReadsProtocol5WithFramesAndMemoize) {
  const auto result = read(Pickle(5)
                               .op(0x95)
                               .number(12, 8)
                               .op(0x8C)
                               .number(2, 1)
                               .raw("ab")
                               .op(0x94)
                               .op('h')
                               .number(0, 1)
                               .op(0x86)
                               .op(0x94)
                               .op(')')
                               .op('0')
                               .stop());
  ASSERT_TRUE(result) << to_string(result.error());
  const auto& items = result->root.as_tuple()->items;
  EXPECT_EQ(items[0].as_string(), items[1].as_string()); // one string
}

// MEMOIZE takes the number of entries, wherever those are, and also if nobody
// reads them, so that they are not kept.
TEST(PickleMachine, MemoizeCountsEntriesFarAway) {
  const auto result = read(Pickle(4)
                               .text("a")
                               .op(0x94)
                               .text("b")
                               .op(0x94)
                               .op('r')
                               .number(9, 4)
                               .text("c")
                               .op(0x94) // the fourth entry: number 3
                               .get(3)
                               .tuple(3)
                               .stop());
  ASSERT_TRUE(result) << to_string(result.error());
  const auto& items = result->root.as_tuple()->items;
  EXPECT_EQ(*items[1].as_string(), "c");
  EXPECT_EQ(*items[2].as_string(), "c");
}

TEST(PickleMachine, SharedContainersStayShared) {
  const auto result = read(Pickle().op('}').put(0).get(0).tuple(2).stop());
  ASSERT_TRUE(result);
  const auto& items = result->root.as_tuple()->items;
  EXPECT_EQ(items[0].as_dict(), items[1].as_dict());
}

TEST(PickleMachine, CutsASelfReference) {
  const auto result = read(Pickle().op(']').put(0).get(0).op('a').stop());
  ASSERT_TRUE(result);
  const Object* inner = result->root.as_list()->items.at(0).as_object();
  ASSERT_NE(inner, nullptr);
  EXPECT_EQ(inner->global, kReferenceGlobal);
}

TEST(PickleMachine, KeepsTheLastOfEqualKeysAtTheFirstPlace) {
  const auto result = read(Pickle()
                               .op('}')
                               .mark()
                               .text("a")
                               .int4(1)
                               .text("b")
                               .int4(2)
                               .text("a")
                               .int4(3)
                               .op('u')
                               .stop());
  ASSERT_TRUE(result);
  const auto& items = result->root.as_dict()->items;
  ASSERT_EQ(items.size(), 2U);
  EXPECT_EQ(*items[0].first.as_string(), "a");
  EXPECT_EQ(*items[0].second.as_int(), 3);
}

// As Python's dict has it, True is 1 and '1' is neither.
TEST(PickleMachine, NumbersAndBoolsAreEqualKeys) {
  const auto result = read(Pickle()
                               .op('}')
                               .mark()
                               .int4(1)
                               .text("first")
                               .text("1")
                               .op('N')
                               .op(0x88)
                               .text("last")
                               .op('u')
                               .stop());
  ASSERT_TRUE(result);
  EXPECT_EQ(result->root.as_dict()->items.size(), 2U);
  EXPECT_EQ(*result->root.find(1)->as_string(), "last");
  EXPECT_TRUE(result->root.find("1")->is_none());
}

// Gives the same storage for every id.
class OneStorage final : public PersistentIdHandler {
 public:
  Result<Value> resolve(const Value& /*id*/) override {
    return Value(storage_);
  }
  [[nodiscard]] std::int64_t owners() const {
    return storage_.use_count();
  }

 private:
  std::shared_ptr<Storage> storage_ = std::make_shared<Storage>(
      Storage{.nbytes = 8, .class_name = "torch.FloatStorage"});
};

TEST(PickleMachine, StoragesThatNoTensorTakesBecomeObjects) {
  OneStorage storages;
  Pickle pickle;
  pickle.storage("FloatStorage", "0", 2).put(0).get(0).tuple(2).stop();
  Pickle root;
  root.storage("FloatStorage", "0", 2).stop();
  const auto pair = read_pickle(as_byte_span(pickle.bytes()), &storages);
  const auto alone = read_pickle(as_byte_span(root.bytes()), &storages);
  ASSERT_TRUE(pair) << to_string(pair.error());
  ASSERT_TRUE(alone) << to_string(alone.error());
  for (const Value& value :
       {pair->root.as_tuple()->items[0],
        pair->root.as_tuple()->items[1],
        alone->root}) {
    ASSERT_NE(value.as_object(), nullptr);
    EXPECT_EQ(value.as_object()->global, "torch.FloatStorage");
    EXPECT_EQ(
        value.as_object()->args->as_tuple()->items[0].as_tensor()->sizes,
        std::vector<std::int64_t>{2});
    EXPECT_EQ(storage_of(value)->nbytes, 8U);
  }
}

// Lists that hold themselves, where the tree does not reach them: below the
// value of STOP, popped, and as a value that a later one of its key replaces.
TEST(PickleMachine, CyclesOutsideTheTreeDie) {
  const auto cycle = [](Pickle pickle) {
    pickle.op(']').put(0).get(0).op('a');
    return pickle.storage("FloatStorage", "0", 2).op('a');
  };
  const Pickle below = cycle(Pickle()).op('N').stop();
  const Pickle popped = cycle(Pickle()).op('0').op('N').stop();
  const Pickle replaced =
      cycle(Pickle().op('}').mark().text("a")).text("a").op('N').op('u').stop();
  for (const Pickle& pickle : {below, popped, replaced}) {
    OneStorage storages;
    {
      const auto read = read_pickle(as_byte_span(pickle.bytes()), &storages);
      ASSERT_TRUE(read) << to_string(read.error());
    }
    EXPECT_EQ(storages.owners(), 1);
  }
}

TEST(PickleMachine, CountsTheLevelsOfAStorage) {
  OneStorage storages;
  Pickle pickle;
  pickle.storage("FloatStorage", "0", 2).tuple(1).stop();
  EXPECT_TRUE(
      read_pickle(as_byte_span(pickle.bytes()), &storages, {.max_depth = 4}));
  const auto deep =
      read_pickle(as_byte_span(pickle.bytes()), &storages, {.max_depth = 3});
  ASSERT_FALSE(deep);
  EXPECT_EQ(deep.error().detail, "E_DEPTH");
}

TEST(PickleMachine, UnknownCallsBecomeObjects) {
  const auto result = read(
      Pickle().global("os", "system").text("rm -rf /").tuple(1).op('R').stop());
  ASSERT_TRUE(result);
  const Object* object = result->root.as_object();
  EXPECT_EQ(object->global, "os.system");
  EXPECT_EQ(*object->args->as_tuple()->items[0].as_string(), "rm -rf /");
  ASSERT_EQ(result->globals.size(), 1U);
  EXPECT_FALSE(result->globals[0].is_safe);
  EXPECT_EQ(result->globals[0].offset, 2U);
}

TEST(PickleMachine, PoppedNamesAreStillRecorded) {
  const auto result = read(Pickle()
                               .global("posix", "system")
                               .op('2')
                               .op('0')
                               .op('0')
                               .mark()
                               .global("builtins", "eval")
                               .op('1')
                               .op('N')
                               .stop());
  ASSERT_TRUE(result);
  ASSERT_EQ(result->globals.size(), 2U);
  EXPECT_EQ(result->globals[0].name, "posix.system");
  EXPECT_EQ(result->globals[1].name, "builtins.eval");
}

TEST(PickleMachine, DottedNamesNeverMatchTheTable) {
  const auto result = read(Pickle(4)
                               .text("torch")
                               .text("_utils._rebuild_tensor_v2")
                               .op(0x93)
                               .stop());
  ASSERT_TRUE(result);
  EXPECT_FALSE(result->globals[0].is_safe);
  EXPECT_EQ(
      result->root.as_object()->global,
      "torch:_utils._rebuild_tensor_v2");
}

TEST(PickleMachine, InstObjAndNewobjExBecomeObjects) {
  EXPECT_EQ(
      read(Pickle().mark().int4(1).raw("im\nC\n").stop())
          ->root.as_object()
          ->global,
      "m.C");
  EXPECT_EQ(
      read(Pickle().mark().global("m", "C").int4(1).op('o').stop())
          ->root.as_object()
          ->global,
      "m.C");
  EXPECT_EQ(
      read(Pickle(4).global("m", "C").op(')').op('}').op(0x92).stop())
          ->root.as_object()
          ->global,
      "m.C");
}

TEST(PickleMachine, ObjectsTakeStateItemsAndElements) {
  const auto result = read(Pickle()
                               .global("m", "C")
                               .op(')')
                               .op(0x81)
                               .op('}')
                               .text("lr")
                               .int4(1)
                               .op('s')
                               .op('b')
                               .int4(7)
                               .op('a')
                               .stop());
  ASSERT_TRUE(result);
  const Object* object = result->root.as_object();
  EXPECT_EQ(*object->state->find("lr")->as_int(), 1);
  EXPECT_EQ(*object->items.at(0).second.as_int(), 7);
}

TEST(PickleMachine, ReadsOrderedDictWithAttributes) {
  const auto result = read(Pickle()
                               .hooks()
                               .text("w")
                               .int4(1)
                               .op('s')
                               .op('}')
                               .text("_metadata")
                               .hooks()
                               .op('s')
                               .op('b')
                               .stop());
  ASSERT_TRUE(result);
  const Dict* dict = result->root.as_dict();
  EXPECT_EQ(dict->kind, Dict::Kind::kOrderedDict);
  EXPECT_EQ(dict->items.size(), 1U);
  EXPECT_EQ(*dict->attributes.at(0).first.as_string(), "_metadata");
}

TEST(PickleMachine, ReadsTypedValues) {
  const auto value = [](const Pickle& pickle) { return read(pickle)->root; };
  const auto size = value(
      Pickle().global("torch", "Size").ints({2, 3}).tuple(1).op('R').stop());
  EXPECT_THAT(size.as_size()->sizes, ElementsAre(2, 3));
  const auto device = value(Pickle()
                                .global("torch", "device")
                                .text("cuda")
                                .int4(1)
                                .tuple(2)
                                .op('R')
                                .stop());
  EXPECT_EQ(device.as_device()->index, 1);
  const auto dtype = value(Pickle().global("torch", "bfloat16").stop());
  EXPECT_EQ(dtype.as_dtype()->dtype, DType::kBFloat16);
  const auto bytes = value(Pickle()
                               .global("_codecs", "encode")
                               .text("a\xc3\xbf")
                               .text("latin1")
                               .tuple(2)
                               .op('R')
                               .stop());
  EXPECT_EQ(bytes.as_bytes()->data, "a\xff");
  const auto set = value(Pickle()
                             .global("__builtin__", "set")
                             .op(']')
                             .int4(1)
                             .op('a')
                             .tuple(1)
                             .op('R')
                             .stop());
  EXPECT_EQ(set.as_set()->items.size(), 1U);
}

TEST(PickleMachine, WarnsOfAPickleInsideBytes) {
  const auto result =
      read(Pickle(3).op('C').number(4, 1).raw("\x80\x02N.").stop());
  ASSERT_TRUE(result);
  ASSERT_EQ(result->warnings.size(), 1U);
  EXPECT_EQ(result->warnings[0].name, "W_NESTED_PICKLE");
}

TEST(PickleMachine, WarnsOfAPickleInsideAByteArray) {
  const auto result = read(Pickle()
                               .global("__builtin__", "bytearray")
                               .text("\xc2\x80\x02N.")
                               .text("latin-1")
                               .tuple(2)
                               .op('R')
                               .stop());
  ASSERT_TRUE(result);
  ASSERT_EQ(result->warnings.size(), 1U);
  EXPECT_EQ(result->warnings[0].name, "W_NESTED_PICKLE");
}

} // namespace
} // namespace lockstep::ckpt
