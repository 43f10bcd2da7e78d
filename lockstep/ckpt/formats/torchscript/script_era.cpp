// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/formats/torchscript/script_era.h"

#include "lockstep/ckpt/formats/torchscript/model_json.h"

namespace lockstep::ckpt {

std::string_view script_era(const ZipReader& zip) {
  if (zip.find_in_any_case("constants.pkl") != nullptr) {
    return "TorchScript or C++ torch::save";
  }
  return zip.find_in_any_case(kModelJson) != nullptr
             ? "TorchScript of torch 1.0 to 1.2"
             : "";
}

} // namespace lockstep::ckpt
