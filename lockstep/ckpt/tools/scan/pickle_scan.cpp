// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/tools/scan/pickle_scan.h"

#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/tools/scan/scan_machine.h"

namespace lockstep::ckpt {

PickleScan scan_pickle(ByteSpan bytes, const PickleScanOptions& options) {
  internal::ScanMachine machine(bytes, options);
  machine.run();
  return std::move(machine.result);
}

bool starts_like_pickle(ByteSpan bytes) {
  constexpr std::byte kProto{0x80};
  constexpr unsigned kNewest = 5;
  return bytes.size() > 2 && bytes[0] == kProto &&
         static_cast<unsigned>(bytes[1]) <= kNewest;
}

} // namespace lockstep::ckpt
