// SPDX-License-Identifier: BSD-3-Clause
//
// Rows 67 to 69: files that change while they are read, paths that are no
// files, and outputs that cannot be written.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>

#include "lockstep/base/internal/atomic_file.h"
#include "lockstep/ckpt/byte_source.h"
#include "lockstep/ckpt/load.h"
#include "tests/ckpt/bad_inputs/bad_input.h"
#include "tests/ckpt/bad_inputs/builders.h"
#include "tests/support/fault_fs.h"
#include "tests/support/memory_fs.h"
#include "tests/support/scratch_dir.h"
#include "tests/support/shell.h"

namespace lockstep::ckpt::bad_inputs {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const Tensor& weight_of(const Checkpoint& file) {
  return *file.root.find("w")->as_tensor();
}

TEST(Row67, AFileThatIsCutWhileOpenGivesAnError) {
  const test::ScratchDir folder;
  const std::string path = folder / "input.pt";
  std::ofstream(path, std::ios::binary) << checkpoint();
  const auto file = load(path, {.use_mmap = false});
  ASSERT_TRUE(file) << to_string(file.error());
  ASSERT_EQ(::truncate(path.c_str(), 40), 0);
  const auto bytes = weight_of(*file).storage->source->load();
  ASSERT_FALSE(bytes);
  EXPECT_EQ(bytes.error().detail, "E_TRUNCATED");
  EXPECT_EQ(bytes.error().path, path);
}

TEST(Row67, AFileThatIsCutAtAnyReadGivesAnError) {
  const std::string whole = checkpoint();
  const auto read_all = [](FileSystem& fs) -> Status {
    LOCKSTEP_ASSIGN(
        const Checkpoint file,
        load("input.pt", {.use_mmap = false}, fs));
    LOCKSTEP_TRY(weight_of(file).storage->source->load());
    return {};
  };
  MemoryFs memory;
  ASSERT_TRUE(write_file_atomically(memory, "input.pt", whole));
  FaultFs counting(memory);
  ASSERT_TRUE(read_all(counting));
  ASSERT_GT(counting.operations(), 10U);
  for (std::uint64_t i = 0; i < counting.operations(); ++i) {
    FaultFs faulty(memory, {.fail_at = i, .failures = FaultPlan::kNever});
    EXPECT_FALSE(read_all(faulty)) << i;
  }
}

TEST(Row67, AFileThatChangesWhileOpenFailsItsChecksum) {
  const test::ScratchDir folder;
  const std::string path = folder / "input.pt";
  const std::string whole = checkpoint();
  std::ofstream(path, std::ios::binary) << whole;
  const auto file = load(path, {.use_mmap = false});
  ASSERT_TRUE(file);
  std::string changed = whole;
  changed[whole.find("0123456789")] = 'x';
  std::ofstream(path, std::ios::binary) << changed;
  const auto bytes = weight_of(*file).storage->source->load();
  ASSERT_FALSE(bytes);
  EXPECT_EQ(bytes.error().detail, "E_CRC");
}

TEST(Row68, WhatIsNoRegularFileIsRefusedWithoutWaiting) {
  const test::ScratchDir folder;
  const std::string fifo = folder / "fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  const std::string loop = folder / "loop";
  ASSERT_EQ(::symlink(loop.c_str(), loop.c_str()), 0);
  for (const std::string& path : {fifo, loop, std::string("/dev/zero")}) {
    const auto file = load(path);
    ASSERT_FALSE(file) << path;
    EXPECT_EQ(file.error().detail, "E_NOT_REGULAR") << path;
    const auto run = test::run_shell(
        LOCKSTEP_BINARY_DIR "/bin/lockstep ckpt '" + path + "'");
    EXPECT_EQ(run.status, 3) << run.err;
    EXPECT_THAT(run.err, HasSubstr("E_NOT_REGULAR"));
  }
}

TEST(Row68, AnEmptyFolderIsRefused) {
  const test::ScratchDir folder;
  const auto file = load(folder.path());
  ASSERT_FALSE(file);
  EXPECT_EQ(error_info(file.error().code).exit_code, 3);
}

struct FolderCase {
  std::vector<std::string> names = {};
  std::string says = {};
};

TEST(Row68, AFolderIsExplained) {
  for (const FolderCase& folder_case :
       {FolderCase{{"data.pkl", "data/0", "version"}, "record data.pkl"},
        FolderCase{
            {"model/data.pkl", "model/data/0", "model/version"},
            "record data.pkl"},
        FolderCase{
            {"pickle", "storages", "sys_info", "tensors"},
            "record storages"},
        FolderCase{{"notes.txt", "model.pt"}, "model.pt"}}) {
    const test::ScratchDir folder;
    for (const std::string& name : folder_case.names) {
      const std::filesystem::path path = folder / name;
      std::filesystem::create_directories(path.parent_path());
      std::ofstream(path) << "x";
    }
    const auto file = load(folder.path());
    ASSERT_FALSE(file);
    EXPECT_EQ(error_info(file.error().code).exit_code, 3);
    EXPECT_THAT(to_string(file.error()), HasSubstr(folder_case.says));
  }
}

TEST(Row69, SavingOverTheInputKeepsItsBytes) {
  const test::ScratchDir folder;
  const std::string path = folder / "input.pt";
  std::ofstream(path, std::ios::binary) << checkpoint();
  const auto file = load(path);
  ASSERT_TRUE(file);
  ASSERT_TRUE(save(path, file->root));
  const auto again = load(path);
  ASSERT_TRUE(again) << to_string(again.error());
  const auto bytes = weight_of(*again).storage->source->load();
  ASSERT_TRUE(bytes);
  EXPECT_TRUE(std::ranges::equal(*bytes, as_byte_span("0123456789abcdef")));
  EXPECT_EQ(test::run_shell("unzip -tqq '" + path + "'").status, 0);
}

TEST(Row69, AFullDiskAndAKillLeaveInputAndOldOutput) {
  const std::string whole = checkpoint();
  const auto file = load(make_source(as_byte_span(whole)), "input");
  ASSERT_TRUE(file);
  MemoryFs counted;
  FaultFs counting(counted);
  ASSERT_TRUE(save("out.pt", file->root, {}, counting));
  for (std::uint64_t i = 0; i < counting.operations(); ++i) {
    for (const std::uint64_t failures : {std::uint64_t{1}, FaultPlan::kNever}) {
      MemoryFs disk;
      ASSERT_TRUE(write_file_atomically(disk, "out.pt", "old"));
      FaultFs faulty(
          disk,
          {.fail_at = i, .failures = failures, .error_number = ENOSPC});
      const Status status = save("out.pt", file->root, {}, faulty);
      const std::string after = read_text(disk, "out.pt").value();
      const bool is_new = load("out.pt", {}, disk).has_value();
      EXPECT_TRUE(after == "old" || is_new) << i;
      const bool is_lie = status && !is_new;
      EXPECT_FALSE(is_lie) << i;
      if (!status) {
        EXPECT_EQ(error_info(status.error().code).exit_code, 4) << i;
      }
      if (failures == 1) {
        EXPECT_THAT(disk.list(".").value(), ElementsAre("out.pt")) << i;
      }
    }
  }
}

} // namespace
} // namespace lockstep::ckpt::bad_inputs
