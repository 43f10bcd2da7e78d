// SPDX-License-Identifier: BSD-3-Clause
//
// Archives of a pickle and storages: for write_pt, for the archives of LibTorch
// and for formats that pack such archives (DCP).
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/fs.h"
#include "lockstep/ckpt/checkpoint.h"
#include "lockstep/ckpt/core/write_options.h"
#include "lockstep/ckpt/pickle/pickle.h"

namespace lockstep::ckpt::internal {

/// True for the records that tell readers how to read the others: the version,
/// the order of bytes and their like.
bool is_frame_record(std::string_view name);

/// Errors: kInvalidArgument (E_NAME) for what cannot be written beside
/// PyTorch's own records.
[[nodiscard]] Status check_extra_records(std::span<const ExtraRecord> records);

/// The keys of storages that `records` have.
std::set<std::string> taken_keys(std::span<const ExtraRecord> records);

/// A record to be written: a text, or the bytes of a storage.
struct ArchiveRecord {
  std::string name = {};
  std::string text = {};
  std::shared_ptr<Storage> storage = {};
};

/// Whether the record `byteorder` says that the storages are little endian.
enum class ByteorderRecord { kNone, kLittle };

/// All records of one `torch.save`, in their order.
std::vector<ArchiveRecord> pt_records(
    PickledTree tree,
    std::span<const ExtraRecord> extra_records = {},
    ByteorderRecord byteorder = ByteorderRecord::kLittle);

/// Writes an archive after what `file` holds; offsets count from there. Returns
/// its length. Units: bytes. Errors: kIo; those of loading a storage; kCorrupt
/// (E_STORAGE_SHORT).
Result<std::uint64_t> write_archive(
    WritableFile& file,
    const std::string& root,
    std::span<const ArchiveRecord> records,
    bool reuse_checksums = false);

/// The length of that archive at the start of a file. Units: bytes.
std::uint64_t archive_bytes(
    const std::string& root,
    std::span<const ArchiveRecord> records);

/// Replaces the file `path` by an archive of `records`, or gives their error
/// the path. The top folder is the one that `options` name, else the file's
/// name by PyTorch's rule. Errors: those of `write_archive`; kInvalidArgument.
Status save_archive(
    const std::string& path,
    Result<std::vector<ArchiveRecord>> records,
    const WriteOptions& options,
    FileSystem& fs);

} // namespace lockstep::ckpt::internal
