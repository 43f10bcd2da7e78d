// SPDX-License-Identifier: BSD-3-Clause
#include <utility>

#include "lockstep/program/internal/program_data.h"
#include "lockstep/program/program.h"
#include "lockstep/tensor/internal/dtype_map.h"

namespace lockstep {
namespace {

ProgramInput fact_of(std::string name, const ckpt::ExportedTensorMeta& meta) {
  ProgramInput fact{.name = std::move(name)};
  for (const ckpt::ExportedSize& size : meta.sizes) {
    fact.sizes.push_back({size.expression.empty() ? size.value : std::nullopt});
  }
  const auto dtype = meta.dtype ? to_scalar_type(*meta.dtype) : std::nullopt;
  fact.dtype = dtype.value_or(at::kFloat);
  return fact;
}

} // namespace

std::vector<ProgramInput> ProgramImpl::inputs() const {
  std::vector<ProgramInput> facts;
  for (const ckpt::ExportedInput& input : data_->model->inputs) {
    const auto meta = data_->model->graph.tensors.find(input.argument.text);
    if (input.kind == ckpt::ExportedInputKind::kUser &&
        meta != data_->model->graph.tensors.end()) {
      facts.push_back(fact_of(input.argument.text, meta->second));
    }
  }
  return facts;
}

std::vector<ProgramInput> ProgramImpl::outputs() const {
  std::vector<ProgramInput> facts;
  for (const ckpt::ExportedOutput& output : data_->model->outputs) {
    const auto meta = data_->model->graph.tensors.find(output.argument.text);
    if (output.kind == ckpt::ExportedOutputKind::kUser &&
        meta != data_->model->graph.tensors.end()) {
      facts.push_back(fact_of({}, meta->second));
    }
  }
  return facts;
}

} // namespace lockstep
