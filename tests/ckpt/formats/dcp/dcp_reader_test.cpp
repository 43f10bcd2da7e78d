// SPDX-License-Identifier: BSD-3-Clause
#include <gmock/gmock.h>

#include "lockstep/ckpt/core/budget.h"
#include "lockstep/ckpt/formats/dcp/dcp_metadata_pickle.h"
#include "lockstep/ckpt/load.h"
#include "tests/ckpt/logical_bytes.h"
#include "tests/ckpt/pickle/pickle_fixture.h"
#include "tests/ckpt/value_fixture.h"
#include "tests/support/memory_fs.h"

namespace lockstep::ckpt {
namespace {

using testing::HasSubstr;

void put(MemoryFs& fs, const std::string& path, const std::string& bytes) {
  auto file = fs.append(path);
  ASSERT_TRUE(file);
  ASSERT_TRUE((*file)->write(as_byte_span(bytes)));
}

// One tensor `w` of [2, 3] cut into boxes, each saved as an item.
class DcpFolder {
 public:
  DcpFolder() {
    EXPECT_TRUE(fs.create_directories("d"));
    item.name = "w";
    item.path = {"w"};
    item.is_tensor = true;
    item.dtype = DType::kUInt8;
    item.sizes = {2, 3};
  }

  DcpChunk& add(
      const std::string& bytes,
      const std::vector<std::int64_t>& offsets,
      const std::vector<std::int64_t>& sizes) {
    MemoryFs other;
    EXPECT_TRUE(save(
        "x",
        bytes_tensor(bytes, sizes),
        {.archive_name = "archive"},
        other));
    const std::string archive = *read_text(other, "x");
    item.chunks.push_back(
        {.offsets = offsets,
         .sizes = sizes,
         .place = {
             .file = "__0_0.distcp",
             .offset = data.size(),
             .length = archive.size()}});
    data += archive;
    return item.chunks.back();
  }

  Result<Checkpoint> load_it() {
    put(fs, "d/__0_0.distcp", data);
    put(fs,
        "d/.metadata",
        metadata.empty() ? dcp_metadata_pickle({item}) : metadata);
    return load("d", {}, fs);
  }

  MemoryFs fs;
  DcpItem item;
  std::string data;
  std::string metadata;
};

TEST(DcpReader, SaysThatAPartIsNoCheckpoint) {
  DcpFolder folder;
  folder.add("abcdef", {0, 0}, {2, 3});
  folder.metadata = "\x80\x02}."; // of no checkpoint
  const auto whole = folder.load_it();
  ASSERT_FALSE(whole);
  EXPECT_THAT(whole.error().hint, testing::Not(HasSubstr("name its folder")));
  put(folder.fs, "d/__0_1.distcp", "no archive");
  for (const char* part : {"d/.metadata", "d/__0_1.distcp"}) {
    const auto file = load(part, {}, folder.fs);
    ASSERT_FALSE(file) << part;
    EXPECT_THAT(file.error().hint, HasSubstr("name its folder")) << part;
  }
}

TEST(DcpReader, AssemblesChunksOfSeveralRanks) {
  DcpFolder folder;
  folder.add("be", {0, 1}, {2, 1});
  folder.add("ad", {0, 0}, {2, 1});
  folder.add("c", {0, 2}, {1, 1});
  folder.add("f", {1, 2}, {1, 1});
  const auto file = folder.load_it();
  ASSERT_TRUE(file) << to_string(file.error());
  EXPECT_EQ(file->format, "dcp");
  EXPECT_EQ(*logical_bytes(*file->root.find("w")->as_tensor()), "abcdef");
}

TEST(DcpReader, RefusesNamesThatPyTorchWouldCall) {
  DcpFolder folder;
  folder.metadata = std::string(
      "\x80\x02"
      "cos\nsystem\nX\x02\0\0\0id\x85R.",
      23);
  const auto file = folder.load_it();
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().detail, "E_UNSAFE_GLOBAL") << to_string(file.error());
  EXPECT_THAT(file.error().message, HasSubstr("os.system"));
}

// `metadata` with the memory format spelled `getattr(OWNER, NAME)`.
std::string with_lookup(
    std::string metadata,
    const std::string& owner,
    const std::string& name) {
  const std::string global =
      "ctorch.distributed.checkpoint.metadata\n_MEM_FORMAT_ENCODING\n";
  const std::size_t begin = metadata.find(global);
  const std::size_t end = metadata.find('R', begin + global.size());
  const auto length = static_cast<char>(name.size());
  return metadata.replace(
      begin,
      end + 1 - begin,
      "cbuiltins\ngetattr\nc" + owner + "\nX" +
          std::string({length, '\0', '\0', '\0'}) + name + "\x86R");
}

// Python 3.11.2, Debian 12's, writes members of enums so.
TEST(DcpReader, ReadsMembersThatAreLookedUp) {
  const std::string formats =
      "torch.distributed.checkpoint.metadata\n_MEM_FORMAT_ENCODING";
  DcpFolder folder;
  folder.add("abcdef", {0, 0}, {2, 3});
  const std::string metadata = dcp_metadata_pickle({folder.item});
  folder.metadata = with_lookup(metadata, formats, "TORCH_CONTIGUOUS_FORMAT");
  EXPECT_TRUE(folder.load_it());
  struct Lookup {
    std::string owner = {};
    std::string name = {};
  };
  for (const auto& [owner, name] :
       {Lookup{formats, "__class__"},
        Lookup{"torch.storage\nUntypedStorage", "from_file"}}) {
    DcpFolder bad;
    bad.add("abcdef", {0, 0}, {2, 3});
    bad.metadata = with_lookup(metadata, owner, name);
    const auto file = bad.load_it();
    ASSERT_FALSE(file) << name;
    EXPECT_EQ(file.error().detail, "E_UNSAFE_GLOBAL") << name;
  }
}

struct BadFolder {
  const char* name;
  const char* detail;
  void (*damage)(DcpFolder& folder);
};

class Folder : public testing::TestWithParam<BadFolder> {};

TEST_P(Folder, GivesItsError) {
  DcpFolder folder;
  folder.add("abc", {0, 0}, {1, 3});
  folder.add("def", {1, 0}, {1, 3});
  GetParam().damage(folder);
  const auto file = folder.load_it();
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().detail, GetParam().detail) << to_string(file.error());
}

INSTANTIATE_TEST_SUITE_P(
    Row65,
    Folder,
    testing::Values(
        BadFolder{
            "Gap",
            "E_DCP_COVERAGE",
            [](DcpFolder& f) { f.item.chunks.pop_back(); }},
        BadFolder{
            "Overlap",
            "E_DCP_COVERAGE",
            [](DcpFolder& f) {
              f.item.chunks[1].offsets = {0, 1};
              f.item.chunks[1].sizes = {2, 2};
            }},
        BadFolder{
            "Outside",
            "E_DCP_COVERAGE",
            [](DcpFolder& f) {
              f.item.chunks[1].offsets = {2, 0};
            }},
        BadFolder{
            "Huge",
            "E_DCP_COVERAGE",
            [](DcpFolder& f) {
              f.item.chunks[1].offsets = {INT64_MAX, INT64_MAX};
            }},
        BadFolder{
            "Rank",
            "E_DCP_COVERAGE",
            [](DcpFolder& f) { f.item.chunks[1].sizes = {3}; }},
        BadFolder{
            "Overflow",
            "E_OVERFLOW",
            [](DcpFolder& f) {
              f.item.sizes = {INT64_MAX, 2};
            }},
        BadFolder{
            "EmptyOverflow",
            "E_OVERFLOW",
            [](DcpFolder& f) {
              f.item.sizes = {INT64_MAX, INT64_MAX, INT64_MAX, 0};
            }},
        BadFolder{
            "Amplified",
            "E_STORAGE_SHORT",
            [](DcpFolder& f) {
              f.item.chunks.pop_back();
              f.item.sizes = {1'000'000, 1'000'000};
              f.item.chunks[0].sizes = f.item.sizes;
            }},
        BadFolder{
            "SameBytesTwice",
            "E_OVERLAP",
            [](DcpFolder& f) {
              f.item.chunks[1].place = f.item.chunks[0].place;
            }},
        BadFolder{
            "BehindTheFile",
            "E_BOUNDS",
            [](DcpFolder& f) { f.item.chunks[1].place.length += 1; }},
        BadFolder{
            "OffsetOverflow",
            "E_BOUNDS",
            [](DcpFolder& f) { f.item.chunks[1].place.offset = INT64_MAX; }},
        BadFolder{
            "Traversal",
            "E_NAME",
            [](DcpFolder& f) { f.item.chunks[1].place.file = "../x.distcp"; }},
        BadFolder{
            "Absolute",
            "E_NAME",
            [](DcpFolder& f) { f.item.chunks[1].place.file = "/etc/passwd"; }},
        BadFolder{
            "MissingFile",
            "E_NO_STORAGE",
            [](DcpFolder& f) { f.item.chunks[1].place.file = "__1_0.distcp"; }},
        BadFolder{
            "HugeList",
            "E_LIMIT",
            [](DcpFolder& f) {
              f.item.path = {"w", std::int64_t{1} << 60};
            }},
        BadFolder{
            "Noise",
            "E_STACK",
            [](DcpFolder& f) { f.metadata = "\x80\x02)}s."; }},
        BadFolder{
            "EmptyDictInAnItem",
            "E_DCP_METADATA",
            [](DcpFolder& f) {
              f.metadata = dcp_metadata_pickle(
                  {f.item},
                  {{.position = 1, .path = {"w", "x"}}});
            }},
        BadFolder{
            "EmptyDictWithoutPath",
            "E_DCP_METADATA",
            [](DcpFolder& f) {
              f.metadata = dcp_metadata_pickle({f.item}, {{.position = 1}});
            }},
        BadFolder{
            "EmptyDictTooDeep",
            "E_DEPTH",
            [](DcpFolder& f) {
              f.metadata = dcp_metadata_pickle(
                  {f.item},
                  {{.path = std::vector<PathStep>(kMaxDcpPath + 1, "x")}});
            }},
        BadFolder{
            "OtherPickle",
            "E_DCP_METADATA",
            [](DcpFolder& f) { f.metadata = "\x80\x02}."; }}),
    [](const auto& row) { return std::string(row.param.name); });

// Metadata with `count` empty dicts at one path of `steps` steps, each the same
// key of `bytes` bytes. Key and path are there once.
std::string
repeated_path(std::size_t bytes, std::size_t steps, std::size_t count) {
  Pickle p;
  p.global("torch.distributed.checkpoint.metadata", "Metadata");
  p.op(')').op(0x81).op('}').mark();
  for (const char* name :
       {"state_dict_metadata", "planner_data", "storage_data"}) {
    p.text(name).op('}');
  }
  p.text(kDcpEmpty).op(']').mark();
  p.mark().op('K').number(0, 1).text(std::string(bytes, 'a')).put(0);
  for (std::size_t i = 1; i < steps; ++i) {
    p.get(0);
  }
  p.op('t').put(1);
  for (std::size_t i = 1; i < count; ++i) {
    p.get(1);
  }
  return p.op('e').op('u').op('b').stop().bytes();
}

// Memory for all elements up to that number would be the file's to choose.
TEST(DcpReader, RefusesAListOfFarMoreElementsThanEntries) {
  for (const std::int64_t last : {90'000, 19'999'999}) {
    DcpFolder folder;
    folder.add("abcdef", {0, 0}, {2, 3});
    folder.item.path = {"w", last};
    const auto file = folder.load_it();
    EXPECT_EQ(file.has_value(), last < 100'000);
    if (!file) {
      EXPECT_EQ(file.error().detail, "E_LIMIT") << to_string(file.error());
    }
  }
}

// A gigabyte of paths.
TEST(DcpReader, RefusesPathsThatAreFarLargerThanTheFile) {
  DcpFolder folder;
  folder.metadata = repeated_path(10'000, kMaxDcpPath, 500);
  EXPECT_LT(folder.metadata.size(), 12'000U);
  const auto file = folder.load_it();
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().detail, "E_LIMIT") << to_string(file.error());

  DcpFolder small;
  small.metadata = repeated_path(10, kMaxDcpPath, 500);
  EXPECT_TRUE(small.load_it());
}

TEST(DcpReader, CountsStepsBeforeItCopiesThem) {
  DcpFolder folder;
  folder.metadata = repeated_path(1'000'000, 60'000, 1);
  const auto file = folder.load_it();
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().detail, "E_DEPTH") << to_string(file.error());
}

// The path of an item costs more than its steps do in the pickle.
TEST(DcpReader, CountsThePathsOfItems) {
  DcpItem deep{.name = "w"};
  deep.path = std::vector<PathStep>(kMaxDcpPath, "x");
  const auto made_of = [](const DcpItem& item) {
    const std::string metadata = dcp_metadata_pickle({item});
    const Limits limits = counting({}, metadata.size());
    EXPECT_TRUE(read_dcp_metadata(as_byte_span(metadata), limits));
    return limits.budget->made();
  };
  EXPECT_GE(
      made_of(deep),
      made_of({.name = "w", .path = {"x"}}) +
          (kMaxDcpPath - 1) * sizeof(PathStep));
}

TEST(DcpReader, NoticesAnItemThatHoldsAnotherTensor) {
  DcpFolder folder;
  folder.add("abcdef", {0, 0}, {3, 2});
  folder.item.chunks[0].sizes = {2, 3};
  const auto file = folder.load_it();
  ASSERT_TRUE(file) << to_string(file.error());
  const auto bytes = file->root.find("w")->as_tensor()->storage->source->load();
  ASSERT_FALSE(bytes);
  EXPECT_EQ(bytes.error().detail, "E_DCP_COVERAGE");
}

TEST(DcpReader, WarnsOfBytesBehindThePickle) {
  DcpFolder folder;
  folder.add("abcdef", {0, 0}, {2, 3});
  folder.metadata = dcp_metadata_pickle({folder.item}) + "xyz";
  const auto file = folder.load_it();
  ASSERT_TRUE(file) << to_string(file.error());
  ASSERT_EQ(file->warnings.size(), 1U);
  EXPECT_THAT(
      to_string(file->warnings[0]),
      HasSubstr("W_TRAILING: 3 bytes follow the pickle of '.metadata' at 0x"));
  EXPECT_FALSE(load("d", {.strict = true}, folder.fs));
}

TEST(DcpReader, SaysThatASaveDidNotFinish) {
  MemoryFs fs;
  ASSERT_TRUE(fs.create_directories("d"));
  put(fs, "d/__0_0.distcp", "x");
  const auto file = load("d", {}, fs);
  ASSERT_FALSE(file);
  EXPECT_THAT(file.error().message, HasSubstr("did not finish"));
}

TEST(DcpReader, LeavesOtherFoldersAlone) {
  MemoryFs fs;
  ASSERT_TRUE(fs.create_directories("d"));
  EXPECT_EQ(load("d", {}, fs).error().detail, "E_WRONG_FORMAT");
}

} // namespace
} // namespace lockstep::ckpt
