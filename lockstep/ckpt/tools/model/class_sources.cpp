// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/load.h"
#include "lockstep/ckpt/model.h"
#include "lockstep/ckpt/zip/zip_reader.h"

namespace lockstep::ckpt {
namespace {

bool is_code(const ZipRecord& record, std::string_view folder) {
  return record.name.starts_with(folder) && record.name.ends_with(".py");
}

} // namespace

Result<std::vector<ClassSource>> class_sources(
    const Checkpoint& file,
    const std::shared_ptr<ByteSource>& source) {
  std::vector<ClassSource> sources = file.class_sources;
  const std::string_view folder = format_of(file).source_folder;
  if (folder.empty() || source == nullptr) {
    return sources;
  }
  LOCKSTEP_ASSIGN(const ZipReader zip, ZipReader::open(source, {}));
  for (const ZipRecord& record : zip.records()) {
    if (!is_code(record, folder)) {
      continue;
    }
    std::vector<std::byte> scratch;
    LOCKSTEP_TRY(zip.check_crc(record));
    LOCKSTEP_ASSIGN(const ByteSpan bytes, zip.read(record, scratch));
    sources.push_back(
        {.name = record.name, .text = std::string(as_text(bytes))});
  }
  return sources;
}

} // namespace lockstep::ckpt
