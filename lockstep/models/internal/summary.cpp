// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/models/internal/summary.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <memory>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <ATen/core/grad_mode.h>

#include "lockstep/base/strings.h"
#include "lockstep/models/internal/forward_trace.h"
#include "lockstep/tensor/internal/kept_parts.h"
#include "lockstep/tensor/state_dict.h"

namespace lockstep {
namespace {

using internal::storage_of;
using internal::TracedOp;
using torch::nn::Module;
using Shape = std::vector<std::int64_t>;

/// One module of the tree, in the order of registration.
struct Node {
  Module* module = nullptr;
  std::size_t parent = 0;
  /// Behind its last descendant.
  std::size_t end = 0;
  bool was_called = false;

  [[nodiscard]] bool is_leaf() const {
    return module->children().empty();
  }
};

/// Letters and digits of a name, small: "MaxPool2d" and "max_pool2d" are equal.
std::string plain(std::string_view name) {
  std::string out;
  for (const unsigned char c : name) {
    if (std::isalnum(c) != 0) {
      out += static_cast<char>(std::tolower(c));
    }
  }
  return out;
}

std::int64_t product(std::span<const std::int64_t> sizes) {
  std::int64_t all = 1;
  for (const std::int64_t size : sizes) {
    all *= size;
  }
  return all;
}

/// How often a forward pass uses each of `numel` numbers, by torchinfo's rule.
std::int64_t mult_adds(
    const std::string& parameter,
    std::int64_t numel,
    const std::string& type,
    const Shape& output) {
  const std::span<const std::int64_t> sizes(output);
  if (sizes.empty()) {
    return 0;
  }
  if (parameter != "weight" && parameter != "bias") {
    const bool is_recurrent = parameter.find("weight") != std::string::npos ||
                              parameter.find("bias") != std::string::npos;
    const auto first_two = sizes.first(std::min<std::size_t>(2, sizes.size()));
    return is_recurrent ? numel * product(first_two) : 0;
  }
  const bool is_convolution = type.find("Conv") != std::string::npos;
  const std::int64_t places =
      is_convolution && sizes.size() > 2 ? product(sizes.subspan(2)) : 1;
  return numel * sizes.front() * places;
}

/// The tree, and which operation belongs where.
class Tree {
 public:
  Tree(Module& root, ModelSummary& summary) : summary_(summary) {
    add(root, "", 0, 0);
  }

  void take(const TracedOp& op) {
    summary_.layers.front().output_shape = op.output_shape;
    const std::size_t index = owner_of(op);
    if (index == nodes_.size()) {
      return;
    }
    last_ = index;
    nodes_[index].was_called = true;
    LayerSummary& layer = summary_.layers[index];
    if (layer.output_shape.empty() || !nodes_[index].is_leaf()) {
      layer.output_shape = op.output_shape;
    }
    for (std::size_t i = index; i != 0; i = nodes_[i].parent) {
      summary_.layers[nodes_[i].parent].output_shape = op.output_shape;
    }
    if (nodes_[index].is_leaf()) {
      count(op, *nodes_[index].module, layer);
    }
  }

 private:
  void add(
      Module& module,
      const std::string& name,
      std::size_t parent,
      std::int64_t depth) {
    if (!seen_.insert(&module).second) {
      return; // registered twice
    }
    const std::size_t index = nodes_.size();
    nodes_.push_back({.module = &module, .parent = parent});
    summary_.layers.push_back(
        {.name = name, .type = class_name(module), .depth = depth});
    for (const auto& entry : module.named_parameters(/*recurse=*/false)) {
      add_parameter(entry.value(), index);
    }
    for (const auto& entry : module.named_buffers(/*recurse=*/false)) {
      owners_.emplace(storage_of(entry.value()), index);
    }
    for (const auto& child : module.named_children()) {
      add(*child.value(),
          name.empty() ? child.key() : name + "." + child.key(),
          index,
          depth + 1);
    }
    nodes_[index].end = nodes_.size();
  }

  void add_parameter(const at::Tensor& parameter, std::size_t index) {
    if (!owners_.emplace(storage_of(parameter), index).second) {
      return; // shared with another module
    }
    const std::int64_t trainable =
        parameter.requires_grad() ? parameter.numel() : 0;
    LayerSummary& layer = summary_.layers[index];
    layer.params += parameter.numel();
    layer.trainable_params += trainable;
    summary_.params += parameter.numel();
    summary_.trainable_params += trainable;
    summary_.param_bytes += static_cast<std::int64_t>(parameter.nbytes());
  }

  /// The number of nodes if it is nobody's.
  [[nodiscard]] std::size_t owner_of(const TracedOp& op) const {
    for (const void* input : op.inputs) {
      const auto found = owners_.find(input);
      if (found != owners_.end() && input != op.output) { // else a mere view
        return found->second;
      }
    }
    const std::string name = plain(op.name);
    for (std::size_t scope = last_;;) {
      scope = nodes_[scope].parent;
      const std::size_t found = find_in(scope, name);
      if (found != nodes_.size() || scope == 0) {
        return found;
      }
    }
  }

  /// A module of this name below `scope`: the next one that was not called yet,
  /// or else one that is called again.
  [[nodiscard]] std::size_t find_in(std::size_t scope, const std::string& name)
      const {
    std::size_t again = nodes_.size();
    for (std::size_t i = scope; i < nodes_[scope].end; ++i) {
      if (!nodes_[i].is_leaf() || plain(summary_.layers[i].type) != name) {
        continue;
      }
      if (i > last_ && !nodes_[i].was_called) {
        return i;
      }
      again = i <= last_ || again == nodes_.size() ? i : again;
    }
    return again;
  }

  void count(const TracedOp& op, const Module& module, LayerSummary& layer) {
    bool has_parameters = false;
    for (const auto& entry : module.named_parameters(/*recurse=*/false)) {
      const bool is_used =
          std::ranges::find(op.inputs, storage_of(entry.value())) !=
          op.inputs.end();
      if (is_used) {
        has_parameters = true;
        const std::int64_t more = mult_adds(
            entry.key(),
            entry.value().numel(),
            layer.type,
            op.output_shape);
        layer.mult_adds += more;
        summary_.mult_adds += more;
      }
    }
    if (has_parameters) {
      summary_.pass_bytes += 2 * op.output_bytes; // and as many gradients
    }
  }

  ModelSummary& summary_;
  std::vector<Node> nodes_;
  std::unordered_set<const Module*> seen_;
  /// By where the bytes of parameters and buffers lie.
  std::unordered_map<const void*, std::size_t> owners_;
  /// The module of the last operation.
  std::size_t last_ = 0;
};

std::string or_dashes(std::int64_t number) {
  return number == 0 ? "--" : with_commas(static_cast<std::uint64_t>(number));
}

std::string shape_text(const Shape& shape) {
  std::vector<std::string> sizes;
  for (const std::int64_t size : shape) {
    sizes.push_back(std::to_string(size));
  }
  return shape.empty() ? "--" : "[" + join(sizes, ", ") + "]";
}

/// "1.81 G".
std::string in_units(std::int64_t count) {
  const bool is_large = count >= 1'000'000'000;
  return format(
      "{:.2f} {}",
      static_cast<double>(count) / (is_large ? 1e9 : 1e6),
      is_large ? "G" : "M");
}

std::string megabytes(std::int64_t bytes) {
  return format("{:.2f}", static_cast<double>(bytes) / 1e6);
}

/// The last part of a name, as deep as it is in the tree.
std::string tree_text(const LayerSummary& layer) {
  const std::string own = layer.name.substr(layer.name.rfind('.') + 1);
  const auto indent = static_cast<std::size_t>(2 * layer.depth);
  return std::string(indent, ' ') +
         (own.empty() ? layer.type : format("{} ({})", own, layer.type));
}

std::string totals_text(const ModelSummary& summary) {
  const auto count = [](std::int64_t number) {
    return with_commas(static_cast<std::uint64_t>(number));
  };
  const std::int64_t all =
      summary.input_bytes + summary.pass_bytes + summary.param_bytes;
  return format(
      "Total params: {}\n"
      "Trainable params: {}\n"
      "Non-trainable params: {}\n"
      "Total mult-adds: {} ({})\n"
      "Input size (MB): {}\n"
      "Forward/backward pass size (MB): {}\n"
      "Params size (MB): {}\n"
      "Estimated total size (MB): {}\n",
      count(summary.params),
      count(summary.trainable_params),
      count(summary.params - summary.trainable_params),
      count(summary.mult_adds),
      in_units(summary.mult_adds),
      megabytes(summary.input_bytes),
      megabytes(summary.pass_bytes),
      megabytes(summary.param_bytes),
      megabytes(all));
}

} // namespace

ModelSummary summarize(
    Module& module,
    const at::Tensor& input,
    const std::function<void()>& forward) {
  ModelSummary summary{
      .input_shape = input.sizes().vec(),
      .input_bytes = static_cast<std::int64_t>(input.nbytes())};
  Tree tree(module, summary);
  const EvaluationMode evaluation(module);
  const at::NoGradGuard no_grad;
  for (const TracedOp& op : internal::trace_operations(forward)) {
    tree.take(op);
  }
  return summary;
}

std::string to_string(const ModelSummary& summary) {
  std::vector<std::array<std::string, 4>> rows{
      {"Layer (type)", "Output shape", "Params", "Mult-adds"}};
  for (const LayerSummary& layer : summary.layers) {
    rows.push_back(
        {tree_text(layer),
         shape_text(layer.output_shape),
         or_dashes(layer.params),
         or_dashes(layer.mult_adds)});
  }
  std::array<std::size_t, 4> widths{};
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < widths.size(); ++i) {
      widths[i] = std::max(widths[i], row[i].size());
    }
  }
  std::string out;
  for (const auto& row : rows) {
    out += format(
        "{:<{}}  {:<{}}  {:>{}}  {:>{}}\n",
        row[0],
        widths[0],
        row[1],
        widths[1],
        row[2],
        widths[2],
        row[3],
        widths[3]);
  }
  return out + "\n" + totals_text(summary);
}

} // namespace lockstep
