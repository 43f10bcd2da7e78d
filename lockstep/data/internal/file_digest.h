// SPDX-License-Identifier: BSD-3-Clause
//
// Tells a list of files from others without reading them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "lockstep/base/fs.h"

namespace lockstep::internal {

/// Calls its second argument with the paths of a sample.
using PathsOf = std::function<void(
    std::int64_t index,
    const std::function<void(const std::string& path)>& visit)>;

/// A hash of the names, without folders, and the sizes of the files of `count`
/// samples, in their order. A file that cannot be asked counts by its name:
/// whoever reads it tells what is wrong.
std::uint64_t
digest_of_files(std::int64_t count, const PathsOf& paths, FileSystem& fs);

} // namespace lockstep::internal
