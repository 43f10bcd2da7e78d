// SPDX-License-Identifier: BSD-3-Clause
//
// IDX files, the format of MNIST and its relatives: 4 bytes of magic (0, 0,
// element type, number of dimensions), one big-endian uint32 per dimension,
// then the elements. Plain or gzip; the bytes decide, not the file's name.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/base/fs.h"
#include "lockstep/data/internal/gunzip.h"

namespace lockstep {

/// The array of an IDX file of unsigned bytes.
struct IdxArray {
  /// Dimensions, outermost first: {60000, 28, 28}.
  std::vector<std::int64_t> sizes = {};
  /// The elements, row-major. Ownership: keeps the file's bytes alive.
  SharedBytes elements = {};
  /// Units: bytes from the start of the (decoded) file to the elements.
  std::uint64_t data_offset = 0;
};

/// Reads the IDX file `path`, which must have `dimensions` dimensions.
/// A plain file is mapped, not copied.
/// Errors: throws kNotFound, kIo; kCorrupt (path and offset set) for a file
/// that is cut, too long or not IDX; kUnsupported for other element types.
IdxArray
read_idx(FileSystem& fs, const std::string& path, std::int64_t dimensions);

/// The same for bytes in memory; `path` is for messages only.
IdxArray
parse_idx(SharedBytes file, std::int64_t dimensions, const std::string& path);

} // namespace lockstep
