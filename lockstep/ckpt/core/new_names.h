// SPDX-License-Identifier: BSD-3-Clause
//
// A checkpoint of several files is there when its last file is; what a save
// that failed before that has made is removed.
//   NewNames made(fs, [&] { return fs.stat(metadata).has_value(); });
//   made.add(folder + "/__0_0.distcp"); // before it is written
#pragma once

#include <functional>
#include <ranges>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/base/fs.h"

namespace lockstep::ckpt::internal {

/// Ownership: `fs` outlives it.
class NewNames {
 public:
  /// `is_complete`: whether the file is there that completes the checkpoint.
  NewNames(FileSystem& fs, std::function<bool()> is_complete)
      : fs_(fs), is_complete_(std::move(is_complete)) {}
  NewNames(const NewNames&) = delete;
  NewNames& operator=(const NewNames&) = delete;
  ~NewNames() {
    if (is_complete_()) {
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

  /// Leaves `path`, which somebody else has made first.
  void forget(const std::string& path) {
    std::erase(made_, path);
  }

 private:
  [[nodiscard]] bool is_missing(const std::string& path) const {
    const auto info = fs_.stat(path);
    return !info && info.error().code == ErrorCode::kNotFound;
  }

  FileSystem& fs_;
  std::function<bool()> is_complete_;
  std::vector<std::string> made_;
};

} // namespace lockstep::ckpt::internal
