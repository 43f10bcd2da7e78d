// SPDX-License-Identifier: BSD-3-Clause
#include "tests/models/formula_weights.h"

#include <cmath>

#include <libdeflate.h>
#include <torch/torch.h>

#include "lockstep/tensor/state_dict.h"

namespace lockstep::test {

at::Tensor mixed(std::string_view name, std::int64_t count) {
  constexpr std::int64_t kMask = 0xffffffff;
  const std::int64_t seed = libdeflate_crc32(0, name.data(), name.size());
  at::Tensor x = torch::arange(count, torch::kLong);
  x = (x * 2654435761 + seed).bitwise_and(kMask);
  x = (x.bitwise_xor(x.bitwise_right_shift(16)) * 73244475).bitwise_and(kMask);
  x = x.bitwise_xor(x.bitwise_right_shift(16));
  return (x.to(torch::kDouble) / 4294967296.0).to(torch::kFloat);
}

void fill(torch::nn::Module& net) {
  const torch::NoGradGuard no_grad;
  for (auto& [key, tensor] : state_dict(net).entries) {
    if (key.ends_with("num_batches_tracked")) {
      continue;
    }
    at::Tensor u = mixed(key, tensor.numel()).view(tensor.sizes());
    if (tensor.dim() == 4) {
      const auto fan_in = static_cast<double>(tensor[0].numel());
      u = (u - 0.5) * (2 * std::sqrt(6 / fan_in));
    } else if (key.ends_with("running_var")) {
      u = u + 0.5;
    } else if (key.ends_with("weight")) {
      u = u * 0.5 + 0.5;
    } else {
      u = (u - 0.5) * 0.2;
    }
    tensor.copy_(u);
  }
}

} // namespace lockstep::test
