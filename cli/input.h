// SPDX-License-Identifier: BSD-3-Clause
//
// Opens the file that a command names, or standard input for "-".
#pragma once

#include <memory>
#include <string>

#include "lockstep/ckpt/byte_source.h"
#include "lockstep/ckpt/load.h"

namespace lockstep::cli {

/// The input's bytes, or a folder's path. Files are read on demand, not mapped:
/// somebody may cut them meanwhile.
class Input {
 public:
  /// Errors: kNotFound, kIo.
  static Result<Input> open(const std::string& file);

  /// Null for a folder.
  [[nodiscard]] const std::shared_ptr<ckpt::ByteSource>& source() const {
    return source_;
  }
  /// For messages: the path, or "standard input".
  [[nodiscard]] const std::string& name() const {
    return name_;
  }
  /// Errors: as `ckpt::load`.
  [[nodiscard]] Result<ckpt::Checkpoint> load(
      const ckpt::LoadOptions& options = {.use_mmap = false}) const;

 private:
  [[nodiscard]] Result<ckpt::Checkpoint> load_any(
      const ckpt::LoadOptions& options) const;

  std::shared_ptr<ckpt::ByteSource> source_;
  std::string name_;
  bool is_file_ = false;
};

} // namespace lockstep::cli
