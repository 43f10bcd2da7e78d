// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/formats/torchscript/script_era.h"

#include <algorithm>
#include <array>
#include <string>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/formats/torchscript/model_json.h"

namespace lockstep::ckpt {
namespace {

// In lower case. Folders end with '/'.
constexpr std::array<std::string_view, 7> kScriptRecords{
    "attributes.pkl",
    "bytecode.pkl",
    "code/",
    "constants.pkl",
    "constants/",
    "mobile_debug_handles.pkl",
    "tensors/"};

} // namespace

std::string_view script_era(const ZipReader& zip) {
  if (zip.find_in_any_case("constants.pkl") != nullptr) {
    return "TorchScript or C++ torch::save";
  }
  return zip.find_in_any_case(kModelJson) != nullptr
             ? "TorchScript of torch 1.0 to 1.2"
             : "";
}

bool has_script_code(const ZipReader& zip) {
  return std::ranges::any_of(zip.records(), [](const ZipRecord& record) {
    return record.name.starts_with("code/__torch__");
  });
}

bool is_script_class(std::string_view global) {
  return global.starts_with("__torch__.");
}

bool is_script_record(std::string_view name) {
  const std::string lower = lower_case(name);
  return lower == kModelJson ||
         std::ranges::any_of(kScriptRecords, [&](std::string_view record) {
           return record.ends_with('/') ? lower.starts_with(record)
                                        : lower == record;
         });
}

} // namespace lockstep::ckpt
