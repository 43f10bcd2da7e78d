// SPDX-License-Identifier: BSD-3-Clause
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/save_error.h"
#include "lockstep/ckpt/formats/archive/pt_archive.h"
#include "lockstep/ckpt/formats/exported/exported_program.h"
#include "lockstep/ckpt/zip/record_source.h"
#include "lockstep/ckpt/zip/serialization_id.h"

namespace lockstep::ckpt {
namespace {

using Replaced = std::map<std::string, std::shared_ptr<Storage>>;

Error bad_replacement(std::string message) {
  return internal::save_error(
      ErrorCode::kInvalidArgument,
      "E_PROGRAM",
      std::move(message));
}

// Those that hold the bytes of weights.
std::set<std::string_view> weight_records(const ExportedFile& file) {
  std::set<std::string_view> records;
  for (const ExportedModel& model : file.models) {
    for (const ExportedWeight& weight : model.weights) {
      if (!weight.is_pickle && !weight.is_packed) {
        records.insert(weight.record);
      }
    }
  }
  return records;
}

Status check_replaced(const ExportedFile& file, const Replaced& replaced) {
  const std::set<std::string_view> weights = weight_records(file);
  for (const auto& [name, storage] : replaced) {
    const ZipRecord* record = file.zip->find(name);
    if (record == nullptr || !weights.contains(name)) {
      return bad_replacement(format(
          "'{}' is no record of a weight of this program",
          escape(name)));
    }
    if (storage->nbytes != record->size) {
      return bad_replacement(format(
          "record '{}' keeps its length; expected {} bytes, got {}",
          escape(name),
          record->size,
          storage->nbytes));
    }
  }
  return {};
}

} // namespace

Status write_exported(
    const std::string& path,
    const ExportedFile& file,
    const Replaced& replaced,
    WriteOptions options,
    FileSystem& fs) {
  LOCKSTEP_TRY(check_replaced(file, replaced));
  std::vector<internal::ArchiveRecord> records;
  for (const ZipRecord& record : file.zip->records()) {
    if (record.name == kIdRecord) {
      continue; // the writer makes one of the new bytes
    }
    internal::ArchiveRecord& out =
        records.emplace_back(internal::ArchiveRecord{.name = record.name});
    const auto other = replaced.find(record.name);
    if (other != replaced.end()) {
      out.storage = other->second;
      continue;
    }
    out.storage = std::make_shared<Storage>(Storage{.nbytes = record.size});
    out.storage->source = record_source(file.zip, record, record.size, true);
  }
  options.archive_name = file.zip->root();
  return internal::save_archive(path, std::move(records), options, fs);
}

} // namespace lockstep::ckpt
