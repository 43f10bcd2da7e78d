// SPDX-License-Identifier: BSD-3-Clause
//
// What is beside a file: the files of its indices, the pieces in other files.
// Loads of many files of one folder share it (`LoadOptions::beside`), so that
// an index or a header is read once, not once for each file.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "lockstep/ckpt/checkpoint.h"

namespace lockstep::ckpt {

/// Facts of folders, read when first asked for and never again.
class FolderFacts {
 public:
  /// An index, and the files that it names.
  struct Index {
    std::string name = {};
    std::set<std::string> files = {};
  };
  /// Safetensors files with pieces of tensors, and how far the pieces of each
  /// tensor reach.
  struct Pieces {
    std::set<std::string> files = {};
    std::map<std::string, std::vector<std::int64_t>> extents = {};
    /// That there are fewer files than their names count.
    std::vector<Warning> missing = {};
  };

  // Hidden: a public header names the class, which would show its functions.
  /// `read` is called for a folder that is new.
  [[gnu::visibility("hidden")]] const std::vector<Index>& indices(
      const std::string& folder,
      const std::function<std::vector<Index>()>& read);
  [[gnu::visibility("hidden")]] const Pieces& pieces(
      const std::string& folder,
      const std::function<Pieces()>& read);

 private:
  std::map<std::string, std::vector<Index>> indices_;
  std::map<std::string, Pieces> pieces_;
};

} // namespace lockstep::ckpt
