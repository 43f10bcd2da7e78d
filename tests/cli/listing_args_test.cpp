// SPDX-License-Identifier: BSD-3-Clause
//
// Where `ckpt ls`, `tree` and `show` say that bytes lie: what is true for each
// format.
#include <array>
#include <fstream>

#include <gmock/gmock.h>

#include "lockstep/base/strings.h"
#include "tests/ckpt/zip/zip_fixture.h"
#include "tests/cli/program.h"
#include "tests/support/scratch_dir.h"
#include "tests/support/shell.h"

namespace lockstep {
namespace {

using test::run_shell;
using testing::HasSubstr;

// A file of `tiny.pt`'s tensor in another format, and its place there.
struct Place {
  const char* format = "";
  const char* file = "";
  const char* place = "";
};

constexpr std::array kPlaces{
    Place{"pt", "t.pt", "data/0"},
    Place{"pt-legacy", "t.pth", "key 0"},
    Place{"libtorch", "t.pt", "data/0"},
    Place{"safetensors", "t.safetensors", "own"},
    Place{"npz", "t.npz", "own"},
    Place{"dcp", "folder", "own"}};

class StoragePlace : public testing::TestWithParam<Place> {};

TEST_P(StoragePlace, IsOfTheFormat) {
  const test::ScratchDir folder;
  const std::string file = folder / GetParam().file;
  const auto convert = run_shell(format(
      "'{}' ckpt convert --to {} testdata/valid/tiny.pt '{}'",
      test::kProgram,
      GetParam().format,
      file));
  ASSERT_EQ(convert.status, 0) << convert.err;
  const auto ls = run_shell(format("'{}' ckpt ls '{}'", test::kProgram, file));
  EXPECT_EQ(ls.out, format("w  float32   [2]  {:<9} cpu\n", GetParam().place));
  const auto tree =
      run_shell(format("'{}' ckpt tree -l '{}'", test::kProgram, file));
  EXPECT_THAT(tree.out, HasSubstr(format("  {}  cpu", GetParam().place)));
  const auto show =
      run_shell(format("'{}' ckpt show '{}' w", test::kProgram, file));
  EXPECT_THAT(
      show.out,
      HasSubstr(format("storage    {}, offset 0", GetParam().place)));
}

INSTANTIATE_TEST_SUITE_P(
    Formats,
    StoragePlace,
    testing::ValuesIn(kPlaces),
    [](const auto& param) {
      std::string name = param.param.format;
      std::erase(name, '-');
      return name;
    });

// TorchScript of torch 1.0 to 1.2: the storage's key is the record's name.
TEST(StoragePlaces, OldTorchScriptNamesTheRecord) {
  ckpt::ZipBytes zip;
  zip.add("net/version", "2\n");
  zip.add("net/tensors/0", std::string(8, '\1'));
  zip.add(
      "net/model.json",
      R"({"mainModule": {"parameters": [{"tensorId": "0", "name": "w"}]},
          "tensors": [{"dims": [], "offset": "0", "strides": [],
            "dataType": "INT64", "data": {"key": "tensors/0"}}]})");
  const test::ScratchDir folder;
  const std::string file = folder / "net.pt";
  std::ofstream(file, std::ios::binary) << zip.finish();
  const auto ls = run_shell(format("'{}' ckpt ls '{}'", test::kProgram, file));
  EXPECT_EQ(ls.out, "w  int64     []  tensors/0 cpu\n");
}

} // namespace
} // namespace lockstep
