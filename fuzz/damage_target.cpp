// SPDX-License-Identifier: BSD-3-Clause
#include "fuzz/targets.h"
#include "lockstep/base/internal/memory_fs.h"
#include "lockstep/ckpt/inspect.h"
#include "lockstep/ckpt/load.h"
#include "lockstep/ckpt/scan.h"
#include "lockstep/ckpt/verify.h"

namespace lockstep::fuzz {

void fuzz_scan(ByteSpan input) {
  [[maybe_unused]] const auto report =
      ckpt::scan(ckpt::make_source(input), "input");
}

void fuzz_verify(ByteSpan input) {
  [[maybe_unused]] const auto report =
      ckpt::verify(ckpt::make_source(input), "input");
}

void fuzz_salvage(ByteSpan input) {
  MemoryFs fs;
  [[maybe_unused]] const auto report =
      ckpt::salvage(ckpt::make_source(input), "out", {}, {}, fs);
}

} // namespace lockstep::fuzz
