// SPDX-License-Identifier: BSD-3-Clause
#include <vector>

#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/loss.h>

#include "lockstep/tensor/internal/layer_text.h"
#include "lockstep/tensor/modules.h"
#include "lockstep/tensor/state_dict.h"

namespace lockstep {
namespace {

using torch::nn::Module;

// All lines but the first move two columns to the right.
std::string indented(const std::string& text) {
  std::string out;
  for (const char c : text) {
    out += c;
    if (c == '\n') {
      out += "  ";
    }
  }
  return out;
}

std::string line(const std::string& key, const std::string& text) {
  return "(" + key + "): " + indented(text);
}

std::vector<std::string> child_lines(const Module& module) {
  const bool is_attention =
      dynamic_cast<const torch::nn::MultiheadAttentionImpl*>(&module) !=
      nullptr;
  std::vector<std::string> lines;
  for (const auto& child : module.named_children()) {
    // Python's attention projects with a Linear of a class of its own.
    const bool is_own_linear = is_attention && child.key() == "out_proj";
    const std::string text = to_string(*child.value());
    lines.push_back(line(
        child.key(),
        (is_own_linear ? "NonDynamicallyQuantizable" : "") + text));
  }
  const auto* triplet =
      dynamic_cast<const torch::nn::TripletMarginWithDistanceLossImpl*>(
          &module);
  if (triplet != nullptr && !triplet->options.distance_function()) {
    lines.push_back(line("distance_function", "PairwiseDistance()"));
  }
  return lines;
}

// A ModuleList shows equal neighbours once: "(0-1): 2 x ReLU()".
std::vector<std::string> list_lines(const Module& list) {
  std::vector<std::string> texts;
  for (const auto& child : list.named_children()) {
    texts.push_back(to_string(*child.value()));
  }
  std::vector<std::string> lines;
  for (std::size_t first = 0; first < texts.size();) {
    std::size_t last = first;
    while (last + 1 < texts.size() && texts[last + 1] == texts[first]) {
      ++last;
    }
    const std::string from = std::to_string(first);
    lines.push_back(
        first == last
            ? line(from, texts[first])
            : line(
                  from + "-" + std::to_string(last),
                  std::to_string(last - first + 1) + " x " + texts[first]));
    first = last + 1;
  }
  return lines;
}

} // namespace

std::string to_string(const Module& module) {
  const bool is_list =
      dynamic_cast<const torch::nn::ModuleListImpl*>(&module) != nullptr;
  std::vector<std::string> lines =
      is_list ? list_lines(module) : child_lines(module);
  const std::string options = layer_text(module);
  std::string text = class_name(module) + "(";
  if (lines.empty() && options.find('\n') == std::string::npos) {
    return text + options + ")";
  }
  if (!options.empty()) {
    lines.insert(lines.begin(), indented(options));
  }
  for (const std::string& item : lines) {
    text += "\n  " + item;
  }
  return text + "\n)";
}

} // namespace lockstep
