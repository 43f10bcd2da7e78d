// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/tools/inspect/remains.h"

#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/formats/archive/pt_archive.h"
#include "lockstep/ckpt/formats/pytorch/pytorch.h"
#include "lockstep/ckpt/formats/torchscript/script_era.h"
#include "lockstep/ckpt/zip/zip_listed.h"

namespace lockstep::ckpt::internal {
namespace {

// Those of `names` that `zip` lacks and that are no part of the value: what is
// lost of that, the tensors tell.
std::vector<std::string> cut_records(
    const std::vector<std::string>& names,
    const ZipReader& zip,
    const Checkpoint& file) {
  std::set<std::string> known{"data.pkl"};
  for (const auto& storage : file.storages) {
    known.insert("data/" + storage->key);
  }
  const std::string root = std::string(zip.root()) + "/";
  std::vector<std::string> cut;
  for (const std::string& full : names) {
    if (!full.starts_with(root)) {
      continue; // of an archive inside a record
    }
    std::string name = full.substr(root.size());
    if (zip.find(name) == nullptr && !is_frame_record(name) &&
        known.insert(name).second) {
      cut.push_back(std::move(name));
    }
  }
  return cut;
}

std::set<std::string> script_parts(
    const ZipReader& zip,
    const Checkpoint& file) {
  std::set<std::string> parts;
  for (const ZipRecord& record : zip.records()) {
    if (file.format == "torchscript" && is_script_record(record.name)) {
      const std::size_t slash = record.name.find('/');
      parts.insert(record.name.substr(
          0,
          slash == std::string::npos ? slash : slash + 1));
    }
  }
  return parts;
}

// A record of another size than its storage is not the one that was saved with
// this pickle.
std::string refusal(
    const ZipReader& zip,
    const std::set<std::string>& foreign,
    const Storage& storage) {
  const std::string name = "data/" + storage.key;
  const ZipRecord* record = zip.find(name);
  if (record == nullptr) {
    return foreign.contains(name) ? kForeign : "";
  }
  return record->size <= storage.nbytes
             ? ""
             : format(
                   "its record may be of another file; expected {} bytes, got "
                   "{}",
                   storage.nbytes,
                   record->size);
}

// Records of another file that have no place here, without root.
std::set<std::string> foreign_names(
    const std::vector<std::string>& names,
    const ZipReader& zip) {
  std::set<std::string> foreign;
  for (const std::string& full : names) {
    std::string name = full.substr(full.find('/') + 1);
    if (zip.find(name) == nullptr && !is_frame_record(name)) {
      foreign.insert(std::move(name));
    }
  }
  return foreign;
}

Result<Remains> read_found(
    const std::shared_ptr<ByteSource>& source,
    ListedRecords found,
    const LoadOptions& options) {
  const auto zip = std::make_shared<const ZipReader>(
      ZipReader::recovered(source, std::move(found.records), options.limits));
  LOCKSTEP_ASSIGN(Checkpoint file, read_zip_remains(zip, options));
  Remains remains{.is_without_directory = !found.has_directory};
  remains.cut = cut_records(found.names, *zip, file);
  remains.script = script_parts(*zip, file);
  remains.foreign = foreign_names(found.foreign, *zip);
  for (const auto& storage : file.storages) {
    std::string reason = refusal(*zip, remains.foreign, *storage);
    if (!reason.empty()) {
      remains.refused.emplace(storage.get(), std::move(reason));
    }
  }
  for (const auto& storage : file.storages) {
    remains.foreign.erase("data/" + storage->key);
  }
  remains.file = std::move(file);
  return remains;
}

// True if the pickle has the checksum that the directory says.
bool has_sound_pickle(const ZipReader& zip) {
  const ZipRecord* pickle = zip.find("data.pkl");
  return pickle == nullptr || zip.check_crc(*pickle);
}

} // namespace

Result<Remains> open_remains(
    const std::shared_ptr<ByteSource>& source,
    const LoadOptions& options) {
  auto opened = ZipReader::open(source, options.limits);
  if (!opened || !has_sound_pickle(*opened)) {
    LOCKSTEP_ASSIGN(
        ListedRecords found,
        recover_listed_records(source, options.limits));
    if (opened || !found.records.empty()) {
      return read_found(source, std::move(found), options);
    }
    return std::move(opened).error();
  }
  const auto zip = std::make_shared<const ZipReader>(*std::move(opened));
  LOCKSTEP_ASSIGN(Checkpoint file, read_zip_remains(zip, options));
  std::set<std::string> script = script_parts(*zip, file);
  return Remains{.file = std::move(file), .script = std::move(script)};
}

} // namespace lockstep::ckpt::internal
