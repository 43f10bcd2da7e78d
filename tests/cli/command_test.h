// SPDX-License-Identifier: BSD-3-Clause
//
// A folder in which `lockstep ckpt` runs, for tests of what commands leave
// there.
//   put("tiny.pt", "m.pt");
//   EXPECT_EQ(run("prefix m.pt"), 0) << text("err.txt");
#pragma once

#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "lockstep/base/fs.h"
#include "lockstep/base/strings.h"
#include "lockstep/ckpt/load.h"
#include "lockstep/ckpt/verify.h"
#include "lockstep/ckpt/walk.h"
#include "tests/cli/program.h"
#include "tests/support/scratch_dir.h"

namespace lockstep::test {

class CommandTest : public testing::Test {
 protected:
  /// Exit status of a line of the shell, run in the folder.
  [[nodiscard]] int shell(const std::string& line) const {
    const std::string command =
        format("cd '{}' || exit\n{}", dir_.path(), line);
    // NOLINTNEXTLINE(concurrency-mt-unsafe): one thread
    return WEXITSTATUS(std::system(command.c_str()));
  }
  /// Exit status of `lockstep ckpt args`.
  [[nodiscard]] int run(const std::string& args) const {
    return shell(format("'{}' ckpt {} >out.txt 2>err.txt", kProgram, args));
  }
  /// A file of testdata/valid.
  void put(const std::string& name, const std::string& as) const {
    std::filesystem::copy(
        LOCKSTEP_SOURCE_DIR "/testdata/valid/" + name,
        dir_ / as);
  }
  [[nodiscard]] std::string text(const std::string& name) const {
    return read_text(real_fs(), dir_ / name).value();
  }
  /// Those of the tensors of a sound file.
  [[nodiscard]] std::vector<std::string> names(const std::string& file) const {
    std::vector<std::string> names;
    const auto loaded = ckpt::load(dir_ / file).value();
    ckpt::for_each_tensor(
        loaded.root,
        [&names](const std::string& name, const ckpt::Tensor&) {
          names.push_back(name);
        })
        .value();
    EXPECT_TRUE(ckpt::verify(dir_ / file).value().is_sound());
    return names;
  }
  [[nodiscard]] std::string path(const std::string& name) const {
    return dir_ / name;
  }

 private:
  ScratchDir dir_;
};

} // namespace lockstep::test
