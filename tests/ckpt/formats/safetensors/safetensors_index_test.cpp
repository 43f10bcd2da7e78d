// SPDX-License-Identifier: BSD-3-Clause
#include <gmock/gmock.h>

#include "lockstep/ckpt/print.h"
#include "tests/ckpt/formats/safetensors/safetensors_fixture.h"
#include "tests/ckpt/value_fixture.h"
#include "tests/support/fault_fs.h"
#include "tests/support/memory_fs.h"

namespace lockstep::ckpt {
namespace {

using testing::HasSubstr;

Value one_tensor(const char* name) {
  return Value::dict({{name, tensor_of<float>(DType::kFloat32, {1}, {1})}});
}

void put_file(MemoryFs& fs, const std::string& path, const std::string& bytes) {
  auto file = fs.create(path, 0644);
  ASSERT_TRUE(file);
  ASSERT_TRUE((*file)->write(as_byte_span(bytes)));
}

// A folder with two files of weights and this index.
Result<Checkpoint> load_index(const std::string& index) {
  MemoryFs fs;
  EXPECT_TRUE(fs.create_directories("m"));
  EXPECT_TRUE(
      save("m/1.safetensors", one_tensor("a"), {.format = "safetensors"}, fs));
  EXPECT_TRUE(save("m/2.bin", one_tensor("b"), {}, fs));
  EXPECT_TRUE(save("secret", one_tensor("a"), {}, fs));
  put_file(fs, "m/index.json", index);
  return load("m/index.json", {}, fs);
}

TEST(ShardedIndex, ReadsFilesOfAnyFormat) {
  const auto file =
      load_index(R"({"metadata":{"total_size":8},)"
                 R"("weight_map":{"b":"2.bin","a":"1.safetensors"}})");
  ASSERT_TRUE(file) << to_string(file.error());
  EXPECT_EQ(file->root.as_dict()->items.size(), 2U);
  EXPECT_NE(file->root.find("a"), nullptr);
  EXPECT_EQ(file->storages.size(), 2U);
}

TEST(ShardedIndex, WarnsOfTensorsThatItLacks) {
  const auto file = load_index(R"({"weight_map":{"a":"1.safetensors"}})");
  ASSERT_TRUE(file);
  EXPECT_TRUE(file->warnings.empty());
  MemoryFs fs;
  ASSERT_TRUE(save(
      "1",
      Value::dict(
          {{"a", tensor_of<float>(DType::kFloat32, {1}, {1})},
           {"z", tensor_of<float>(DType::kFloat32, {1}, {1})}}),
      {.format = "safetensors"},
      fs));
  put_file(fs, "index.json", R"({"weight_map":{"a":"1"}})");
  const auto part = load("index.json", {}, fs);
  ASSERT_TRUE(part);
  EXPECT_THAT(
      to_string(part->warnings.at(0)),
      HasSubstr("W_INDEX_UNUSED: 1 of 2 tensors in '1' are not in the index "
                "and left out: 'z'"));
}

// A folder as transformers writes it.
void put_model(MemoryFs& fs, const std::string& ending) {
  const std::string format = ending == ".bin" ? "pt" : "safetensors";
  const std::string stem = "m/model-0000";
  ASSERT_TRUE(fs.create_directories("m"));
  ASSERT_TRUE(save(
      stem + "1-of-00002" + ending,
      one_tensor("a"),
      {.format = format},
      fs));
  ASSERT_TRUE(save(
      stem + "2-of-00002" + ending,
      one_tensor("b"),
      {.format = format},
      fs));
  put_file(
      fs,
      "m/model" + ending + ".index.json",
      R"({"weight_map":{"a":"model-00001-of-00002)" + ending +
          R"(","b":"model-00002-of-00002)" + ending + "\"}}");
}

TEST(ShardedFolder, IsReadByItsIndex) {
  for (const char* ending : {".bin", ".safetensors"}) {
    MemoryFs fs;
    put_model(fs, ending);
    const auto file = load("m", {}, fs);
    ASSERT_TRUE(file) << to_string(file.error());
    EXPECT_EQ(keys_of(file->root), (std::vector<std::string>{"a", "b"}));
    EXPECT_THAT(file->warnings, testing::IsEmpty());
    EXPECT_EQ(file->format, "sharded");
  }
}

// As `convert ... model.safetensors` leaves it in a folder of an old model.
TEST(ShardedIndex, WarnsOfAFileThatTheIndexIsNamedAfter) {
  MemoryFs fs;
  ASSERT_TRUE(fs.create_directories("m"));
  for (const char* path : {"m/old.safetensors", "m/model.safetensors"}) {
    ASSERT_TRUE(save(path, one_tensor("a"), {.format = "safetensors"}, fs));
  }
  put_file(
      fs,
      "m/model.safetensors.index.json",
      R"({"weight_map":{"a":"old.safetensors"}})");
  for (const char* path : {"m", "m/model.safetensors.index.json"}) {
    const auto file = load(path, {}, fs);
    ASSERT_TRUE(file) << to_string(file.error());
    ASSERT_EQ(file->warnings.size(), 1U) << path;
    EXPECT_EQ(
        to_string(file->warnings[0]),
        "W_INDEX_UNUSED: 'model.safetensors' is not in the index and left "
        "out");
  }
  MemoryFs own; // the only file, with an index of its own
  ASSERT_TRUE(save(
      "model.safetensors",
      one_tensor("a"),
      {.format = "safetensors"},
      own));
  put_file(
      own,
      "model.safetensors.index.json",
      R"({"weight_map":{"a":"model.safetensors"}})");
  const auto file = load("model.safetensors.index.json", {}, own);
  ASSERT_TRUE(file) << to_string(file.error());
  EXPECT_TRUE(file->warnings.empty());
}

// A shard with this `__metadata__`.
void put_shard(MemoryFs& fs, const std::string& name, std::string metadata) {
  put_file(
      fs,
      name,
      safetensors(
          R"({"__metadata__":)" + metadata + R"(,"w)" + name +
              R"(":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
          "a"));
}

TEST(ShardedIndex, JoinsTheMetadataOfItsFiles) {
  struct MetadataRow {
    const char* second = "";
    const char* joined = "";
    const char* warning = "";
  };
  for (const MetadataRow& row :
       {MetadataRow{R"({"k2":"y"})", R"({"k1":"x","k2":"y"})"},
        MetadataRow{R"({"k1":"x","k2":"y"})", R"({"k1":"x","k2":"y"})"},
        MetadataRow{R"({"k1":"x"})", R"({"k1":"x"})"},
        MetadataRow{
            R"({"k1":"z","k2":"y"})",
            R"({"k1":"x","k2":"y"})",
            "W_INDEX_UNUSED: 'b' has other values than the files before it, "
            "which are left out: '__metadata__.k1'"}}) {
    MemoryFs fs;
    put_shard(fs, "a", R"({"k1":"x"})");
    put_shard(fs, "b", row.second);
    put_file(fs, "index.json", R"({"weight_map":{"wa":"a","wb":"b"}})");
    const auto file = load("index.json", {}, fs);
    ASSERT_TRUE(file) << to_string(file.error());
    const auto& attributes = file->root.as_dict()->attributes;
    ASSERT_EQ(attributes.size(), 1U);
    EXPECT_EQ(to_json(attributes[0].second)->dump(), row.joined);
    EXPECT_EQ(
        file->warnings.empty() ? "" : to_string(file->warnings[0]),
        row.warning);
  }
}

// One parse of the index for all files that it names.
TEST(ShardedFolder, HasItsIndexReadOnceForAllFiles) {
  MemoryFs fs;
  put_model(fs, ".bin");
  const auto opened = [&fs](int times) {
    int opens = 0;
    FaultFs counted(fs, {.before = [&opens](std::string_view op) {
                      opens += op == "fs.open" ? 1 : 0;
                    }});
    const LoadOptions options{.use_mmap = false, .beside = make_folder_facts()};
    for (int i = 0; i < times; ++i) {
      const auto part = load("m/model-00002-of-00002.bin", options, counted);
      EXPECT_TRUE(part);
      EXPECT_EQ(part->warnings.size(), 1U);
    }
    return opens;
  };
  EXPECT_EQ(opened(5) - opened(1), 4);
}

TEST(ShardedFolder, OneFileOfItIsNamedAsAPart) {
  MemoryFs fs;
  put_model(fs, ".bin");
  const auto part = load("m/model-00002-of-00002.bin", {}, fs);
  ASSERT_TRUE(part);
  ASSERT_EQ(part->warnings.size(), 1U);
  EXPECT_THAT(
      to_string(part->warnings[0]),
      HasSubstr("W_SHARD: this is one of the 2 files of 'model.bin.index."));
}

TEST(ShardedFolder, OfTwoIndicesThatOfSafetensorsIsRead) {
  MemoryFs fs;
  put_model(fs, ".bin");
  put_model(fs, ".safetensors");
  EXPECT_TRUE(load("m", {}, fs));
  put_file(fs, "m/another.safetensors.index.json", R"({"weight_map":{}})");
  const auto file = load("m", {}, fs);
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().detail, "E_INDEX");
  EXPECT_THAT(file.error().message, HasSubstr("several indices"));
}

TEST(ShardedFolder, WithoutItsIndexDoesNotHintAtAPart) {
  MemoryFs fs;
  put_model(fs, ".bin");
  ASSERT_TRUE(fs.remove("m/model.bin.index.json"));
  const auto file = load("m", {}, fs);
  ASSERT_FALSE(file);
  EXPECT_THAT(
      to_string(file.error()),
      HasSubstr("2 files of a model and no index"));
}

struct BadIndex {
  const char* name;
  const char* text;
  const char* message;
  ErrorCode code = ErrorCode::kCorrupt;
};

class Index : public testing::TestWithParam<BadIndex> {};

TEST_P(Index, IsRefused) {
  const auto file = load_index(GetParam().text);
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().detail, "E_INDEX") << to_string(file.error());
  EXPECT_EQ(file.error().code, GetParam().code);
  EXPECT_THAT(to_string(file.error()), HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    Row63,
    Index,
    testing::Values(
        BadIndex{
            "Traversal",
            R"({"weight_map":{"a":"../secret"}})",
            "not the name of a file beside"},
        BadIndex{
            "Absolute",
            R"({"weight_map":{"a":"/etc/passwd"}})",
            "not the name of a file beside"},
        BadIndex{
            "Backslash",
            R"({"weight_map":{"a":"x\\y"}})",
            "not the name of a file beside"},
        BadIndex{"Parent", R"({"weight_map":{"a":".."}})", "not the name"},
        BadIndex{
            "Missing",
            R"({"weight_map":{"a":"3.bin"}})",
            "the file '3.bin' of tensor 'a' is missing",
            ErrorCode::kNotFound},
        BadIndex{
            "NotInFile",
            R"({"weight_map":{"x":"2.bin"}})",
            "'2.bin' has no tensor 'x'"},
        BadIndex{
            "Duplicate",
            R"({"weight_map":{"a":"1.safetensors","a":"2.bin"}})",
            "`a` appears twice"},
        BadIndex{
            "Cycle",
            R"({"weight_map":{"a":"index.json"}})",
            "is not a checkpoint"},
        BadIndex{"Number", R"({"weight_map":{"a":1}})", "expected a string"},
        BadIndex{"Json", R"({"weight_map":{"a")", "expected ':'"},
        BadIndex{
            "Nested",
            R"({"x":{"weight_map":{}}})",
            "has no 'weight_map'"}),
    [](const auto& row) { return std::string(row.param.name); });

TEST(ShardedIndex, NeedsAFolder) {
  const std::string text = R"({"weight_map":{}})";
  EXPECT_EQ(load_bytes(text).error().detail, "E_INDEX");
}

} // namespace
} // namespace lockstep::ckpt
