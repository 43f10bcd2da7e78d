// SPDX-License-Identifier: BSD-3-Clause
//
// A folder that lives as long as a test.
//   const ScratchDir dir;
//   save(value, dir / "weights.pt");
#pragma once

#include <string>
#include <string_view>

namespace lockstep::test {

/// A new empty folder under the system's temporary folder; removed with all it
/// holds when the object ends.
class ScratchDir {
 public:
  ScratchDir();
  ~ScratchDir();
  ScratchDir(const ScratchDir&) = delete;
  ScratchDir& operator=(const ScratchDir&) = delete;

  [[nodiscard]] const std::string& path() const noexcept {
    return path_;
  }
  /// Path of `name` inside the folder.
  [[nodiscard]] std::string operator/(std::string_view name) const;

 private:
  std::string path_;
};

} // namespace lockstep::test
