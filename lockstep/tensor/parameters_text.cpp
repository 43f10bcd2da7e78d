// SPDX-License-Identifier: BSD-3-Clause
#include <string>

#include <torch/nn/modules/container/parameterdict.h>
#include <torch/nn/modules/container/parameterlist.h>

#include "lockstep/ckpt/tensor.h"
#include "lockstep/tensor/internal/dtype_map.h"
#include "lockstep/tensor/internal/layer_text.h"

namespace lockstep {
namespace {

// "torch.FloatTensor", as `torch.typename` says.
std::string class_text(const at::Tensor& tensor) {
  return std::string("torch.") + (tensor.is_cuda() ? "cuda." : "") +
         c10::toString(tensor.scalar_type()) + "Tensor";
}

std::string dtype_text(const at::Tensor& tensor) {
  const auto dtype = to_dtype(tensor.scalar_type());
  return dtype ? "torch." + std::string(ckpt::dtype_info(*dtype).name)
               : class_text(tensor);
}

std::string parameter_line(
    const std::string& key,
    const std::string& type,
    const at::Tensor& tensor) {
  std::string sizes;
  for (const auto size : tensor.sizes()) {
    sizes += (sizes.empty() ? "" : "x") + std::to_string(size);
  }
  const std::string device =
      tensor.device().is_cpu() ? "" : " (" + tensor.device().str() + ")";
  return "  (" + key + "): Parameter containing: [" + type + " of size " +
         sizes + device + "]";
}

} // namespace

std::string parameters_text(const torch::nn::Module& module) {
  const bool is_list =
      dynamic_cast<const torch::nn::ParameterListImpl*>(&module) != nullptr;
  const bool is_dict =
      dynamic_cast<const torch::nn::ParameterDictImpl*>(&module) != nullptr;
  std::string text;
  if (is_list || is_dict) {
    for (const auto& item : module.named_parameters(/*recurse=*/false)) {
      const at::Tensor& tensor = item.value();
      text += (text.empty() ? "" : "\n") +
              parameter_line(
                  item.key(),
                  is_list ? dtype_text(tensor) : class_text(tensor),
                  tensor);
    }
  }
  return text;
}

} // namespace lockstep
