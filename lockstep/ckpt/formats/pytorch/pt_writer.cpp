// SPDX-License-Identifier: BSD-3-Clause
//
// The pickle first (it decides which storages there are and in which
// order), then the size, then one pass over the bytes.
#include <string>
#include <utility>

#include "lockstep/base/atomic_file.h"
#include "lockstep/ckpt/formats/archive/pt_archive.h"
#include "lockstep/ckpt/formats/pytorch/pytorch.h"
#include "lockstep/ckpt/pickle.h"
#include "lockstep/ckpt/zip/zip_writer.h"

namespace lockstep::ckpt {
namespace {

internal::ByteorderRecord byteorder_of(const SaveOptions& options) {
  return options.byteorder_record ? internal::ByteorderRecord::kLittle
                                  : internal::ByteorderRecord::kNone;
}

Status write_pt_records(
    WritableFile& file,
    const std::string& root,
    const PickledTree& tree,
    const SaveOptions& options) {
  LOCKSTEP_TRY(internal::write_pt_archive(
      file,
      root,
      tree,
      [&](ZipWriter& zip, const std::string& name, Storage& storage) {
        const auto stored = options.reuse_checksums && storage.source
                                ? storage.source->stored()
                                : std::nullopt;
        return stored ? zip.add_stored(
                            name,
                            *stored->file,
                            {.offset = stored->offset,
                             .size = storage.nbytes,
                             .crc = stored->crc})
                      : internal::add_pt_storage(zip, name, storage);
      },
      options.extra_records,
      byteorder_of(options)));
  return {};
}

} // namespace

Status write_pt(
    const std::string& path,
    const Value& root,
    const SaveOptions& options,
    FileSystem& fs) {
  LOCKSTEP_ASSIGN(
      const std::string folder,
      internal::archive_folder(path, options));
  LOCKSTEP_TRY(internal::check_extra_records(options.extra_records));
  auto tree = write_pickle(
      root,
      {.taken_keys = internal::taken_keys(options.extra_records)});
  if (!tree) {
    Error error = std::move(tree).error();
    error.path = path;
    return error;
  }
  return write_file_atomically(
      fs,
      path,
      [&](WritableFile& file) {
        return write_pt_records(file, folder, *tree, options);
      },
      {.expected_bytes = internal::pt_archive_bytes(
           folder,
           *tree,
           options.extra_records,
           byteorder_of(options)),
       .durable = options.durable,
       .reserve = !options.reuse_checksums,
       .replace = options.replace});
}

} // namespace lockstep::ckpt
