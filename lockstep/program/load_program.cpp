// SPDX-License-Identifier: BSD-3-Clause
#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <map>
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
using program::Mutation;
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
    if (input.kind == ExportedInputKind::kCustomObject) {
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

// What orders the calls of a decomposed graph, which run in the file's order.
template <class Spec, class Kind>
void drop_tokens(
    std::vector<Spec>& specs,
    std::vector<ckpt::ExportedArgument>& values,
    Kind token) {
  std::vector<Spec> kept_specs;
  std::vector<ckpt::ExportedArgument> kept_values;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    if (specs[i].kind != token) {
      kept_specs.push_back(std::move(specs[i]));
      kept_values.push_back(std::move(values[i]));
    }
  }
  specs = std::move(kept_specs);
  values = std::move(kept_values);
}

program::OwnNames own_names(const ExportedModel& model) {
  program::OwnNames names;
  for (const ExportedInput& input : model.inputs) {
    if (input.kind == ExportedInputKind::kBuffer ||
        input.kind == ExportedInputKind::kParameter) {
      names.emplace(input.argument.text, input.target);
    }
  }
  return names;
}

// Of the first weight, or else the first input: "cuda" of "cuda:0".
std::string device_type_of(const ExportedModel& model) {
  const ckpt::ExportedTensorMeta* first = nullptr;
  for (const ExportedInput& input : model.inputs) {
    const auto found = model.graph.tensors.find(input.argument.text);
    if (found == model.graph.tensors.end()) {
      continue;
    }
    if (input.kind == ExportedInputKind::kParameter ||
        input.kind == ExportedInputKind::kBuffer) {
      first = &found->second;
      break;
    }
    first = first == nullptr ? &found->second : first;
  }
  return first == nullptr ? ""
                          : first->device.substr(0, first->device.find(':'));
}

std::set<std::string, std::less<>> unsaved_buffers_of(
    const ExportedModel& model) {
  std::set<std::string, std::less<>> names;
  for (const ExportedInput& input : model.inputs) {
    if (input.kind == ExportedInputKind::kBuffer && !input.is_persistent) {
      names.insert(input.target);
    }
  }
  return names;
}

// Where the values go that the graph gives in place of changing inputs.
std::vector<Mutation> mutations_of(
    const ExportedModel& model,
    const std::map<std::string, std::size_t, std::less<>>& parts) {
  std::multimap<std::string_view, std::size_t> buffers;
  std::multimap<std::string_view, std::size_t> users;
  for (std::size_t i = 0; i < model.inputs.size(); ++i) {
    const ExportedInput& input = model.inputs[i];
    if (input.kind == ExportedInputKind::kBuffer) {
      buffers.emplace(input.target, i);
    } else if (input.kind == ExportedInputKind::kUser) {
      users.emplace(input.argument.text, i);
    }
  }
  std::vector<Mutation> mutations;
  for (std::size_t o = 0; o < model.outputs.size(); ++o) {
    const ExportedOutput& output = model.outputs[o];
    const bool is_buffer = output.kind == ExportedOutputKind::kBufferMutation;
    if (!is_buffer && output.kind != ExportedOutputKind::kUserInputMutation) {
      continue;
    }
    Mutation& mutation =
        mutations.emplace_back(Mutation{.output = o, .is_buffer = is_buffer});
    const auto [first, last] =
        (is_buffer ? buffers : users).equal_range(output.target);
    for (auto place = first; place != last; ++place) {
      mutation.inputs.push_back(place->second);
    }
    if (is_buffer && program::is_batch_counter(output.target)) {
      const auto part = parts.find(program::parent_of(output.target));
      mutation.counts_in = part == parts.end() ? 0 : part->second;
    }
  }
  return mutations;
}

// Those that the graph gives a new value, whatever the mode.
void note_changed(
    const ExportedModel& model,
    program::CompileContext& context) {
  for (const ExportedOutput& output : model.outputs) {
    if (output.kind == ExportedOutputKind::kBufferMutation &&
        !program::is_batch_counter(output.target) &&
        !context.switched.contains(output.argument.text)) {
      context.changed.insert(output.target);
    }
  }
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

// What a net may do in training alone, and no flag says so; what is lost.
void tell_of_recorded(
    const std::string& path,
    const program::CompileContext& context,
    bool is_decomposed) {
  std::vector<std::string> found;
  if (!context.draws.empty()) {
    found.push_back(format(
        "draws random numbers in {} nodes, the first of them {}",
        context.draws.size(),
        context.draws.front()));
  }
  if (!context.changed.empty()) {
    found.push_back(format(
        "changes {} of its tensors, the first of them '{}'",
        context.changed.size(),
        escape(*context.changed.begin())));
  }
  const bool is_export_in_eval = context.flags > 0 && context.flags_on == 0;
  if (is_decomposed && !is_export_in_eval) {
    TORCH_WARN(
        "the program ",
        path,
        " was decomposed, which drops detach() and no_grad(): a net that has "
        "them gets other gradients here. To train it, export it without "
        "run_decompositions()");
  }
  if (!found.empty()) {
    TORCH_WARN(
        "in eval() as in training the program ",
        path,
        " ",
        join(found, ", and "),
        ". If Python's eval() does not, evaluate an export of net.eval() with "
        "these weights");
  }
}

program::CompileContext context_of(
    const ExportedModel& model,
    const ProgramOptions& options,
    const std::vector<std::string>& parts) {
  program::CompileContext context{
      .allowed = options.allow,
      .device_type = device_type_of(model)};
  for (std::size_t i = 0; i < parts.size(); ++i) {
    context.parts.emplace(parts[i], i);
  }
  return context;
}

[[noreturn]] void refuse_operators(
    const std::string& path,
    const program::CompileContext& context) {
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

} // namespace

Program load_program(const std::string& path, const ProgramOptions& options) {
  load_libraries(options.libraries);
  ckpt::ExportedFile file = program::open_program(path, options.use_mmap);
  ExportedModel& model = program::choose_model(path, file, options.model);
  drop_tokens(model.inputs, model.graph.inputs, ExportedInputKind::kToken);
  drop_tokens(model.outputs, model.graph.outputs, ExportedOutputKind::kToken);
  check_supported(path, model);
  const std::vector<std::string> parts = part_paths(model);
  program::CompileContext context = context_of(model, options, parts);
  const auto block =
      program::BlockCompiler(model.graph, context, own_names(model)).run();
  if (block == nullptr) {
    refuse_operators(path, context);
  }
  auto tensors = program::load_tensors(model);
  const auto index = static_cast<std::size_t>(&model - file.models.data());
  std::vector<std::string> names = program::input_names(model);
  program::InputGuards guards(
      options.check_guards ? model.guards : std::vector<std::string>(),
      names);
  tell_of_unread(path, guards);
  note_changed(model, context);
  tell_of_recorded(path, context, model.is_decomposed);
  auto data = std::make_shared<ProgramData>(ProgramData{
      .path = path,
      .block = block,
      .input_names = std::move(names),
      .sizes = program::InputSizes(model),
      .guards = std::move(guards),
      .parts = parts,
      .part_classes = std::move(context.part_classes),
      .unsaved_buffers = unsaved_buffers_of(model),
      .mutations = mutations_of(model, context.parts),
      .nodes = model.graph.nodes.size(),
      .flags = context.flags,
      .flags_on = context.flags_on,
      .unswitchable = context.unswitchable,
      .has_warned = std::make_shared<std::atomic_flag>()});
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
