// SPDX-License-Identifier: BSD-3-Clause
#include <dlfcn.h>

#include <algorithm>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/internal/shared_library.h"
#include "lockstep/base/strings.h"
#include "lockstep/ckpt/zip/zip_reader.h"
#include "lockstep/program/internal/compile.h"
#include "lockstep/program/internal/open_program.h"
#include "lockstep/program/internal/program_data.h"
#include "lockstep/program/internal/structures.h"
#include "lockstep/program/program.h"
#include "lockstep/tensor/internal/dtype_map.h"

namespace lockstep {
namespace {

using ckpt::ExportedInput;
using ckpt::ExportedInputKind;
using ckpt::ExportedModel;
using ckpt::ExportedOutput;
using ckpt::ExportedOutputKind;
using program::ProgramData;

void load_libraries(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    if (::dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL) == nullptr) {
      program::refuse_program(
          path,
          ErrorCode::kNotFound,
          format("the library cannot be loaded: {}", loader_error()),
          {},
          "E_OPERATOR");
    }
  }
}

// What the signature asks for beside a forward.
void check_supported(const std::string& path, const ExportedModel& model) {
  for (const ExportedInput& input : model.inputs) {
    if (input.kind == ExportedInputKind::kCustomObject ||
        input.kind == ExportedInputKind::kToken) {
      program::refuse_program(
          path,
          ErrorCode::kUnsupported,
          format(
              "the program takes the custom object '{}'",
              escape(input.target)),
          "export the net without it");
    }
  }
  for (const ExportedOutput& output : model.outputs) {
    const bool is_known = output.kind == ExportedOutputKind::kUser ||
                          output.kind == ExportedOutputKind::kLoss ||
                          output.kind == ExportedOutputKind::kBufferMutation ||
                          output.kind == ExportedOutputKind::kUserInputMutation;
    if (!is_known) {
      program::refuse_program(
          path,
          ErrorCode::kUnsupported,
          format(
              "the program gives gradients or changes the parameter '{}'",
              escape(output.target)),
          "export the forward of the net alone");
    }
  }
}

// All modules of the net that Python called, and those that hold weights.
std::vector<std::string> part_paths(const ExportedModel& model) {
  std::vector<std::string> parts{""};
  parts.insert(parts.end(), model.modules.begin(), model.modules.end());
  return parts;
}

std::set<std::string, std::less<>> counters_of(const ExportedModel& model) {
  std::set<std::string, std::less<>> counters;
  for (const ExportedInput& input : model.inputs) {
    if (program::is_batch_counter(input)) {
      counters.insert(input.argument.text);
    }
  }
  return counters;
}

void tell_of_unread(
    const std::string& path,
    const program::InputGuards& guards) {
  for (const std::string& text : guards.unread()) {
    TORCH_WARN(
        "the program ",
        path,
        " is right under a condition that is not checked: ",
        escape(text, 200));
  }
}

} // namespace

Program load_program(const std::string& path, const ProgramOptions& options) {
  load_libraries(options.libraries);
  ckpt::ExportedFile file = program::open_program(path, options.use_mmap);
  ExportedModel& model = program::choose_model(path, file, options.model);
  check_supported(path, model);
  program::CompileContext context{.allowed = options.allow};
  const std::vector<std::string> parts = part_paths(model);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    context.parts.emplace(parts[i], i);
  }
  const auto block =
      program::BlockCompiler(model.graph, context, counters_of(model)).run();
  if (block == nullptr) {
    const std::vector<std::string> problems(
        context.problems.begin(),
        context.problems.end());
    program::refuse_program(
        path,
        ErrorCode::kUnsupported,
        "the program calls operators that are missing or refused: " +
            join(problems, "; "),
        {},
        "E_OPERATOR");
  }
  auto tensors = program::load_tensors(model);
  const auto index = static_cast<std::size_t>(&model - file.models.data());
  std::vector<std::string> names = program::input_names(model);
  program::InputGuards guards(
      options.check_guards ? model.guards : std::vector<std::string>(),
      names);
  tell_of_unread(path, guards);
  auto data = std::make_shared<ProgramData>(ProgramData{
      .path = path,
      .block = block,
      .input_names = std::move(names),
      .sizes = program::InputSizes(model),
      .guards = std::move(guards),
      .parts = parts,
      .part_classes = std::move(context.part_classes),
      .nodes = model.graph.nodes.size(),
      .flags = context.flags,
      .flags_on = context.flags_on,
      .unswitchable = context.unswitchable});
  for (const std::size_t part : context.batch_norms) {
    data->batch_norms.insert(parts[part]);
  }
  model.graph.nodes.clear();
  data->file = std::move(file);
  data->model = &data->file.models[index];
  try {
    return std::make_shared<ProgramImpl>(std::move(data), std::move(tensors));
  } catch (const c10::Error& error) { // names that no module can have
    program::refuse_program(
        path,
        ErrorCode::kCorrupt,
        error.what_without_backtrace());
  }
}

} // namespace lockstep
