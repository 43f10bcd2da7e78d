// SPDX-License-Identifier: BSD-3-Clause
#include "fuzz/targets.h"

#include "fuzz/read_as.h"
#include "lockstep/ckpt/load.h"
#include "lockstep/ckpt/load/format_table.h"

namespace lockstep::fuzz {
namespace {

void read_as_each(ByteSpan input) {
  for (const ckpt::Format& format : ckpt::formats()) {
    read_as(format, input);
  }
}

} // namespace

std::vector<Target> targets() {
  std::vector<Target> targets{
      {"archive", fuzz_archive},
      {"pickle", fuzz_pickle},
      {"dcp", fuzz_dcp},
      {"convert", fuzz_convert},
      {"exported", fuzz_exported},
      {"scan", fuzz_scan},
      {"verify", fuzz_verify},
      {"salvage", fuzz_salvage},
      {"formats", read_as_each},
  };
  for (const ckpt::Format& format : ckpt::formats()) {
    if (format.claims != nullptr && !format.is_folder) {
      targets.push_back({std::string(format.name), [&format](ByteSpan input) {
                           read_as(format, input);
                         }});
    }
  }
  return targets;
}

} // namespace lockstep::fuzz
