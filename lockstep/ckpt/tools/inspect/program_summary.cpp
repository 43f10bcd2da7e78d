// SPDX-License-Identifier: BSD-3-Clause
//
// What the graph of an exported program says, for `lockstep ckpt FILE` and
// `lockstep ckpt diff`.
#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/formats/exported/exported_program.h"
#include "lockstep/ckpt/inspect.h"

namespace lockstep::ckpt {
namespace {

constexpr std::string_view kOperatorFront = "torch.ops.";
// Of a text of the file.
constexpr std::size_t kMaxShownBytes = 200;

std::string short_target(std::string_view target) {
  target.remove_prefix(
      target.starts_with(kOperatorFront) ? kOperatorFront.size() : 0);
  return std::string(target.substr(0, kMaxShownBytes));
}

std::string size_text(const ExportedSize& size) {
  if (size.expression.empty()) {
    return size.value ? std::to_string(*size.value) : "?";
  }
  return size.symbol().empty()
             ? "?"
             : std::string(size.symbol().substr(0, kMaxShownBytes));
}

ProgramTensor tensor_of(std::string name, const ExportedTensorMeta& meta) {
  ProgramTensor tensor{.name = std::move(name), .type = "tensor"};
  if (meta.dtype) {
    tensor.type = dtype_info(*meta.dtype).name;
  }
  for (const ExportedSize& size : meta.sizes) {
    tensor.sizes.push_back(size_text(size));
  }
  return tensor;
}

// Numbers and texts that were given when it was exported, and results that are
// no tensors.
std::string_view kind_text(ExportedKind kind) {
  switch (kind) {
    case ExportedKind::kNone:
      return "None";
    case ExportedKind::kInt:
    case ExportedKind::kSymInt:
      return "int";
    case ExportedKind::kFloat:
    case ExportedKind::kSymFloat:
      return "float";
    case ExportedKind::kBool:
    case ExportedKind::kSymBool:
      return "bool";
    case ExportedKind::kString:
      return "str";
    case ExportedKind::kTensor:
      return "tensor";
    default:
      return "value";
  }
}

template <class Specs, class IsShown>
std::vector<ProgramTensor>
values_of(const ExportedModel& model, const Specs& specs, IsShown is_shown) {
  std::vector<ProgramTensor> values;
  for (const auto& spec : specs) {
    if (!is_shown(spec.kind)) {
      continue;
    }
    const ExportedArgument& argument = spec.argument;
    const auto meta = model.graph.tensors.find(argument.text);
    const bool is_tensor = argument.kind == ExportedKind::kTensor &&
                           meta != model.graph.tensors.end();
    const std::string& name =
        argument.text.empty() ? spec.target : argument.text;
    values.push_back(
        is_tensor ? tensor_of(name, meta->second)
                  : ProgramTensor{
                        .name = name,
                        .type = std::string(kind_text(argument.kind)),
                        .is_tensor = false});
  }
  return values;
}

using Counts = std::map<std::string, std::uint64_t>;

void count_argument(const ExportedArgument& value, Counts& counts);

void count_graph(const ExportedGraph& graph, Counts& counts) {
  for (const ExportedNode& node : graph.nodes) {
    ++counts[short_target(node.target)];
    for (const ExportedNamedArgument& input : node.inputs) {
      count_argument(input.value, counts);
    }
  }
}

void count_argument(const ExportedArgument& value, Counts& counts) {
  if (value.graph != nullptr) {
    count_graph(*value.graph, counts);
  }
  for (const ExportedArgument& item : value.items) {
    count_argument(item, counts);
  }
}

ProgramSummary summary_of(const ExportedModel& model) {
  using In = ExportedInputKind;
  using Out = ExportedOutputKind;
  ProgramSummary summary{.name = model.name};
  summary.inputs = values_of(model, model.inputs, [](In kind) {
    return kind == In::kUser || kind == In::kConstant;
  });
  summary.outputs = values_of(model, model.outputs, [](Out kind) {
    return kind == Out::kUser || kind == Out::kLoss;
  });
  Counts counts;
  count_graph(model.graph, counts);
  for (auto& [name, count] : counts) {
    summary.calls += count;
    summary.operators.push_back({.name = name, .count = count});
  }
  std::ranges::stable_sort(
      summary.operators,
      std::ranges::greater(),
      &ProgramOperator::count);
  for (const auto& [symbol, range] : model.ranges) {
    summary.sizes.push_back(
        {.symbol = symbol, .min = range.min, .max = range.max});
  }
  return summary;
}

bool is_equal(const ExportedArgument& a, const ExportedArgument& b);
bool is_equal(const ExportedNamedArgument& a, const ExportedNamedArgument& b);
bool is_equal(const ExportedNode& a, const ExportedNode& b);

template <class T>
bool are_equal(const std::vector<T>& a, const std::vector<T>& b) {
  return std::ranges::equal(a, b, [](const T& one, const T& other) {
    return is_equal(one, other);
  });
}

bool is_equal(const ExportedNamedArgument& a, const ExportedNamedArgument& b) {
  return a.name == b.name && is_equal(a.value, b.value);
}

bool is_equal(const ExportedNode& a, const ExportedNode& b) {
  return a.target == b.target && are_equal(a.inputs, b.inputs) &&
         are_equal(a.outputs, b.outputs);
}

bool is_equal(const ExportedGraph& a, const ExportedGraph& b) {
  return are_equal(a.nodes, b.nodes) && are_equal(a.inputs, b.inputs) &&
         are_equal(a.outputs, b.outputs);
}

bool is_equal(const ExportedArgument& a, const ExportedArgument& b) {
  const bool has_graphs = a.graph != nullptr && b.graph != nullptr;
  const auto bits = [](const ExportedArgument& value) {
    return std::array{
        std::bit_cast<std::uint64_t>(value.number),
        std::bit_cast<std::uint64_t>(value.imaginary)};
  };
  return a.kind == b.kind && a.integer == b.integer && a.text == b.text &&
         a.keys == b.keys && bits(a) == bits(b) &&
         (has_graphs ? is_equal(*a.graph, *b.graph) : a.graph == b.graph) &&
         are_equal(a.items, b.items);
}

std::string model_difference(const ExportedModel& a, const ExportedModel& b) {
  const auto& left = a.graph.nodes;
  const auto& right = b.graph.nodes;
  const std::size_t both = std::min(left.size(), right.size());
  for (std::size_t i = 0; i < both; ++i) {
    if (left[i].target != right[i].target) {
      return format(
          "call {} is {} and {}",
          i,
          escape(short_target(left[i].target)),
          escape(short_target(right[i].target)));
    }
    if (!is_equal(left[i], right[i])) {
      return format(
          "call {}, {}, takes or gives other values",
          i,
          escape(short_target(left[i].target)));
    }
  }
  if (left.size() != right.size()) {
    return format(
        "{} and {}",
        counted(left.size(), "call"),
        counted(right.size(), "call"));
  }
  return is_equal(a.graph, b.graph) ? "" : "other inputs or outputs";
}

} // namespace

std::vector<ProgramSummary> summarize_programs(const Checkpoint& file) {
  std::vector<ProgramSummary> summaries;
  if (file.program != nullptr) {
    for (const ExportedModel& model : file.program->models) {
      summaries.push_back(summary_of(model));
    }
  }
  return summaries;
}

std::string graph_difference(const Checkpoint& a, const Checkpoint& b) {
  if (a.program == nullptr || b.program == nullptr) {
    return "";
  }
  const auto& left = a.program->models;
  const auto& right = b.program->models;
  if (!std::ranges::equal(
          left,
          right,
          {},
          &ExportedModel::name,
          &ExportedModel::name)) {
    return "other programs";
  }
  for (std::size_t i = 0; i < left.size(); ++i) {
    std::string text = model_difference(left[i], right[i]);
    if (!text.empty()) {
      return left.size() == 1 ? text
                              : format("'{}': {}", escape(left[i].name), text);
    }
  }
  return "";
}

} // namespace lockstep::ckpt
