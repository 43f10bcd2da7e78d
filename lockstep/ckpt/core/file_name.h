// SPDX-License-Identifier: BSD-3-Clause
//
// File names that a checkpoint of several files gives for its parts.
#pragma once

#include <cstddef>
#include <string_view>

namespace lockstep::ckpt::internal {

/// True if `name` can only be a file in the folder of the one that gives it: no
/// separator, no "..", no longer than file systems take.
inline bool is_plain_file_name(std::string_view name) {
  constexpr std::size_t kMaxBytes = 255;
  return !name.empty() && name != "." && name != ".." &&
         name.size() <= kMaxBytes &&
         name.find_first_of(std::string_view("/\\\0", 3)) ==
             std::string_view::npos;
}

} // namespace lockstep::ckpt::internal
