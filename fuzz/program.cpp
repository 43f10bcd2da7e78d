// SPDX-License-Identifier: BSD-3-Clause
//
// The functions that libFuzzer (or replay.cpp) calls. It leaves arguments that
// begin with "--" to the program.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string_view>

#include "fuzz/targets.h"

namespace {

using lockstep::fuzz::Target;
using lockstep::fuzz::targets;

Target chosen;

} // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  constexpr std::string_view kFlag = "--target=";
  for (int i = 1; i < *argc; ++i) {
    const std::string_view argument = (*argv)[i];
    if (argument.starts_with(kFlag)) {
      const auto name = argument.substr(kFlag.size());
      for (const Target& target : targets()) {
        chosen = target.name == name ? target : chosen;
      }
    }
  }
  if (!chosen.run) {
    std::fputs("--target=NAME is one of:\n", stderr);
    for (const Target& target : targets()) {
      std::puts(target.name.c_str());
    }
    // NOLINTNEXTLINE(concurrency-mt-unsafe): no other thread runs yet
    std::exit(2);
  }
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t n) {
  chosen.run(std::as_bytes(std::span(data, n)));
  return 0;
}
