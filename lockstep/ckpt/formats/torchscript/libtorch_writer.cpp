// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/formats/torchscript/libtorch_writer.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/base/atomic_file.h"
#include "lockstep/ckpt/formats/archive/pt_archive.h"
#include "lockstep/ckpt/formats/torchscript/script_code.h"
#include "lockstep/ckpt/formats/torchscript/script_pickler.h"
#include "lockstep/ckpt/pickle.h"
#include "lockstep/ckpt/zip/zip_writer.h"

namespace lockstep::ckpt {
namespace {

// A record: text, or the bytes of a storage.
struct Record {
  std::string name = {};
  std::string text = {};
  std::shared_ptr<Storage> storage = {};
};

// In LibTorch's order.
Result<std::vector<Record>> records_of(const Value& root) {
  LOCKSTEP_ASSIGN(const auto classes, internal::script_classes(root));
  LOCKSTEP_ASSIGN(PickledTree tree, internal::ScriptPickler(classes).run());
  std::vector<Record> records;
  for (const auto& storage : tree.storages) {
    const std::string number = std::to_string(records.size());
    records.push_back({.name = "data/" + number, .storage = storage});
  }
  records.push_back({.name = "data.pkl", .text = std::move(tree.pickle)});
  for (std::size_t i = 0; i < classes.size(); ++i) {
    records.push_back(
        {.name = internal::script_code_record(i),
         .text = internal::script_code(classes, i)});
  }
  // An empty tuple: the code holds no tensors.
  LOCKSTEP_ASSIGN(PickledTree constants, write_pickle(Tuple{}));
  records.push_back(
      {.name = "constants.pkl", .text = std::move(constants.pickle)});
  records.push_back({.name = "version", .text = "3\n"});
  records.push_back({.name = "byteorder", .text = "little"});
  return records;
}

std::uint64_t libtorch_bytes(
    const std::string& folder,
    const std::vector<Record>& records) {
  std::vector<PlannedRecord> planned;
  planned.reserve(records.size());
  for (const Record& record : records) {
    planned.push_back(
        {record.name,
         record.storage ? record.storage->nbytes : record.text.size()});
  }
  return zip_file_bytes(folder, planned);
}

Status write_libtorch_records(
    WritableFile& file,
    const std::string& folder,
    const std::vector<Record>& records) {
  ZipWriter zip(file, folder);
  for (const Record& record : records) {
    LOCKSTEP_TRY(
        record.storage
            ? internal::add_pt_storage(zip, record.name, *record.storage)
            : zip.add(record.name, as_byte_span(record.text)));
  }
  return zip.finish();
}

} // namespace

Status write_libtorch(
    const std::string& path,
    const Value& root,
    const SaveOptions& options,
    FileSystem& fs) {
  LOCKSTEP_ASSIGN(
      const std::string folder,
      internal::archive_folder(path, options));
  auto records = records_of(root);
  if (!records) {
    Error error = std::move(records).error();
    error.path = path;
    return error;
  }
  return write_file_atomically(
      fs,
      path,
      [&](WritableFile& file) {
        return write_libtorch_records(file, folder, *records);
      },
      {.expected_bytes = libtorch_bytes(folder, *records),
       .durable = options.durable,
       .replace = options.replace});
}

} // namespace lockstep::ckpt
