// SPDX-License-Identifier: BSD-3-Clause
#include "fuzz/targets.h"
#include "fuzz/watch.h"
#include "lockstep/ckpt/inspect.h"
#include "lockstep/ckpt/load.h"
#include "lockstep/ckpt/scan.h"
#include "lockstep/ckpt/verify.h"
#include "tests/support/memory_fs.h"

namespace lockstep::fuzz {

void fuzz_scan(ByteSpan input) {
  const Watch watch(input);
  [[maybe_unused]] const auto report =
      ckpt::scan(watch.source(), "input", watch.limits());
}

void fuzz_verify(ByteSpan input) {
  const Watch watch(input);
  [[maybe_unused]] const auto report =
      ckpt::verify(watch.source(), "input", {.limits = watch.limits()});
}

void fuzz_salvage(ByteSpan input) {
  const Watch watch(input);
  MemoryFs fs;
  [[maybe_unused]] const auto report =
      ckpt::salvage(watch.source(), "out", {.limits = watch.limits()}, {}, fs);
}

} // namespace lockstep::fuzz
