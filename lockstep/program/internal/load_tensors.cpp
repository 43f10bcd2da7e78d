// SPDX-License-Identifier: BSD-3-Clause
#include <array>
#include <map>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/program/internal/program_data.h"
#include "lockstep/tensor/internal/dtype_map.h"
#include "lockstep/tensor/state_dict.h"

namespace lockstep::program {
namespace {

using ckpt::ExportedInput;
using ckpt::ExportedInputKind;
using ckpt::ExportedWeight;

/// Two names of the same view of the same storage are one tensor.
using View = std::tuple<
    const ckpt::Storage*,
    std::vector<std::int64_t>,
    std::vector<std::int64_t>,
    std::int64_t,
    ckpt::DType>;

View view_of(const ExportedWeight& weight) {
  const ckpt::Tensor& tensor = weight.tensor;
  return {
      tensor.storage.get(),
      tensor.sizes,
      tensor.strides,
      tensor.offset,
      tensor.dtype};
}

void check_gradient(const std::string& name, const ckpt::Tensor& tensor) {
  const auto dtype = to_scalar_type(tensor.dtype);
  const bool can_have =
      dtype && (c10::isFloatingType(*dtype) || c10::isComplexType(*dtype));
  if (tensor.requires_grad && !can_have) {
    raise(
        {.code = ErrorCode::kCorrupt,
         .op = "program.load",
         .message = format(
             "'{}' of {} cannot have a gradient",
             escape(name),
             ckpt::dtype_info(tensor.dtype).name),
         .detail = "E_PROGRAM"});
  }
}

} // namespace

std::vector<at::Tensor> load_tensors(const ckpt::ExportedModel& model) {
  TensorReader reader;
  std::map<View, at::Tensor> memories;
  // A buffer may share a parameter's memory, but not its gradient.
  std::array<std::map<View, at::Tensor>, 2> known;
  std::vector<at::Tensor> tensors(model.inputs.size());
  for (std::size_t i = 0; i < model.inputs.size(); ++i) {
    const ExportedInput& input = model.inputs[i];
    if (!input.is_tensor()) {
      continue;
    }
    const ExportedWeight& weight = *model.find_weight(input);
    if (weight.is_pickle) {
      raise(
          {.code = ErrorCode::kUnsupported,
           .op = "program.load",
           .message = format(
               "'{}' is a pickle in the file, which is not read",
               escape(input.target)),
           .hint = "only plain tensors are: export the net without tensor "
                   "subclasses and custom objects",
           .detail = "E_PROGRAM"});
    }
    const bool is_parameter = input.kind == ExportedInputKind::kParameter;
    at::Tensor& tensor = known.at(is_parameter ? 1 : 0)[view_of(weight)];
    if (!tensor.defined()) {
      check_gradient(input.target, weight.tensor);
      at::Tensor& memory = memories[view_of(weight)];
      memory = memory.defined() ? memory : reader.tensor(weight.tensor);
      tensor = memory.detach();
      tensor.set_requires_grad(is_parameter && weight.tensor.requires_grad);
    }
    tensors[i] = tensor;
  }
  return tensors;
}

} // namespace lockstep::program
