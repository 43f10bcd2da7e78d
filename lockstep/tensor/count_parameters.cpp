// SPDX-License-Identifier: BSD-3-Clause
#include <unordered_set>

#include "lockstep/tensor/modules.h"

namespace lockstep {

std::int64_t count_parameters(const torch::nn::Module& module) {
  std::unordered_set<const c10::TensorImpl*> seen;
  std::int64_t count = 0;
  for (const at::Tensor& parameter : module.parameters()) {
    const bool is_new = seen.insert(parameter.unsafeGetTensorImpl()).second;
    if (parameter.defined() && is_new) {
      count += parameter.numel();
    }
  }
  return count;
}

} // namespace lockstep
