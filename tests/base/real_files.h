// SPDX-License-Identifier: BSD-3-Clause
//
// Files of the real file system in a folder of their own, put and read back.
#pragma once

#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "lockstep/base/fs.h"
#include "tests/support/scratch_dir.h"

namespace lockstep::test {

class RealFiles : public ::testing::Test {
 protected:
  /// Puts `text` into a new file and returns its path.
  std::string put(std::string_view name, std::string_view text) {
    std::string path = dir_ / name;
    const auto file = fs_.create(path, 0644).value();
    file->write(as_byte_span(text)).value();
    file->close().value();
    return path;
  }
  std::string get(const std::string& path) {
    return read_text(fs_, path).value();
  }

  FileSystem& fs_ = real_fs();
  ScratchDir dir_;
};

} // namespace lockstep::test
