// SPDX-License-Identifier: BSD-3-Clause
#include <gmock/gmock.h>

#include "lockstep/base/strings.h"
#include "tests/ckpt/formats/safetensors/safetensors_fixture.h"
#include "tests/ckpt/logical_bytes.h"
#include "tests/ckpt/value_fixture.h"
#include "tests/support/fault_fs.h"
#include "tests/support/memory_fs.h"
#include "tests/support/python.h"
#include "tests/support/scratch_dir.h"

namespace lockstep::ckpt {
namespace {

using testing::HasSubstr;

// A file of one rank: a piece `w` with its place.
std::string piece(
    const std::string& shape,
    const std::string& offsets,
    const std::string& data) {
  return safetensors(
      R"({"__metadata__":{"DCP_SHARDING_INFO":"{\"w\": {\"saved_offsets\": )" +
          offsets + R"(}}"},"w":{"dtype":"U8","shape":)" + shape +
          R"(,"data_offsets":[0,)" + std::to_string(data.size()) + "]}}",
      data);
}

class Pieces : public testing::Test {
 protected:
  void put(int number, const std::string& bytes) {
    ASSERT_TRUE(fs_.create_directories("d"));
    auto file = fs_.create(name(number), 0644);
    ASSERT_TRUE(file);
    ASSERT_TRUE((*file)->write(as_byte_span(bytes)));
  }
  static std::string name(int number) {
    return "d/shard-0000" + std::to_string(number) +
           "-model-00001-of-00001.safetensors";
  }
  std::string error() {
    const auto file = load("d", {}, fs_);
    return file ? "" : to_string(file.error());
  }

  MemoryFs fs_;
};

TEST_F(Pieces, OfAFolderAreOneTensor) {
  put(1, piece("[1,3]", "[0, 0]", "abc"));
  put(2, piece("[2,1]", "[1, 0]", "dg"));
  put(3, piece("[2,2]", "[1, 1]", "efhi"));
  for (const bool use_mmap : {true, false}) {
    const auto file = load("d", {.use_mmap = use_mmap}, fs_);
    ASSERT_TRUE(file) << to_string(file.error());
    EXPECT_EQ(file->format, "safetensors-pieces");
    EXPECT_THAT(file->warnings, testing::IsEmpty());
    const Tensor& whole = *file->root.find("w")->as_tensor();
    EXPECT_EQ(whole.sizes, (std::vector<std::int64_t>{3, 3}));
    EXPECT_EQ(*logical_bytes(whole), "abcdefghi");
  }
}

TEST_F(Pieces, OfOneFileAreNamed) {
  put(1, piece("[1,3]", "[0, 0]", "abc"));
  put(2, piece("[2,1]", "[1, 0]", "dg"));
  put(3, piece("[2,2]", "[1, 1]", "efhi"));
  const auto warning = [&](int number) {
    const auto file = load(name(number), {}, fs_);
    return file && file->warnings.size() == 1 ? to_string(file->warnings[0])
                                              : "";
  };
  EXPECT_THAT(warning(1), HasSubstr("W_SHARD: 'w' is rows 0..1 of 3:"));
  EXPECT_THAT(warning(3), HasSubstr("'w' is [1:3, 1:3] of [3, 3]:"));
  ASSERT_TRUE(fs_.remove(name(1)));
  ASSERT_TRUE(fs_.remove(name(3)));
  EXPECT_THAT(warning(2), HasSubstr("its tensors may be pieces"));
  EXPECT_TRUE(load(name(2), {.strict = true}, fs_).error().detail == "W_SHARD");
}

TEST_F(Pieces, OfSomeFilesAreNamedAsAPart) {
  ASSERT_TRUE(fs_.create_directories("d"));
  const auto put_part = [this](const std::string& path, const char* offsets) {
    auto file = fs_.create(path, 0644);
    ASSERT_TRUE(file);
    const std::string bytes = piece("[1]", offsets, "a");
    ASSERT_TRUE((*file)->write(as_byte_span(bytes)));
  };
  const auto warning = [this] {
    const auto file = load("d", {}, fs_);
    return file && file->warnings.size() == 1 ? to_string(file->warnings[0])
                                              : "";
  };
  put_part("d/shard-00000-model-00001-of-00003.safetensors", "[0]");
  put_part("d/shard-00001-model-00002-of-00003.safetensors", "[1]");
  EXPECT_THAT(warning(), HasSubstr("W_SHARD: 2 of 3 files of the model are"));
  EXPECT_THAT(warning(), HasSubstr("'00003-of-00003'"));
  const auto one =
      load("d/shard-00001-model-00002-of-00003.safetensors", {}, fs_);
  ASSERT_TRUE(one);
  EXPECT_THAT(to_string(one->warnings.at(0)), HasSubstr("2 of 3 files"));
  put_part("d/shard-00000-model-00003-of-00003.safetensors", "[2]");
  EXPECT_EQ(warning(), "");
}

TEST_F(Pieces, ThatEndNowhereAreNamed) {
  put(1, piece("[1]", "[9223372036854775807]", "a"));
  put(2, piece("[1]", "[0]", "b"));
  const auto file = load(name(1), {}, fs_);
  ASSERT_TRUE(file) << to_string(file.error());
  ASSERT_EQ(file->warnings.size(), 1U);
  EXPECT_THAT(
      to_string(file->warnings[0]),
      HasSubstr("'w' is said to begin at 9223372036854775807, behind which"));
  EXPECT_THAT(error(), HasSubstr("ends nowhere"));
}

// Each header is read for itself and once for all others.
TEST_F(Pieces, OfManyFilesAreReadOnce) {
  const auto opened = [this](int files_before, int files) {
    for (int i = files_before; i < files; ++i) {
      put(i, piece("[1]", format("[{}]", i), "a"));
    }
    int opens = 0;
    FaultFs counted(fs_, {.before = [&opens](std::string_view op) {
                      opens += op == "fs.open" ? 1 : 0;
                    }});
    const LoadOptions options{.use_mmap = false, .beside = make_folder_facts()};
    for (int i = 0; i < files; ++i) {
      const auto file = load(name(i), options, counted);
      EXPECT_TRUE(file);
      EXPECT_EQ(file->warnings.size(), 1U);
    }
    return opens;
  };
  EXPECT_EQ(opened(0, 4), 8);
  EXPECT_EQ(opened(4, 8), 16);
}

TEST_F(Pieces, ThatDoNotMakeATensorAreRefused) {
  put(1, piece("[1,3]", "[0, 0]", "abc"));
  put(2, piece("[1,3]", "[2, 0]", "ghi"));
  EXPECT_THAT(error(), HasSubstr("leave a gap"));
  put(3, piece("[2,3]", "[1, 0]", "defghi"));
  EXPECT_THAT(error(), HasSubstr("overlap"));
}

TEST_F(Pieces, ThatSayNoPlaceAreRefused) {
  put(1, piece("[1,3]", "[0]", "abc"));
  EXPECT_THAT(error(), HasSubstr("does not say where tensor 'w' begins"));
  EXPECT_EQ(load("d", {}, fs_).error().detail, "E_DCP_METADATA");
}

TEST_F(Pieces, OfDifferentTypesAreRefused) {
  put(1, piece("[1,3]", "[0, 0]", "abc"));
  put(2, piece("[3]", "[3]", "abc"));
  EXPECT_THAT(error(), HasSubstr("differ in type or dimensions"));
}

TEST(PiecesOracle, AreReadAsPyTorchReadsThem) {
  const test::ScratchDir dir;
  const auto lines =
      test::python_lines("ckpt_safetensors_pieces.py", {dir.path()});
  ASSERT_EQ(lines.size(), 3U);
  const auto file = load(dir.path());
  ASSERT_TRUE(file) << to_string(file.error());
  std::vector<std::string> ours;
  for (const auto& [key, value] : file->root.as_dict()->items) {
    const Tensor& tensor = *value.as_tensor();
    std::string line = std::string(key.text());
    for (const std::int64_t size : tensor.sizes) {
      line += " " + std::to_string(size);
    }
    ours.push_back(line + " " + std::to_string(*logical_crc(tensor)));
  }
  EXPECT_THAT(ours, testing::UnorderedElementsAreArray(lines));
}

} // namespace
} // namespace lockstep::ckpt
