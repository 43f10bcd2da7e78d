// SPDX-License-Identifier: BSD-3-Clause
//
// Which bytes belong to which record: each to one at most, and none lie before
// the first.
#include <algorithm>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/zip/zip_directory.h"

namespace lockstep::ckpt::internal {
Status check_overlaps(const std::vector<ZipEntry>& entries) {
  std::vector<const ZipRecord*> order;
  order.reserve(entries.size());
  for (const ZipEntry& entry : entries) {
    order.push_back(&entry.record);
  }
  std::ranges::sort(order, {}, &ZipRecord::header_offset);
  if (!order.empty() && order.front()->header_offset != 0) {
    return zip_error(
        ErrorCode::kCorrupt,
        "E_PREFIX",
        format(
            "{} before the first record",
            counted(order.front()->header_offset, "byte lies", "bytes lie")),
        0);
  }
  for (std::size_t i = 1; i < order.size(); ++i) {
    const ZipRecord& first = *order[i - 1];
    const ZipRecord& second = *order[i];
    const std::uint64_t end = first.data_offset + first.compressed_size;
    if (second.header_offset < end) {
      return zip_error(
          ErrorCode::kCorrupt,
          "E_OVERLAP",
          format(
              "bytes [{}, {}) of '{}' overlap [{}, {}) of this record",
              first.header_offset,
              end,
              escape(first.name),
              second.header_offset,
              second.data_offset + second.compressed_size),
          second.header_offset,
          second.name);
    }
  }
  return {};
}

} // namespace lockstep::ckpt::internal
