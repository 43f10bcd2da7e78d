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

} // namespace lockstep::ckpt
