// SPDX-License-Identifier: BSD-3-Clause
//
// The bad-input table of pickles: each row has its detail name.
#include <gmock/gmock.h>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/pickle/globals.h"
#include "lockstep/ckpt/pickle/names.h"
#include "lockstep/ckpt/walk.h"
#include "tests/ckpt/pickle/pickle_fixture.h"

namespace lockstep::ckpt {
namespace {

TEST(PickleRefusal, NamesOpcodeAndOffset) {
  const auto result = read(Pickle().op('N').int4(1).int4(2).op('s').stop());
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().detail, "E_PICKLE_TYPE");
  EXPECT_EQ(result.error().offset, 13U);
  EXPECT_EQ(result.error().message, "SETITEM: expected a dict, got NoneType");
}

TEST(PickleRefusal, BrokenStreams) {
  EXPECT_EQ(detail_of(Pickle().op('N')), "E_PICKLE"); // no STOP
  EXPECT_EQ(detail_of(Pickle().stop()), "E_STACK");
  EXPECT_EQ(detail_of(Pickle().op('N').mark().stop()), "E_STACK");
  EXPECT_EQ(detail_of(Pickle().op(0).stop()), "E_OPCODE");
  EXPECT_EQ(detail_of(Pickle(0).raw("Ix\n.")), "E_PICKLE");
  EXPECT_EQ(detail_of(Pickle(0).raw("I1")), "E_TRUNCATED");
  EXPECT_EQ(detail_of(Pickle(0).raw("S'a\n.")), "E_PICKLE");
  EXPECT_EQ(detail_of(Pickle(0).raw("Nga\n.")), "E_PICKLE");
}

TEST(PickleRefusal, StackUnderflow) {
  EXPECT_EQ(detail_of(Pickle().op('R').stop()), "E_STACK");
  EXPECT_EQ(detail_of(Pickle().op('t').stop()), "E_STACK");
  EXPECT_EQ(detail_of(Pickle().op('0').stop()), "E_STACK");
  EXPECT_EQ(detail_of(Pickle().op('2').stop()), "E_STACK");
  EXPECT_EQ(detail_of(Pickle().op('N').mark().op(0x85).stop()), "E_STACK");
  EXPECT_EQ(
      detail_of(Pickle().op('}').mark().int4(1).op('u').stop()),
      "E_STACK");
  EXPECT_EQ(detail_of(Pickle().mark().op('o').stop()), "E_STACK");
}

TEST(PickleRefusal, WrongTypes) {
  EXPECT_EQ(
      detail_of(Pickle(4).int4(1).int4(2).op(0x93).stop()),
      "E_PICKLE_TYPE");
  EXPECT_EQ(
      detail_of(Pickle().op('N').int4(1).op('a').stop()),
      "E_PICKLE_TYPE");
  EXPECT_EQ(
      detail_of(Pickle().global("m", "f").int4(1).op('R').stop()),
      "E_PICKLE_TYPE");
  EXPECT_EQ(
      detail_of(Pickle().int4(1).op(')').op('R').stop()),
      "E_PICKLE_TYPE");
  EXPECT_EQ(
      detail_of(Pickle().op('}').op('}').op('b').stop()),
      "E_PICKLE_TYPE");
  EXPECT_EQ(
      detail_of(Pickle().global("m", "C").op('}').op('b').stop()),
      "E_PICKLE_TYPE");
  EXPECT_EQ(detail_of(Pickle().text("id").op('Q').stop()), "E_PICKLE_TYPE");
}

TEST(PickleRefusal, CallsThatWouldShowUninitialisedMemory) {
  for (const char* name : {"FloatTensor", "FloatStorage"}) {
    const Pickle pickle =
        Pickle().global("torch", name).int4(4).tuple(1).op('R').stop();
    EXPECT_EQ(detail_of(pickle), "E_PICKLE_TYPE") << name;
  }
  EXPECT_EQ(
      detail_of(Pickle()
                    .global("torch.storage", "UntypedStorage")
                    .int4(4)
                    .tuple(1)
                    .op(0x81)
                    .stop()),
      "E_PICKLE_TYPE");
}

TEST(PickleRefusal, MemoMissesAndHugeMemoNumbers) {
  EXPECT_EQ(detail_of(Pickle().get(0).stop()), "E_MEMO");
  EXPECT_EQ(
      detail_of(Pickle().op('N').op('r').number(0x0FFFFFFF, 4).stop()),
      "");
  EXPECT_EQ(
      detail_of(Pickle()
                    .op('N')
                    .op('r')
                    .number(0x0FFFFFFF, 4)
                    .op('j')
                    .number(0x0FFFFFFE, 4)
                    .stop()),
      "E_MEMO");
}

TEST(PickleRefusal, LengthsBeyondTheBytesThatRemain) {
  EXPECT_EQ(
      detail_of(Pickle().op('X').number(0xFFFFFFFF, 4).stop()),
      "E_TRUNCATED");
  EXPECT_EQ(
      detail_of(Pickle(4).op(0x8D).number(1ULL << 63, 8).stop()),
      "E_TRUNCATED");
  EXPECT_EQ(
      detail_of(Pickle().op('T').number(0x80000000, 4).stop()),
      "E_TRUNCATED");
  EXPECT_EQ(detail_of(Pickle().op('J').number(1, 3)), "E_TRUNCATED");
}

TEST(PickleRefusal, IntegersOverTheLimit) {
  const auto integer = [](std::size_t bytes) {
    return Pickle()
        .op(0x8B)
        .number(bytes, 4)
        .raw(std::string(bytes, 'x'))
        .stop();
  };
  EXPECT_EQ(detail_of(integer(1024)), "");
  const auto refused = read(integer(1025));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().detail, "E_LIMIT");
  EXPECT_EQ(refused.error().code, ErrorCode::kUnsafe);
  EXPECT_EQ(
      detail_of(Pickle().op(0x8B).number(0xFFFFFFFF, 4).stop()),
      "E_TRUNCATED");
}

TEST(PickleRefusal, DeepNesting) {
  Pickle tuples;
  tuples.op('N');
  for (int i = 0; i < 2'000'000; ++i) {
    tuples.op(0x85);
  }
  const auto result = read(tuples.stop());
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().detail, "E_DEPTH");
  EXPECT_EQ(result.error().offset, 2U + 1 + 999);
  // What walks the tree afterwards recurses: no limit lifts that bound.
  const auto unlimited = read(tuples, {.max_depth = 1ULL << 40});
  ASSERT_FALSE(unlimited);
  EXPECT_EQ(unlimited.error().detail, "E_DEPTH");
  EXPECT_EQ(unlimited.error().offset, 2U + 1 + kMaxTreeDepth - 1);
}

TEST(PickleRefusal, DeepNestingThroughTheMemo) {
  // Each list is put into the one before it after that left the stack.
  Pickle lists;
  lists.op(']').op('r').number(0, 4).op('0');
  for (std::uint64_t i = 0; i < 3000; ++i) {
    lists.op(']').op('r').number(i + 1, 4).op('0');
    lists.op('j').number(i, 4).op('j').number(i + 1, 4).op('a').op('0');
  }
  EXPECT_EQ(detail_of(lists.op('j').number(0, 4).stop()), "E_DEPTH");
}

TEST(PickleRefusal, CyclesDoNotLeakWhenTheRestIsBroken) {
  EXPECT_EQ(
      detail_of(Pickle().op(']').put(0).get(0).op('a').op('R').stop()),
      "E_STACK"); // the leak checker watches
}

TEST(PickleRefusal, Limits) {
  Limits few;
  few.max_opcodes = 3;
  EXPECT_EQ(detail_of(Pickle().op('N').op('0').op('N').stop(), few), "E_LIMIT");
  few = {};
  few.max_nodes = 1;
  EXPECT_EQ(detail_of(Pickle().op('N').op('N').stop(), few), "E_LIMIT");
  few = {};
  few.max_pickle_bytes = 3;
  EXPECT_EQ(detail_of(Pickle().op('N').stop(), few), "E_LIMIT");
}

TEST(PickleRefusal, Frames) {
  EXPECT_EQ(
      detail_of(Pickle(4).op(0x95).number(100, 8).op('N').stop()),
      "E_FRAME");
  EXPECT_EQ(
      detail_of(Pickle(4).op(0x95).number(3, 8).int4(1).stop()),
      "E_FRAME");
  EXPECT_EQ(
      detail_of(Pickle(4)
                    .op(0x95)
                    .number(11, 8)
                    .op(0x95)
                    .number(1, 8)
                    .op('N')
                    .stop()),
      "E_FRAME");
}

TEST(PickleRefusal, Protocols) {
  EXPECT_EQ(detail_of(Pickle(6).op('N').stop()), "E_PROTO");
  EXPECT_EQ(
      detail_of(Pickle().op(0x80).number(2, 1).op('N').stop()),
      "E_PROTO");
  EXPECT_EQ(detail_of(Pickle(0).op(0x88).stop()), "E_PROTO");
  EXPECT_EQ(detail_of(Pickle(0).op('N').stop()), "");
}

TEST(PickleRefusal, DataFromOutside) {
  for (const int code : {0x97, 0x98}) {
    const auto result = read(Pickle(5).op('N').op(code).stop());
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().detail, "E_OPCODE");
    EXPECT_EQ(result.error().code, ErrorCode::kUnsupported);
  }
  EXPECT_EQ(detail_of(Pickle().op(0x82).number(1, 1).stop()), "E_OPCODE");
  EXPECT_EQ(detail_of(Pickle().op(0x83).number(1, 2).stop()), "E_OPCODE");
  EXPECT_EQ(detail_of(Pickle().op(0x84).number(1, 4).stop()), "E_OPCODE");
}

TEST(PickleRefusal, BrokenUtf8IsKeptAsBytes) {
  const auto result = read(Pickle().text("\xff\xed\xa0\x80").stop());
  ASSERT_TRUE(result);
  EXPECT_EQ(*result->root.as_string(), "\xff\xed\xa0\x80");
}

TEST(PickleRefusal, ExpansionOfSharedValuesIsLimited) {
  Pickle bomb;
  bomb.op(']').put(0);
  for (std::uint64_t i = 1; i <= 40; ++i) {
    bomb.op(']').mark().get(i - 1).get(i - 1).op('e').put(i);
  }
  const auto result = read(bomb.stop());
  ASSERT_TRUE(result);
  const Status status = for_each_tensor(
      result->root,
      [](const std::string&, const Tensor&) {},
      {.max_visits = 100'000});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().detail, "E_LIMIT");
}

TEST(Globals, AllowListEqualsThatOfTheSafeLoader) {
  for (const char* name :
       {"torch.FloatStorage",
        "torch.cuda.HalfStorage",
        "torch.storage.UntypedStorage",
        "torch.float8_e5m2",
        "torch.int3",
        "torch.uint7",
        "torch.sparse.FloatTensor",
        "torch.cuda.LongTensor",
        "torch._utils._rebuild_qtensor",
        "__builtin__.set",
        "builtins.bytearray"}) {
    EXPECT_TRUE(find_global(name).is_safe()) << name;
  }
  for (const char* name :
       {"os.system",
        "builtins.getattr",
        "builtins.bytes",
        "torch.UInt16Storage",
        "torch.int8x",
        "torch.load",
        "torch.nn.modules.linear.Linear",
        "numpy.ndarray"}) {
    EXPECT_FALSE(find_global(name).is_safe()) << name;
  }
}

TEST(Globals, MembersAreOfAnEnumInTheTable) {
  const std::string formats =
      "torch.distributed.checkpoint.metadata._MEM_FORMAT_ENCODING";
  EXPECT_TRUE(is_enum_member(formats + ".TORCH_PRESERVE_FORMAT"));
  for (const std::string& name :
       {formats,
        formats + ".__class__",
        formats + ".TORCH_X.__class__",
        std::string("torch.load.TORCH_X"),
        std::string("collections.OrderedDict."),
        std::string("TORCH_X")}) {
    EXPECT_FALSE(is_enum_member(name)) << name;
  }
}

// In every part alike: reading, scanning and sharded checkpoints.
TEST(Globals, WhatOnlyHoldsDataIsHarmlessButNotOnTheList) {
  for (const char* name :
       {"pathlib.PosixPath",
        "pathlib._local.PosixPath",
        "pathlib._local.PureWindowsPath",
        "torch.distributed.checkpoint.filesystem._StoragePrefix",
        "torch.distributed.checkpoint.metadata.Metadata",
        "torch.jit._pickle.build_intlist",
        "torch._utils._rebuild_sparse_csr_tensor"}) {
    EXPECT_TRUE(find_global(name).is_harmless()) << name;
    EXPECT_FALSE(find_global(name).is_safe()) << name;
  }
  for (const char* name :
       {"os.system", "__builtin__.eval", "torch.load", "?", "a:b"}) {
    EXPECT_TRUE(find_global(name).is_dangerous()) << name;
    EXPECT_FALSE(find_global(name).is_harmless()) << name;
  }
  for (const char* name :
       {"torch.distributed.checkpoint.planner.SavePlan", "pathlib.Other"}) {
    EXPECT_EQ(find_global(name).trust, Trust::kUnknown) << name;
  }
}

TEST(PickleRefusal, MemoBombStaysSmall) {
  Pickle bomb;
  bomb.op(']').put(0);
  for (int i = 1; i <= 40; ++i) {
    bomb.op(']').mark();
    bomb.get(static_cast<std::uint64_t>(i - 1));
    bomb.get(static_cast<std::uint64_t>(i - 1));
    bomb.op('e').put(static_cast<std::uint64_t>(i));
  }
  const auto result = read(bomb.stop());
  ASSERT_TRUE(result) << to_string(result.error());
  EXPECT_EQ(result->root.as_list()->items.size(), 2U);
}

TEST(PickleRefusal, NamesPayloadBeforeABrokenStream) {
  const auto result =
      read(Pickle().global("os", "system").text("id").tuple(1).op('R').op(0));
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().detail, "E_OPCODE");
  EXPECT_THAT(result.error().hint, testing::HasSubstr("os.system"));
}

} // namespace
} // namespace lockstep::ckpt
