// SPDX-License-Identifier: BSD-3-Clause
#include <cerrno>

#include <gmock/gmock.h>

#include "lockstep/ckpt/formats/dcp/dcp_metadata.h"
#include "lockstep/ckpt/inspect.h"
#include "lockstep/ckpt/load.h"
#include "lockstep/ckpt/load/format_table.h"
#include "tests/ckpt/logical_bytes.h"
#include "tests/ckpt/value_fixture.h"
#include "tests/support/fault_fs.h"
#include "tests/support/memory_fs.h"
#include "tests/support/scratch_dir.h"

namespace lockstep::ckpt {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

const SaveOptions kWritten{.format = "dcp"};

Value training() {
  return Value::dict(
      {{"model", Value::ordered_dict({{"w", bytes_tensor("ab", {2})}})},
       {"epoch", 3},
       {"opt",
        Value::dict(
            {{"state",
              Value::dict(
                  {{0, Value::dict({{"step", bytes_tensor("c", {})}})}})},
             {"param_groups",
              Value::list({Value::dict(
                  {{"lr", 0.1},
                   {"betas", Value::tuple({0.9, 0.99})},
                   {"params", Value::list({0})}})})}})}});
}

TEST(DcpWriter, KeepsTheTreeAndTheIntegersOfAnOptimizer) {
  MemoryFs fs;
  ASSERT_TRUE(save("d", training(), kWritten, fs));
  EXPECT_THAT(*fs.list("d"), ElementsAre(".metadata", "__0_0.distcp"));
  const auto file = load("d", {}, fs);
  ASSERT_TRUE(file) << to_string(file.error());
  EXPECT_EQ(*file->root.find("epoch")->as_int(), 3);
  const Value& opt = *file->root.find("opt");
  const Value* state = opt.find("state")->find(0);
  ASSERT_NE(state, nullptr);
  EXPECT_EQ(*logical_bytes(*state->find("step")->as_tensor()), "c");
  const Value& group = opt.find("param_groups")->as_list()->items.at(0);
  EXPECT_EQ(group.find("betas")->as_tuple()->items.size(), 2U);
  EXPECT_EQ(*group.find("lr")->as_float(), 0.1);
}

TEST(DcpWriter, KeepsEmptyDicts) {
  const Value module = Object{
      .global = "torch.nn.modules.activation.ReLU",
      .state = std::make_shared<Value>(Value::dict(
          {{"_parameters", Value::dict({})},
           {"_buffers", Value::dict({})},
           {"_modules", Value::dict({})}}))};
  MemoryFs fs;
  ASSERT_TRUE(save(
      "d",
      Value::dict(
          {{"opt", Value::dict({{"state", Value::dict({})}})},
           {"list", Value::list({Value::ordered_dict({})})},
           {"relu", module},
           {"w", 1},
           {"last", Value::dict({})}}),
      kWritten,
      fs));
  const auto file = load("d", {}, fs);
  ASSERT_TRUE(file) << to_string(file.error());
  EXPECT_THAT(
      keys_of(*file->root.as_dict()),
      ElementsAre("opt", "list", "relu", "w", "last"));
  for (const char* path : {"opt.state", "list.0", "relu", "last"}) {
    const auto found = find_path(file->root, path);
    ASSERT_TRUE(found) << path;
    ASSERT_NE(found->as_dict(), nullptr) << path;
    EXPECT_TRUE(found->as_dict()->items.empty()) << path;
  }
  ASSERT_TRUE(save("e", Value::dict({}), kWritten, fs));
  EXPECT_TRUE((*(*load("e", {}, fs)).root.as_dict()).items.empty());
}

TEST(DcpWriter, ReplacesAFolderInOneStep) {
  const Value fresh = Value::dict({{"w", bytes_tensor("new", {3})}});
  const Value old = Value::dict({{"w", bytes_tensor("old", {3})}});
  bool finished = false;
  for (std::uint64_t n = 0; !finished; ++n) {
    MemoryFs memory;
    ASSERT_TRUE(save("d", old, kWritten, memory));
    FaultFs faulty(memory, {.fail_at = n, .error_number = ENOSPC});
    const Status status = save("d", fresh, kWritten, faulty);
    const auto file = load("d", {}, memory);
    ASSERT_TRUE(file) << n << to_string(file.error());
    const std::string now = *logical_bytes(*file->root.find("w")->as_tensor());
    EXPECT_TRUE(now == "new" || (now == "old" && !status)) << n;
    finished = static_cast<bool>(status) && faulty.operations() <= n;
    if (finished) {
      EXPECT_EQ(memory.list("d")->size(), 2U);
    }
  }
}

// Lists that hold each other twice, 60 levels above `inner`.
Value doubled(Value inner) {
  Value list = Value::list({std::move(inner)});
  for (int i = 0; i < 60; ++i) {
    list = Value::list({list, list});
  }
  return Value::dict({{"b", list}});
}

// Each would be kept several times.
TEST(DcpWriter, StopsAtNamesThatFillTheMemory) {
  Dict below;
  for (std::int64_t i = 0; i < 400; ++i) {
    below.items.emplace_back(std::to_string(i), Value());
  }
  MemoryFs fs;
  const Status status = save(
      "d",
      Value::dict({{std::string(200'000, 'a'), std::move(below)}}),
      kWritten,
      fs);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().detail, "E_LIMIT");
}

TEST(DcpWriter, StopsAtListsThatExpandWithoutEnd) {
  MemoryFs fs;
  const Status status = save("d", doubled(Value::dict({})), kWritten, fs);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().detail, "E_LIMIT");
}

// PyTorch does not enter a list without tensors or dicts: it is one object.
TEST(DcpWriter, LooksAtASharedListOnce) {
  MemoryFs fs;
  ASSERT_TRUE(save("d", doubled(1), kWritten, fs));
  const auto file = load("d", {}, fs);
  ASSERT_TRUE(file) << to_string(file.error());
  const auto& outer = file->root.find("b")->as_list()->items;
  EXPECT_EQ(outer.at(0).as_list(), outer.at(1).as_list());
}

TEST(DcpWriter, WritesNoPathThatTheReaderRefuses) {
  const auto chain = [](std::size_t steps) {
    Value value = 1;
    for (std::size_t i = 0; i < steps; ++i) {
      value = Value::dict({{"k", value}});
    }
    return value;
  };
  MemoryFs fs;
  ASSERT_TRUE(save("d", chain(kMaxDcpPath), kWritten, fs));
  EXPECT_TRUE(load("d", {}, fs));
  const Status deeper = save("e", chain(kMaxDcpPath + 1), kWritten, fs);
  ASSERT_FALSE(deeper);
  EXPECT_EQ(deeper.error().detail, "E_DEPTH");
}

TEST(DcpWriter, JoinsPathsAsPyTorchDoes) {
  MemoryFs fs;
  const Value inner = Value::dict({{"", Value::dict({{"w", 1}})}});
  ASSERT_TRUE(save("d", Value::dict({{"", inner}, {"w", 2}}), kWritten, fs));
  const auto metadata = read_text(fs, "d/.metadata");
  ASSERT_TRUE(metadata);
  EXPECT_THAT(*metadata, HasSubstr("..w"));
}

TEST(DcpWriter, NamesWhatItCannotHold) {
  MemoryFs fs;
  const Status list = save("d", Value::list({1}), kWritten, fs);
  EXPECT_EQ(list.error().detail, "E_NOT_TENSOR");
  EXPECT_THAT(list.error().hint, HasSubstr("'pt'"));
  const Value program = Object{
      .global = "__torch__.Net",
      .state = std::make_shared<Value>(Value::dict({{"w", floats({1})}}))};
  const Status script = save("d", program, kWritten, fs);
  EXPECT_EQ(script.error().detail, "E_NOT_TENSOR");
  EXPECT_THAT(script.error().hint, HasSubstr("safetensors"));
  const Value twice = Value::dict({{"a.b", 1}, {"a", Value::dict({{"b", 2}})}});
  EXPECT_EQ(save("d", twice, kWritten, fs).error().detail, "E_SAME_NAME");
  const Value object =
      Value::dict({{"args", Object{.global = "argparse.Namespace"}}});
  const Status refused = save("d", object, kWritten, fs);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("'args'"));
}

// An empty dict has a path, but no name that an item could have as well.
TEST(DcpWriter, KeepsEmptyDictsBesideItemsOfTheSameDottedName) {
  const Value empty = Value::dict({});
  const Value inner = Value::dict({{"b", empty}});
  for (const Value& root :
       {Value::dict({{"a", inner}, {"a.b", bytes_tensor("x", {1})}}),
        Value::dict({{"a.b", bytes_tensor("x", {1})}, {"a", inner}}),
        Value::dict({{"a", inner}, {"a.b", empty}})}) {
    MemoryFs fs;
    const Status saved = save("d", root, kWritten, fs);
    ASSERT_TRUE(saved) << to_string(saved.error());
    const auto file = load("d", {}, fs);
    ASSERT_TRUE(file) << to_string(file.error());
    const auto report = diff(root, file->root);
    ASSERT_TRUE(report) << to_string(report.error());
    EXPECT_TRUE(report->rows.empty());
    EXPECT_EQ(file->root.as_dict()->items.size(), 2U);
    EXPECT_NE(file->root.find("a")->find("b"), nullptr);
  }
  const Value key(std::int64_t{1});
  for (const Value& second : {empty, Value(2)}) {
    MemoryFs fs;
    const Value twice = Value::dict({{key, empty}, {"1", second}});
    EXPECT_EQ(save("d", twice, kWritten, fs).error().detail, "E_SAME_NAME");
  }
}

// What is in a tuple is a pickle of its own, with all attributes.
TEST(DcpWriter, HasNoPlaceForAttributesOfDictsThatItEnters) {
  const Value weights = Dict{
      .items = {{"w", bytes_tensor("ab", {2})}},
      .attributes = {{"_metadata", Value::dict({})}, {"note", 1}}};
  const Value empty = Dict{
      .kind = Dict::Kind::kOrderedDict,
      .attributes = {{"_metadata", Value::dict({})}}};
  const auto lost = format_to_write("dcp")->writer.lost_attributes(Value::dict(
      {{"kept", Value::tuple({weights})},
       {"empty", empty},
       {"list", Value::list({weights})},
       {"m", weights}}));
  ASSERT_TRUE(lost) << to_string(lost.error());
  EXPECT_THAT(
      *lost,
      ElementsAre(
          "empty._metadata",
          "list.0._metadata",
          "list.0.note",
          "m._metadata",
          "m.note"));
}

TEST(DcpWriter, DoesNotMindThatAnotherProcessRemovedTheOldFile) {
  MemoryFs memory;
  ASSERT_TRUE(save("d", training(), kWritten, memory));
  FaultFs other(memory, {.before = [&memory](std::string_view op) {
                  if (op == "fs.remove") {
                    (void)memory.remove("d/__0_0.distcp");
                  }
                }});
  const Status saved = save("d", training(), kWritten, other);
  EXPECT_TRUE(saved) << to_string(saved.error());
  EXPECT_THAT(*memory.list("d"), ElementsAre(".metadata", "__0_1.distcp"));
}

// Two would each remove the data of the other, with `.metadata` naming what is
// gone.
TEST(DcpWriter, IsRefusedWhileAnotherHoldsTheFolder) {
  const test::ScratchDir dir;
  const std::string path = dir / "d";
  const Value old = Value::dict({{"w", bytes_tensor("old", {3})}});
  const Value fresh = Value::dict({{"w", bytes_tensor("new", {3})}});
  ASSERT_TRUE(save(path, old, kWritten));
  {
    const auto lock = real_fs().lock_directory(path);
    ASSERT_TRUE(lock) << to_string(lock.error());
    const Status refused = save(path, fresh, kWritten);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().detail, "E_LOCKED") << to_string(refused.error());
  }
  EXPECT_THAT(
      *real_fs().list(path),
      UnorderedElementsAre(".metadata", "__0_0.distcp"));
  const auto file = load(path);
  ASSERT_TRUE(file) << to_string(file.error());
  EXPECT_EQ(*logical_bytes(*file->root.find("w")->as_tensor()), "old");
}

TEST(DcpWriter, HoldsTheFolderUntilOldDataIsGone) {
  MemoryFs memory;
  ASSERT_TRUE(save("d", training(), kWritten, memory));
  std::vector<std::string> ops;
  FaultFs watched(memory, {.before = [&](std::string_view op) {
                    if (!ops.empty() || op == "fs.list") {
                      ops.emplace_back(op);
                      EXPECT_FALSE(memory.lock_directory("d")) << op;
                    }
                  }});
  ASSERT_TRUE(save("d", training(), kWritten, watched));
  EXPECT_THAT(ops, AllOf(Contains("fs.rename"), Contains("fs.remove")));
}

// Flattening a shared module costs time also where it gives no names.
TEST(DcpWriter, CountsTheWorkOnASharedModule) {
  Set hidden;
  for (std::int64_t i = 0; i < 3000; ++i) {
    hidden.items.emplace_back(i);
  }
  const Value module = Object{
      .global = "m.C",
      .state = std::make_shared<Value>(Value::dict(
          {{"_modules", Value::dict({})},
           {"_non_persistent_buffers_set", std::move(hidden)}}))};
  Dict root;
  for (std::int64_t i = 0; i < 3000; ++i) {
    root.items.emplace_back(i, module);
  }
  MemoryFs fs;
  const Status saved = save("d", std::move(root), kWritten, fs);
  ASSERT_FALSE(saved);
  EXPECT_EQ(saved.error().detail, "E_LIMIT");
}

} // namespace
} // namespace lockstep::ckpt
