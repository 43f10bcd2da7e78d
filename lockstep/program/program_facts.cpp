// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/program/internal/program_facts.h"

#include <algorithm>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/program/internal/open_program.h"
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

template <class Specs, class Kind>
std::vector<ProgramInput>
facts_of(const ckpt::ExportedModel& model, const Specs& specs, Kind kind) {
  std::vector<ProgramInput> facts;
  for (const auto& spec : specs) {
    const auto meta = model.graph.tensors.find(spec.argument.text);
    if (spec.kind == kind && meta != model.graph.tensors.end()) {
      facts.push_back(fact_of(spec.argument.text, meta->second));
    }
  }
  return facts;
}

ProgramFacts facts_of(const ckpt::ExportedModel& model) {
  return {
      .inputs = facts_of(model, model.inputs, ckpt::ExportedInputKind::kUser),
      .outputs =
          facts_of(model, model.outputs, ckpt::ExportedOutputKind::kUser),
      .numbers = static_cast<std::size_t>(std::ranges::count_if(
          model.inputs,
          [](const ckpt::ExportedInput& input) {
            return input.kind == ckpt::ExportedInputKind::kUser &&
                   input.argument.kind != ckpt::ExportedKind::kTensor;
          }))};
}

} // namespace

std::vector<ProgramInput> ProgramImpl::inputs() const {
  return facts_of(*data_->model).inputs;
}

std::vector<ProgramInput> ProgramImpl::outputs() const {
  return facts_of(*data_->model).outputs;
}

std::string ProgramImpl::digest() const {
  const ckpt::ZipRecord* record = data_->file.zip->find(data_->model->record);
  return format("{:08x}-{}", std::uint64_t{record->crc}, record->size);
}

bool is_program_file(std::string_view name) {
  return name.ends_with(".pt2");
}

ProgramFacts read_program_facts(const std::string& path) {
  ckpt::ExportedFile file = program::open_program(path, /*use_mmap=*/true);
  return facts_of(program::choose_model(path, file, {}));
}

} // namespace lockstep
