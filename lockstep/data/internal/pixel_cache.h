// SPDX-License-Identifier: BSD-3-Clause
//
// Decoded and resized pixels that stay after they were made: in memory, or in
// one mapped file that later runs use, too.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/base/fs.h"
#include "lockstep/data/internal/file_digest.h"
#include "lockstep/data/open_dataset.h"

namespace lockstep::internal {

/// Bytes of numbered samples.
/// Threads: safe to call from several threads.
class PixelCache {
 public:
  using Make = std::function<std::vector<std::uint8_t>()>;

  PixelCache() = default;
  virtual ~PixelCache() = default;
  PixelCache(const PixelCache&) = delete;
  PixelCache& operator=(const PixelCache&) = delete;

  /// The bytes of sample `index`: those that are kept, or what `make` gives.
  /// They are valid until `scratch` changes, and while the cache lives.
  /// `make` gives as many bytes as the sample has.
  /// Errors: what `make` throws; then nothing is kept.
  virtual const std::uint8_t* get(
      std::int64_t index,
      const Make& make,
      std::vector<std::uint8_t>& scratch) = 0;
};

/// What is kept.
struct CachedList {
  /// Units: bytes of each sample.
  std::vector<std::uint64_t> sizes = {};
  /// Calls its argument with the paths of sample `index`.
  PathsOf paths = {};
  /// How pixels are made of the files: other words, other pixels.
  std::string recipe = {};
};

/// Where each sample begins behind the others, and at last where all end.
std::vector<std::uint64_t> starts_of(const std::vector<std::uint64_t>& sizes);

/// "none" makes them each time. "ram" keeps them in this process: each rank has
/// its own. "disk" keeps them in a file of `folder`; if that is empty, of
/// `$XDG_CACHE_HOME/lockstep/images` or `~/.cache/lockstep/images`. The file
/// holds a fingerprint of path, size and time of all files: if one of them has
/// changed, it is begun anew. Each sample has a checksum, so that what a power
/// cut left half written is made again; ranks of one host share the file.
/// Errors: throws kInvalidArgument (E_CACHE) for more bytes than there is
/// memory, kIo (E_NO_SPACE, ...) for a folder without room, and what `fs`
/// returns for the files.
std::unique_ptr<PixelCache> make_pixel_cache(
    ImageCache where,
    const std::string& folder,
    const CachedList& list,
    FileSystem& fs);

/// Where "disk" keeps its files if nothing else is said; empty if there is no
/// home.
std::string user_cache_folder();

} // namespace lockstep::internal
