// SPDX-License-Identifier: BSD-3-Clause
//
// The temporary files that this process is writing, where a signal handler can
// find them; for atomic_file.cpp only.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace lockstep::internal {

/// Notes a path while it lives. Of more files at once than there is room for,
/// and of paths beyond the system's limit, the rest stays unknown: a signal
/// then leaves them behind, as a kill does.
class TemporaryPath {
 public:
  explicit TemporaryPath(const std::string& path);
  TemporaryPath(const TemporaryPath&) = delete;
  TemporaryPath& operator=(const TemporaryPath&) = delete;
  ~TemporaryPath();

 private:
  std::optional<std::size_t> slot_ = {};
};

/// Removes what is noted. Safe in a signal handler.
void remove_noted_temporaries();

} // namespace lockstep::internal
