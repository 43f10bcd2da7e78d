// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/data/internal/file_digest.h"

#include <vector>

#include "lockstep/base/strings.h"
#include "lockstep/data/internal/byte_hash.h"
#include "lockstep/data/internal/image_options.h"

namespace lockstep::internal {

std::uint64_t
digest_of_files(std::int64_t count, const PathsOf& paths, FileSystem& fs) {
  std::vector<std::uint64_t> digests(static_cast<std::size_t>(count));
  for_each_sample(count, [&](std::int64_t i) {
    std::uint64_t& digest = digests[static_cast<std::size_t>(i)];
    paths(i, [&](const std::string& path) {
      const std::string name = base_name(path);
      const Result<FileInfo> info = fs.stat(path);
      const std::uint64_t size = info ? info->size : 0;
      digest = hash_of(name.data(), name.size(), digest);
      digest = hash_of(&size, sizeof(size), digest);
    });
  });
  return hash_of(digests.data(), digests.size() * sizeof(digests[0]));
}

} // namespace lockstep::internal
