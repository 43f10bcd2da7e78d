// SPDX-License-Identifier: BSD-3-Clause
//
// What each command of `lockstep ckpt` does with a file, without its output.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/ckpt/load.h"
#include "tests/ckpt/counted_source.h"
#include "tests/support/memory_fs.h"

namespace lockstep::ckpt::growth {

/// A file or folder that is used once.
struct Subject {
  /// Null for a folder.
  std::shared_ptr<CountedSource> source = {};
  /// Of a folder.
  std::shared_ptr<MemoryFs> fs = {};
  std::string path = "f.pt";
  /// With the budget that counts.
  Limits limits = {};

  [[nodiscard]] Result<Checkpoint> load() const;
};

struct Use {
  /// "pick", "to dcp".
  std::string name = {};
  std::function<Status(const Subject&)> run = {};
  /// Off: for single files only.
  bool takes_folders = true;
  /// Units: bytes and a thousandth as many allocations, in any case.
  double free_bytes = 1 << 20;
  /// Windows on the file grow by leaps: what is read and done does, too.
  bool leaps = false;
};

/// The whole table.
std::vector<Use> uses();

} // namespace lockstep::ckpt::growth
