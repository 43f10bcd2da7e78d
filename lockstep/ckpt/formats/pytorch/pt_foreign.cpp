// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/base/strings.h"
#include "lockstep/ckpt/formats/pytorch/pt_cut.h"
#include "lockstep/ckpt/formats/pytorch/pytorch.h"
#include "lockstep/ckpt/zip/zip_recover.h"

namespace lockstep::ckpt {
namespace {

// Whether `archive` is PyTorch's and has something to rescue, also if its end
// is missing.
bool is_worth_repair(
    const std::shared_ptr<ByteSource>& archive,
    const Limits& limits) {
  const auto zip = ZipReader::open(archive, limits);
  if (zip) {
    return zip->find("data.pkl") != nullptr;
  }
  const auto cut = internal::examine_cut(archive, limits);
  return cut && internal::can_rescue(*cut);
}

} // namespace

std::string foreign_bytes_hint(
    const std::shared_ptr<ByteSource>& source,
    const Limits& limits) {
  const auto start = find_zip_start(*source);
  const std::uint64_t at = start ? start->value_or(0) : 0;
  const bool helps =
      at != 0 &&
      is_worth_repair(slice_source(source, at, source->size() - at), limits);
  return helps ? format(
                     "a zip checkpoint begins at byte {}: 'lockstep ckpt "
                     "repair FILE OUT' leaves out what lies in front of it",
                     at)
               : "";
}

} // namespace lockstep::ckpt
