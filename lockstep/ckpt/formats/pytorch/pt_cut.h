// SPDX-License-Identifier: BSD-3-Clause
//
// What is left of a zip checkpoint whose end is missing: a half download, a
// full disk, a killed save. PyTorch's layout is a function of the pickle, so
// the size that the file should have follows from its first record.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/ckpt/byte_source.h"
#include "lockstep/ckpt/checkpoint.h"

namespace lockstep::ckpt::internal {

/// What the local headers of a cut archive tell. Units: bytes.
struct CutArchive {
  /// Names, without root, of the records whose bytes are all there.
  std::vector<std::string> whole = {};
  /// The record that the end of the file cuts; empty if none is.
  std::string cut = {};
  /// Size of the whole file, if the layout of torch 2.6 and newer gives it.
  std::optional<std::uint64_t> expected_bytes = {};
};

/// Walks the local headers from the start; reads headers and the pickle only,
/// and all from a record on whose size is unknown.
/// Errors: kIo. Damage ends the walk.
Result<CutArchive> examine_cut(
    const std::shared_ptr<ByteSource>& source,
    const Limits& limits);

/// True if the pickle, without which nothing has a name, and a storage are
/// whole.
bool can_rescue(const CutArchive& found);

/// `error` (E_ZIP_NO_EOCD) with what `examine_cut` found in its message.
Error explain_cut(
    Error error,
    const std::shared_ptr<ByteSource>& source,
    const Limits& limits);

} // namespace lockstep::ckpt::internal
