// SPDX-License-Identifier: BSD-3-Clause
//
// Target for the row of the readers that LOCKSTEP_FUZZ_FORMAT names.
#include "fuzz/read_as.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t n) {
  lockstep::fuzz::read_as(LOCKSTEP_FUZZ_FORMAT, data, n);
  return 0;
}
