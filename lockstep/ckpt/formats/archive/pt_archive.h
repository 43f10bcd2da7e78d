// SPDX-License-Identifier: BSD-3-Clause
//
// The records of one `torch.save` archive, for write_pt and for formats that
// pack such archives (DCP).
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "lockstep/ckpt/checkpoint.h"
#include "lockstep/ckpt/options.h"
#include "lockstep/ckpt/pickle.h"
#include "lockstep/ckpt/zip/zip_writer.h"

namespace lockstep::ckpt::internal {

/// The top folder of an archive: the one `options` name, else the file's name
/// by PyTorch's rule. Errors: kInvalidArgument.
Result<std::string> archive_folder(
    const std::string& path,
    const SaveOptions& options);

/// True for the records that tell readers how to read the others: the version,
/// the order of bytes and their like.
bool is_frame_record(std::string_view name);

/// Errors: kInvalidArgument (E_NAME) for what cannot be written beside
/// PyTorch's own records.
[[nodiscard]] Status check_extra_records(std::span<const ExtraRecord> records);

/// The keys of storages that `records` have.
std::set<std::string> taken_keys(std::span<const ExtraRecord> records);

/// Adds a storage as the record `name`.
using AddStorage = std::function<
    Status(ZipWriter& zip, const std::string& name, Storage& storage)>;

/// Whether the record `byteorder` says that the storages are little endian.
enum class ByteorderRecord { kNone, kLittle };

/// Writes all records after what `file` holds; offsets count from there.
/// Returns the archive's length. Units: bytes. Errors: kIo, those of `add`.
Result<std::uint64_t> write_pt_archive(
    WritableFile& file,
    const std::string& root,
    const PickledTree& tree,
    const AddStorage& add,
    std::span<const ExtraRecord> extra_records = {},
    ByteorderRecord byteorder = ByteorderRecord::kLittle);

/// The length of that archive. Units: bytes.
std::uint64_t pt_archive_bytes(
    const std::string& root,
    const PickledTree& tree,
    std::span<const ExtraRecord> extra_records,
    ByteorderRecord byteorder = ByteorderRecord::kLittle);

/// Adds the bytes of `storage`. Errors: those of loading; kCorrupt
/// (E_STORAGE_SHORT).
Status
add_pt_storage(ZipWriter& zip, const std::string& name, Storage& storage);

} // namespace lockstep::ckpt::internal
