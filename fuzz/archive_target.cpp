// SPDX-License-Identifier: BSD-3-Clause
#include "fuzz/targets.h"
#include "lockstep/ckpt/zip/zip_reader.h"

namespace lockstep::fuzz {

void fuzz_archive(ByteSpan input) {
  const auto zip = ckpt::ZipReader::open(ckpt::make_source(input));
  if (!zip) {
    return;
  }
  for (const ckpt::ZipRecord& record : zip->records()) {
    std::vector<std::byte> scratch;
    [[maybe_unused]] const auto bytes = zip->read(record, scratch);
    [[maybe_unused]] const auto status = zip->check_crc(record);
  }
}

} // namespace lockstep::fuzz
