// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <set>
#include <string>
#include <string_view>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/fixed_limits.h"
#include "lockstep/ckpt/core/read_error.h"
#include "lockstep/ckpt/formats/exported/model_parts_json.h"

namespace lockstep::ckpt::internal {
namespace {

using Kind = ExportedKind;

bool is_name(Kind kind) {
  return kind == Kind::kTensor || kind == Kind::kSymInt ||
         kind == Kind::kSymFloat || kind == Kind::kSymBool ||
         kind == Kind::kCustomObject || kind == Kind::kToken;
}

/// Checks one graph; those inside have names of their own.
class GraphCheck {
 public:
  Status run(const ExportedGraph& graph) {
    for (const ExportedArgument& input : graph.inputs) {
      LOCKSTEP_TRY(define(input, "the inputs"));
    }
    for (const ExportedNode& node : graph.nodes) {
      for (const ExportedNamedArgument& input : node.inputs) {
        LOCKSTEP_TRY(use(input.value, node.name));
      }
      for (const ExportedArgument& output : node.outputs) {
        LOCKSTEP_TRY(define(output, node.name));
      }
    }
    for (const ExportedArgument& output : graph.outputs) {
      LOCKSTEP_TRY(use(output, "the outputs"));
    }
    return {};
  }

 private:
  Status define(const ExportedArgument& value, std::string_view place) {
    for (const ExportedArgument& item : value.items) {
      LOCKSTEP_TRY(define(item, place));
    }
    if (!is_name(value.kind) || names_.insert(value.text).second) {
      return {};
    }
    return corrupt_file(
        "E_PROGRAM",
        format(
            "'{}' is defined twice, again in {}",
            escape(value.text),
            escape(place)));
  }

  Status use(const ExportedArgument& value, std::string_view place) {
    for (const ExportedArgument& item : value.items) {
      LOCKSTEP_TRY(use(item, place));
    }
    if (value.graph != nullptr) {
      return GraphCheck().run(*value.graph);
    }
    if (!is_name(value.kind) || names_.contains(value.text)) {
      return {};
    }
    return corrupt_file(
        "E_PROGRAM",
        format(
            "'{}' is used by {} before it is defined",
            escape(value.text),
            escape(place)));
  }

  std::set<std::string_view> names_;
};

// "layer1.0.weight": modules and a name in them.
Status check_path(std::string_view path) {
  if (std::ranges::count(path, '.') > std::ptrdiff_t{kMaxModuleLevels}) {
    return read_error(
        ErrorCode::kUnsafe,
        "E_DEPTH",
        format(
            "'{}' lies in modules more than {} levels deep",
            escape(path, 60),
            kMaxModuleLevels));
  }
  const bool is_good = !path.empty() && !path.starts_with('.') &&
                       !path.ends_with('.') &&
                       path.find("..") == std::string_view::npos;
  return is_good ? Status()
                 : Status(corrupt_file(
                       "E_PROGRAM",
                       format("'{}' is no path of a module", escape(path))));
}

Status check_paths(const ExportedModel& model) {
  for (const std::string& module : model.modules) {
    LOCKSTEP_TRY(check_path(module));
  }
  for (const ExportedInput& input : model.inputs) {
    if (input.kind == ExportedInputKind::kParameter ||
        input.kind == ExportedInputKind::kBuffer) {
      LOCKSTEP_TRY(check_path(input.target));
    }
  }
  return {};
}

// What a program changes in place of giving it back must be an input.
Status check_mutations(const ExportedModel& model) {
  std::set<std::string_view> buffers;
  std::set<std::string_view> users;
  for (const ExportedInput& input : model.inputs) {
    if (input.kind == ExportedInputKind::kBuffer) {
      buffers.insert(input.target);
    } else if (
        input.kind == ExportedInputKind::kUser &&
        input.argument.kind == Kind::kTensor) {
      users.insert(input.argument.text);
    }
  }
  for (const ExportedOutput& output : model.outputs) {
    const bool is_buffer = output.kind == ExportedOutputKind::kBufferMutation;
    const bool is_users = output.kind == ExportedOutputKind::kUserInputMutation;
    const bool is_good =
        (!is_buffer || buffers.contains(output.target)) &&
        (!is_users || users.contains(output.target)) &&
        (!(is_buffer || is_users) || output.argument.kind == Kind::kTensor);
    if (!is_good) {
      return corrupt_file(
          "E_PROGRAM",
          format(
              "the program changes '{}', which is no tensor among its {}",
              escape(output.target),
              is_buffer ? "buffers" : "inputs"));
    }
  }
  return {};
}

// A tuple of the positional arguments and a dict of the others.
Status check_in_tree(const ExportedTree& tree) {
  const bool is_good =
      tree.children.size() == 2 &&
      std::ranges::none_of(tree.children, &ExportedTree::is_leaf);
  return is_good ? Status()
                 : Status(corrupt_file(
                       "E_PROGRAM",
                       "in_spec is no pair of positional and keyword "
                       "arguments"));
}

Status
check_count(std::string_view what, std::size_t expected, std::size_t got) {
  return expected == got
             ? Status()
             : Status(corrupt_file(
                   "E_PROGRAM",
                   format("{}; expected {}, got {}", what, expected, got)));
}

template <class Spec>
Status check_names(
    const std::vector<ExportedArgument>& values,
    const std::vector<Spec>& specs,
    std::string_view what) {
  LOCKSTEP_TRY(check_count(
      format("the signature has another number of {} than the graph", what),
      values.size(),
      specs.size()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const ExportedArgument& named = specs[i].argument;
    if (is_name(named.kind) && named.text != values[i].text) {
      return corrupt_file(
          "E_PROGRAM",
          format(
              "{} {} of the signature is not the graph's; expected '{}', got "
              "'{}'",
              what,
              i,
              escape(values[i].text),
              escape(named.text)));
    }
  }
  return {};
}

} // namespace

Status check_model(const ExportedModel& model) {
  LOCKSTEP_TRY(GraphCheck().run(model.graph));
  LOCKSTEP_TRY(check_paths(model));
  LOCKSTEP_TRY(check_names(model.graph.inputs, model.inputs, "inputs"));
  LOCKSTEP_TRY(check_names(model.graph.outputs, model.outputs, "outputs"));
  LOCKSTEP_TRY(check_mutations(model));
  LOCKSTEP_TRY(check_in_tree(model.in_tree));
  std::size_t given = 0;
  for (const ExportedInput& input : model.inputs) {
    given += input.kind == ExportedInputKind::kUser ||
                     input.kind == ExportedInputKind::kConstant
                 ? 1
                 : 0;
  }
  std::size_t taken = 0;
  for (const ExportedOutput& output : model.outputs) {
    taken += output.kind == ExportedOutputKind::kUser ||
                     output.kind == ExportedOutputKind::kLoss
                 ? 1
                 : 0;
  }
  LOCKSTEP_TRY(check_count(
      "in_spec has another number of arguments than the signature",
      given,
      model.in_tree.leaves()));
  return check_count(
      "out_spec has another number of results than the signature",
      taken,
      model.out_tree.leaves());
}

} // namespace lockstep::ckpt::internal
