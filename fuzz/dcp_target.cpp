// SPDX-License-Identifier: BSD-3-Clause
#include "fuzz/exercise.h"
#include "fuzz/targets.h"
#include "fuzz/watch.h"
#include "tests/support/memory_fs.h"

namespace lockstep::fuzz {
namespace {

void put(MemoryFs& fs, const std::string& path, ByteSpan bytes) {
  auto file = fs.append(path);
  if (file) {
    [[maybe_unused]] const auto status = (*file)->write(bytes);
  }
}

} // namespace

void fuzz_dcp(ByteSpan input) {
  const Watch watch(input);
  MemoryFs fs;
  [[maybe_unused]] const auto made = fs.create_directories("d");
  const std::string items(4096, 'x');
  put(fs, "d/.metadata", input);
  put(fs, "d/__0_0.distcp", as_byte_span(items));
  const auto file = ckpt::load("d", watch.options(), fs);
  if (file) {
    exercise(*file);
  }
}

} // namespace lockstep::fuzz
