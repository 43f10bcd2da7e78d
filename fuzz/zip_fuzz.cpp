// SPDX-License-Identifier: BSD-3-Clause
//
// The zip container alone: directory, local headers, records.
#include "lockstep/ckpt/zip/zip_reader.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t n) {
  using namespace lockstep; // the one place where names would hide the test
  const auto zip = ckpt::ZipReader::open(
      ckpt::make_source(std::as_bytes(std::span(data, n))));
  if (!zip) {
    return 0;
  }
  for (const ckpt::ZipRecord& record : zip->records()) {
    std::vector<std::byte> scratch;
    [[maybe_unused]] const auto bytes = zip->read(record, scratch);
    [[maybe_unused]] const auto status = zip->check_crc(record);
  }
  return 0;
}
