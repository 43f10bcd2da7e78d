// SPDX-License-Identifier: BSD-3-Clause
#include "fuzz/targets.h"

#include <array>

#include "fuzz/read_as.h"

namespace lockstep::fuzz {

std::span<const Target> targets() {
  static constexpr std::array kTargets{
      Target{"zip", fuzz_zip},
      Target{"pickle", fuzz_pickle},
      Target{"dcp", fuzz_dcp},
      Target{"convert", fuzz_convert},
      Target{"scan", fuzz_scan},
      Target{"verify", fuzz_verify},
      Target{"salvage", fuzz_salvage},
      Target{"checkpoint", [](ByteSpan input) { read_as("zip", input); }},
      Target{"legacy", [](ByteSpan input) { read_as("legacy", input); }},
      Target{"tar", [](ByteSpan input) { read_as("tar", input); }},
      Target{
          "safetensors",
          [](ByteSpan input) { read_as("safetensors", input); }},
      Target{"npy", [](ByteSpan input) { read_as("npy", input); }},
      Target{"npz", [](ByteSpan input) { read_as("npz", input); }},
  };
  return kTargets;
}

} // namespace lockstep::fuzz
