// SPDX-License-Identifier: BSD-3-Clause
//
// A checkpoint of several files is there when its last file is; what a save
// that failed before that has made is removed.
//   NewNames made(fs, folder + "/.metadata");
//   made.add(folder + "/__0_0.distcp"); // before it is written
#pragma once

#include <ranges>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/base/fs.h"

namespace lockstep::ckpt::internal {

/// Ownership: `fs` outlives it.
class NewNames {
 public:
  /// `last`: the file that completes the checkpoint.
  NewNames(FileSystem& fs, std::string last)
      : fs_(fs), last_(std::move(last)) {}
  NewNames(const NewNames&) = delete;
  NewNames& operator=(const NewNames&) = delete;
  ~NewNames() {
    if (!is_missing(last_)) {
      return;
    }
    for (const std::string& path : std::views::reverse(made_)) {
      static_cast<void>(fs_.remove(path));
    }
  }

  /// Remembers `path`, which is about to be made, if nothing is there yet.
  void add(const std::string& path) {
    if (is_missing(path)) {
      made_.push_back(path);
    }
  }

 private:
  [[nodiscard]] bool is_missing(const std::string& path) const {
    const auto info = fs_.stat(path);
    return !info && info.error().code == ErrorCode::kNotFound;
  }

  FileSystem& fs_;
  std::string last_;
  std::vector<std::string> made_;
};

} // namespace lockstep::ckpt::internal
