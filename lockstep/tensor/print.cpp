// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/tensor/print.h"

#include <vector>

#include <torch/nn/modules/container/modulelist.h>

#include "lockstep/tensor/layer_text.h"
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
  std::vector<std::string> lines;
  for (const auto& child : module.named_children()) {
    lines.push_back(line(child.key(), to_string(*child.value())));
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
  if (lines.empty()) {
    return text + options + ")";
  }
  if (!options.empty()) {
    lines.insert(lines.begin(), options);
  }
  for (const std::string& item : lines) {
    text += "\n  " + item;
  }
  return text + "\n)";
}

} // namespace lockstep
