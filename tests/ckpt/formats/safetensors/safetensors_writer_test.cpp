// SPDX-License-Identifier: BSD-3-Clause
#include <cerrno>

#include <gmock/gmock.h>

#include "lockstep/base/internal/atomic_file.h"
#include "lockstep/base/strings.h"
#include "tests/ckpt/formats/safetensors/safetensors_fixture.h"
#include "tests/ckpt/logical_bytes.h"
#include "tests/ckpt/value_fixture.h"
#include "tests/support/fault_fs.h"
#include "tests/support/memory_fs.h"

namespace lockstep::ckpt {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const SaveOptions kSafetensors{.format = "safetensors"};

Tensor row_of_bytes(const std::string& bytes) {
  return tensor_of<char>(
      DType::kUInt8,
      std::vector<char>(bytes.begin(), bytes.end()),
      {static_cast<std::int64_t>(bytes.size())});
}

std::string saved(
    const Value& value,
    const SaveOptions& options = kSafetensors) {
  MemoryFs fs;
  const Status status = save("m.safetensors", value, options, fs);
  EXPECT_TRUE(status) << to_string(status.error());
  const auto text = read_text(fs, "m.safetensors");
  return text ? *text : "";
}

Error save_refusal(
    const Value& value,
    const SaveOptions& options = kSafetensors) {
  MemoryFs fs;
  const Status status = save("m.safetensors", value, options, fs);
  EXPECT_FALSE(status);
  EXPECT_EQ(fs.list(".")->size(), 0U);
  return status ? Error() : status.error();
}

TEST(SafetensorsWriter, SortsByTypeThenName) {
  const Value value = Value::dict(
      {{"b", row_of_bytes("b")},
       {"a", row_of_bytes("a")},
       {"n",
        Value::dict({{"f", tensor_of<float>(DType::kFloat32, {1}, {})}})}});
  const std::string header =
      R"({"__metadata__":{"format":"pt"},)"
      R"("n.f":{"dtype":"F32","shape":[],"data_offsets":[0,4]},)"
      R"("a":{"dtype":"U8","shape":[1],"data_offsets":[4,5]},)"
      R"("b":{"dtype":"U8","shape":[1],"data_offsets":[5,6]}})";
  std::string padded = header;
  padded.append((8 - header.size() % 8) % 8, ' ');
  EXPECT_EQ(
      saved(value),
      safetensors(padded, std::string("\0\0\x80\x3f", 4) + "ab"));
}

TEST(SafetensorsWriter, TurnsOtherValuesIntoMetadata) {
  const std::string bytes = saved(Value::dict(
      {{"epoch", 3},
       {"best", 0.5},
       {"arch", "resnet\"18"},
       {"none", None{}},
       {"opt", Value::dict({{"betas", Value::tuple({0.9, 0.99})}})},
       {"w", row_of_bytes("w")}}));
  const auto file = load_bytes(bytes);
  ASSERT_TRUE(file) << to_string(file.error());
  const Value& metadata = file->root.as_dict()->attributes.at(0).second;
  EXPECT_EQ(*metadata.find("epoch")->as_string(), "3");
  EXPECT_EQ(*metadata.find("best")->as_string(), "0.5");
  EXPECT_EQ(*metadata.find("arch")->as_string(), "resnet\"18");
  EXPECT_EQ(*metadata.find("none")->as_string(), "None");
  EXPECT_EQ(*metadata.find("opt.betas.1")->as_string(), "0.99");
  EXPECT_EQ(*metadata.find("format")->as_string(), "pt");
}

TEST(SafetensorsWriter, KeepsTheMetadataOfAFile) {
  const std::string first = safetensors(
      R"({"__metadata__":{"format":"np","x":"y"},)"
      R"("a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
      "a");
  const auto file = load_bytes(first);
  ASSERT_TRUE(file);
  EXPECT_THAT(
      saved(file->root),
      HasSubstr(R"("__metadata__":{"format":"np","x":"y"})"));
}

TEST(SafetensorsWriter, MakesStridedTensorsRowMajor) {
  Tensor turned = row_of_bytes("abcdef");
  turned.sizes = {3, 2};
  turned.strides = {1, 3};
  EXPECT_THAT(saved(Value::dict({{"t", turned}})), testing::EndsWith("adbecf"));
}

TEST(SafetensorsWriter, RefusesTensorsThatShareMemoryUnlessToldToClone) {
  const Tensor base = row_of_bytes("abcd");
  Tensor part = base;
  part.sizes = {2};
  part.offset = 1;
  const Value value = Value::dict({{"base", base}, {"part", part}});
  const Error error = save_refusal(value);
  EXPECT_EQ(error.detail, "E_SHARED_TENSOR");
  EXPECT_THAT(error.message, HasSubstr("'base' and 'part' share memory"));
  EXPECT_THAT(error.hint, HasSubstr("clone_views"));
  SaveOptions clone = kSafetensors;
  clone.clone_views = true;
  EXPECT_THAT(saved(value, clone), testing::EndsWith("abcdbc"));
}

TEST(SafetensorsWriter, TakesPartsOfAStorageThatDoNotOverlap) {
  Tensor left = row_of_bytes("abcd");
  left.sizes = {2};
  Tensor right = left;
  right.offset = 2;
  EXPECT_THAT(
      saved(Value::dict({{"r", right}, {"l", left}})),
      testing::EndsWith("abcd"));
}

TEST(SafetensorsWriter, RefusesATensorThatRepeatsItsBytes) {
  Tensor expanded = row_of_bytes("a");
  expanded.sizes = {1'000'000'000'000};
  expanded.strides = {0};
  const Error error = save_refusal(Value::dict({{"e", expanded}}));
  EXPECT_EQ(error.detail, "E_SHARED_TENSOR");
}

struct Refusal {
  const char* name;
  Value value;
  const char* detail;
  const char* message;
};

std::vector<Refusal> refusals() {
  Tensor meta = row_of_bytes("ab");
  meta.storage = std::make_shared<Storage>(Storage{.nbytes = 2});
  Tensor outside = row_of_bytes("ab");
  outside.offset = 1;
  Tensor quantized = row_of_bytes("ab");
  quantized.dtype = DType::kQInt8;
  return {
      {"Object",
       Value::dict({{"args", Object{.global = "argparse.Namespace"}}}),
       "E_NOT_TENSOR",
       "'args' is not a tensor but"},
      {"Set",
       Value::dict({{"s", Set{}}}),
       "E_NOT_TENSOR",
       "'s' is not a tensor"},
      {"SameName",
       Value::dict(
           {{"a.b", row_of_bytes("x")},
            {"a", Value::dict({{"b", row_of_bytes("y")}})}}),
       "E_SAME_NAME",
       "'a.b' is the name of two values"},
      {"Complex128",
       Value::dict({{"z", tensor_of<double>(DType::kComplex128, {1, 2}, {1})}}),
       "E_DTYPE",
       "'z' is complex128 [1], which safetensors cannot hold"},
      {"Quantized",
       Value::dict({{"q", quantized}}),
       "E_DTYPE",
       "'q' is qint8 [2], which safetensors cannot hold"},
      {"Meta", Value::dict({{"m", meta}}), "E_NOT_TENSOR", "without bytes"},
      {"Outside", Value::dict({{"o", outside}}), "E_VIEW_BOUNDS", "'o' is"},
      {"Name", Value::dict({{"\xff", row_of_bytes("x")}}), "E_NAME", "\\xff"},
      {"Surrogate",
       Value::dict({{"w\xed\xa0\x80", row_of_bytes("x")}}),
       "E_NAME",
       R"(w\xed\xa0\x80)"},
      {"Reserved",
       Value::dict({{"__metadata__", row_of_bytes("x")}}),
       "E_NAME",
       "__metadata__"},
  };
}

class RefusedValue : public testing::TestWithParam<Refusal> {};

TEST_P(RefusedValue, IsNamed) {
  const Error error = save_refusal(GetParam().value);
  EXPECT_EQ(error.detail, GetParam().detail) << to_string(error);
  EXPECT_THAT(error.message, HasSubstr(GetParam().message));
  EXPECT_EQ(error.path, "m.safetensors");
  EXPECT_EQ(error.hint.empty(), error.detail == "E_VIEW_BOUNDS");
  EXPECT_EQ(
      error.hint.find("dequantize()") != std::string::npos,
      GetParam().name == std::string_view("Quantized"));
}

INSTANTIATE_TEST_SUITE_P(
    Safetensors,
    RefusedValue,
    testing::ValuesIn(refusals()),
    [](const auto& row) { return std::string(row.param.name); });

Value three() {
  return Value::dict(
      {{"a", row_of_bytes("aaa")},
       {"b", row_of_bytes("bb")},
       {"c", row_of_bytes("cccccc")}});
}

TEST(SafetensorsShards, AreReadThroughTheirIndex) {
  MemoryFs fs;
  SaveOptions options = kSafetensors;
  options.shard_bytes = 5;
  ASSERT_TRUE(save("m.safetensors", three(), options, fs));
  EXPECT_THAT(
      *fs.list("."),
      ElementsAre(
          "m-00001-of-00002.safetensors",
          "m-00002-of-00002.safetensors",
          "m.safetensors.index.json"));
  EXPECT_EQ(
      *read_text(fs, "m.safetensors.index.json"),
      "{\n  \"metadata\": {\n    \"total_size\": 11\n  },\n"
      "  \"weight_map\": {\n"
      "    \"a\": \"m-00001-of-00002.safetensors\",\n"
      "    \"b\": \"m-00001-of-00002.safetensors\",\n"
      "    \"c\": \"m-00002-of-00002.safetensors\"\n  }\n}\n");
  const auto file = load("m.safetensors.index.json", {}, fs);
  ASSERT_TRUE(file) << to_string(file.error());
  EXPECT_EQ(file->root.as_dict()->items.size(), 3U);
  EXPECT_EQ(*logical_bytes(*file->root.find("c")->as_tensor()), "cccccc");
  EXPECT_EQ(file->format, "sharded");
}

TEST(SafetensorsShards, AreOneFileIfEverythingFits) {
  MemoryFs fs;
  SaveOptions options = kSafetensors;
  options.shard_bytes = 11;
  ASSERT_TRUE(save("m.safetensors", three(), options, fs));
  EXPECT_THAT(*fs.list("."), ElementsAre("m.safetensors"));
}

// Saves over the shards of `three()` with faults from each operation on.
// At every one the old checkpoint can be read, or the new one, whole.
void expect_old_or_new(std::uint64_t failures) {
  SaveOptions options = kSafetensors;
  options.shard_bytes = 5;
  Value other = three();
  other.set("a", row_of_bytes("AAA"));
  other.set("c", row_of_bytes("CCCCCC"));
  bool finished = false;
  for (std::uint64_t n = 0; !finished; ++n) {
    MemoryFs memory;
    ASSERT_TRUE(save("m.safetensors", three(), options, memory));
    FaultFs faulty(
        memory,
        {.fail_at = n, .failures = failures, .error_number = ENOSPC});
    const Status status = save("m.safetensors", other, options, faulty);
    for (const bool keep_names : {true, false}) {
      MemoryFs later = memory.after_power_loss({.keep_names = keep_names});
      const auto file = load("m.safetensors.index.json", {}, later);
      ASSERT_TRUE(file) << n << to_string(file.error());
      const std::string a = *logical_bytes(*file->root.find("a")->as_tensor());
      const std::string c = *logical_bytes(*file->root.find("c")->as_tensor());
      EXPECT_TRUE(status ? a == "AAA" : a == "aaa" || a == "AAA") << n;
      EXPECT_EQ(c, a == "AAA" ? "CCCCCC" : "cccccc") << n;
    }
    finished = static_cast<bool>(status) && faulty.operations() <= n;
  }
}

TEST(SafetensorsShards, AFailureLeavesTheOldOnesOrTheNewOnes) {
  expect_old_or_new(1);
}

TEST(SafetensorsShards, AKillLeavesTheOldOnesOrTheNewOnes) {
  expect_old_or_new(FaultPlan::kNever);
}

TEST(SafetensorsShards, AFullDiskLeavesTheOldOnesAndNothingElse) {
  SaveOptions options = kSafetensors;
  options.shard_bytes = 5;
  Value other = three();
  other.set("a", row_of_bytes("AAA"));
  bool finished = false;
  for (std::uint64_t budget = 0; !finished; budget += 16) {
    MemoryFs memory;
    ASSERT_TRUE(save("m.safetensors", three(), options, memory));
    const auto names = *memory.list(".");
    FaultFs full(memory, {.byte_budget = budget});
    finished = save("m.safetensors", other, options, full).has_value();
    const auto file = load("m.safetensors.index.json", {}, memory);
    ASSERT_TRUE(file) << budget;
    const std::string a = *logical_bytes(*file->root.find("a")->as_tensor());
    EXPECT_TRUE(a == "AAA" || (a == "aaa" && *memory.list(".") == names))
        << budget;
  }
}

TEST(SafetensorsShards, KeepTheirNamesWhenReplaced) {
  MemoryFs fs;
  SaveOptions options = kSafetensors;
  options.shard_bytes = 5;
  ASSERT_TRUE(save("m.safetensors", three(), options, fs));
  const auto names = *fs.list(".");
  ASSERT_TRUE(save("m.safetensors", three(), options, fs));
  EXPECT_EQ(*fs.list("."), names);
}

TEST(SafetensorsShards, TakeThePlaceOfASingleFileAndBack) {
  MemoryFs fs;
  SaveOptions options = kSafetensors;
  ASSERT_TRUE(save("m.safetensors", three(), options, fs));
  options.shard_bytes = 5;
  ASSERT_TRUE(save("m.safetensors", three(), options, fs));
  EXPECT_FALSE(fs.stat("m.safetensors"));
  options.shard_bytes = 100;
  ASSERT_TRUE(save("m.safetensors", three(), options, fs));
  EXPECT_TRUE(fs.stat("m.safetensors"));
  EXPECT_FALSE(fs.stat("m.safetensors.index.json"));
}

TEST(SafetensorsShards, OfSomebodyElseAreNotReplacedUnasked) {
  SaveOptions options = kSafetensors;
  options.shard_bytes = 5;
  options.replace = false;
  for (const char* name :
       {"m-00002-of-00002.safetensors",
        "m.safetensors",
        "m.safetensors.index.json"}) {
    MemoryFs fs;
    ASSERT_TRUE(write_file_atomically(fs, name, "theirs"));
    const Status status = save("m.safetensors", three(), options, fs);
    ASSERT_FALSE(status) << name;
    EXPECT_EQ(status.error().detail, "E_EXISTS");
    EXPECT_EQ(status.error().path, name);
    EXPECT_THAT(*fs.list("."), ElementsAre(name));
    EXPECT_EQ(*read_text(fs, name), "theirs");
  }
}

TEST(SafetensorsWriter, AFailureLeavesTheOldFile) {
  bool finished = false;
  for (std::uint64_t n = 0; !finished; ++n) {
    MemoryFs memory;
    ASSERT_TRUE(save("m.safetensors", three(), kSafetensors, memory));
    const std::string old = *read_text(memory, "m.safetensors");
    FaultFs faulty(memory, {.fail_at = n, .error_number = ENOSPC});
    const Value one = Value::dict({{"x", row_of_bytes("x")}});
    const Status status = save("m.safetensors", one, kSafetensors, faulty);
    const std::string now = *read_text(memory, "m.safetensors");
    EXPECT_TRUE(now == old || now == saved(one)) << n;
    finished = static_cast<bool>(status) && faulty.operations() <= n;
  }
}

} // namespace
} // namespace lockstep::ckpt
