// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/formats/archive/byteorder.h"

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/read_error.h"
#include "lockstep/ckpt/core/swapped_storage.h"
#include "lockstep/ckpt/walk.h"

namespace lockstep::ckpt {
namespace {

constexpr std::string_view kLittle = "little";
constexpr std::string_view kBig = "big";

} // namespace

Status note_byteorder(
    Checkpoint& file,
    const std::optional<std::string>& record,
    const LoadOptions& options) {
  std::string_view asked;
  if (options.byteorder) {
    asked = *options.byteorder == std::endian::big ? kBig : kLittle;
  }
  const bool is_known = record == kLittle || record == kBig;
  file.byteorder = is_known ? *record : std::string(asked);
  if (!record) {
    return {};
  }
  if (!is_known) {
    file.warnings.push_back(
        {.name = "W_BYTEORDER",
         .text = format(
             "the record 'byteorder' holds '{}', which is no order; the bytes "
             "are taken as {}-endian",
             escape(*record),
             asked.empty() ? kLittle : asked)});
    return corrupt_file(
        "E_BYTEORDER",
        format(
            "byte order '{}'; expected '{}' or '{}'",
            escape(*record),
            kLittle,
            kBig));
  }
  if (!asked.empty() && *record != asked) {
    file.warnings.push_back(
        {.name = "W_BYTEORDER",
         .text = format(
             "the file says that its byte order is {}, and is read so; {} was "
             "asked for",
             *record,
             asked)});
  }
  return {};
}

Status turn_storages(Checkpoint& file) {
  if (file.byteorder != kBig) {
    return {};
  }
  for (const auto& storage : file.storages) {
    if (storage->source != nullptr) { // not of a missing record
      storage->source =
          swapped_storage(storage->source, storage->nbytes, storage->dtype);
    }
  }
  std::string mixed;
  LOCKSTEP_TRY(for_each_tensor(
      file.root,
      [&mixed](const std::string& name, const Tensor& tensor) {
        if (tensor.dtype != tensor.storage->dtype && mixed.empty() &&
            dtype_info(tensor.dtype).size > 1) {
          mixed = name;
        }
      }));
  if (mixed.empty()) {
    return {};
  }
  return read_error(
      ErrorCode::kUnsupported,
      "E_BYTEORDER",
      format(
          "tensor '{}' in a big-endian file has an untyped storage",
          escape(mixed)));
}

} // namespace lockstep::ckpt
