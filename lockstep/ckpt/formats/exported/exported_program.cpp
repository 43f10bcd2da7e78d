// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/formats/exported/exported_program.h"

namespace lockstep::ckpt {

bool ExportedInput::is_tensor() const noexcept {
  return kind == ExportedInputKind::kParameter ||
         kind == ExportedInputKind::kBuffer ||
         kind == ExportedInputKind::kTensorConstant;
}

const ExportedWeight* ExportedModel::find_weight(
    std::string_view weight,
    bool is_constant) const {
  const WeightIndex& index = is_constant ? constant_index : weight_index;
  const auto found = index.find(weight);
  return found == index.end() ? nullptr : &weights[found->second];
}

const ExportedWeight* ExportedModel::find_weight(
    const ExportedInput& input) const {
  return find_weight(
      input.target,
      input.kind == ExportedInputKind::kTensorConstant ||
          (input.kind == ExportedInputKind::kBuffer && !input.is_persistent));
}

} // namespace lockstep::ckpt
