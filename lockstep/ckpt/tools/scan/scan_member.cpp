// SPDX-License-Identifier: BSD-3-Clause
//
// What lies in an archive, by its bytes.
#include <algorithm>
#include <vector>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/read_error.h"
#include "lockstep/ckpt/formats/numpy/npy_header.h"
#include "lockstep/ckpt/formats/tar/tar_header.h"
#include "lockstep/ckpt/load/diagnose.h"
#include "lockstep/ckpt/tools/scan/scan_report.h"
#include "lockstep/ckpt/zip/zip_structs.h"

namespace lockstep::ckpt::internal {

bool scan_member(
    const std::shared_ptr<ByteSource>& member,
    const ScanCollector::Place& place,
    int depth,
    ScanCollector& out) {
  std::vector<std::byte> scratch;
  const auto head =
      member->view(0, std::min(member->size(), kDiagnoseBytes), scratch);
  if (!head) {
    out.add_unreadable(head.error());
    return true;
  }
  if (starts_like_zip(*head)) {
    scan_zip(member, place.record, depth + 1, out);
    return true;
  }
  if (is_npy(*head)) {
    scan_npy(member, place, out);
    return true;
  }
  // A tar file starts with a name, which may spell opcodes.
  const bool is_stream = scan_stream(*member, place, out);
  if (is_tar(*head) || starts_like_tar(*head)) {
    out.add_unreadable(
        read_error(
            ErrorCode::kUnsupported,
            "E_WRONG_FORMAT",
            "this is a tar file, not looked into: unpack it first"),
        place);
    return true;
  }
  return is_stream;
}

void note_packed(
    ByteSource& source,
    const ScanCollector::Place& place,
    ScanCollector& out) {
  std::vector<std::byte> scratch;
  const auto head =
      source.view(0, std::min(source.size(), kDiagnoseBytes), scratch);
  if (head && is_packed(*head)) {
    const Error found = diagnose(*head, source.size());
    out.add_unreadable(
        read_error(
            ErrorCode::kUnsupported,
            "E_WRONG_FORMAT",
            format("{}, not looked into: {}", found.message, found.hint)),
        place);
  }
}

} // namespace lockstep::ckpt::internal
