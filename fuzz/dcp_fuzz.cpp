// SPDX-License-Identifier: BSD-3-Clause
//
// The metadata of a DCP folder: the input is `.metadata`, beside it lies one
// file of data.
#include "fuzz/exercise.h"
#include "lockstep/base/memory_fs.h"

namespace {

using namespace lockstep; // NOLINT(google-build-using-namespace): a program

void put(MemoryFs& fs, const std::string& path, ByteSpan bytes) {
  auto file = fs.append(path);
  if (file) {
    [[maybe_unused]] const auto status = (*file)->write(bytes);
  }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t n) {
  MemoryFs fs;
  [[maybe_unused]] const auto made = fs.create_directories("d");
  const std::string items(4096, 'x');
  put(fs, "d/.metadata", std::as_bytes(std::span(data, n)));
  put(fs, "d/__0_0.distcp", as_byte_span(items));
  const auto file = ckpt::load("d", {.check_crc = false}, fs);
  if (file) {
    fuzz::exercise(*file);
  }
  return 0;
}
