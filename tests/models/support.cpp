// SPDX-License-Identifier: BSD-3-Clause
#include "tests/models/support.h"

#include <libdeflate.h>

#include "lockstep/base/strings.h"
#include "lockstep/tensor/state_dict.h"

namespace lockstep::test {

std::string digest(const at::Tensor& tensor) {
  const at::Tensor dense = tensor.detach().contiguous();
  return format(
      "{:08x}",
      libdeflate_crc32(0, dense.const_data_ptr(), dense.nbytes()));
}

std::string digest(const torch::nn::Module& module) {
  std::string text;
  for (const auto& [key, tensor] : state_dict(module).entries) {
    std::string shape;
    for (const std::int64_t size : tensor.sizes()) {
      shape += (shape.empty() ? "" : ",") + std::to_string(size);
    }
    text += format("{} [{}] {}\n", key, shape, digest(tensor));
  }
  return text;
}

} // namespace lockstep::test
