// SPDX-License-Identifier: BSD-3-Clause
#include "fuzz/targets.h"
#include "fuzz/watch.h"
#include "lockstep/ckpt/zip/zip_reader.h"

namespace lockstep::fuzz {

void fuzz_archive(ByteSpan input) {
  const Watch watch(input);
  const auto zip = ckpt::ZipReader::open(watch.source(), watch.limits());
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
