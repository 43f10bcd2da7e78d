// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/tensor/state_dict.h"

#include <set>

#include <torch/nn/module.h>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/tensor/internal/compat.h"
#include "lockstep/tensor/internal/module_children.h"
#include "lockstep/tensor/internal/module_version.h"
#include "lockstep/tensor/modules.h"

namespace lockstep {
namespace {

void collect(
    const torch::nn::Module& module,
    const std::string& prefix,
    StateDict& out) {
  // The path of "layer1." is "layer1", that of "" is "".
  out.versions.emplace_back(
      prefix.substr(0, prefix.empty() ? 0 : prefix.size() - 1),
      state_version(module));
  for (const auto& item : module.named_parameters(/*recurse=*/false)) {
    out.entries.emplace_back(prefix + item.key(), item.value().detach());
  }
  for (const auto& [name, buffer] : saved_buffers_of(module)) {
    out.entries.emplace_back(prefix + name, buffer.detach());
  }
  for (const auto& child : module.named_children()) {
    collect(*child.value(), prefix + child.key() + ".", out);
  }
}

void check_unique(const StateDict& weights, std::string_view prefix) {
  std::set<std::string_view> seen;
  for (const auto& [key, tensor] : weights.entries) {
    if (!seen.insert(key).second) {
      raise(
          {.code = ErrorCode::kMismatch,
           .op = "tensor.strip_prefix",
           .message = format(
               "two keys become '{}' when '{}' is removed",
               escape(key),
               escape(prefix))});
    }
  }
}

// "module." names the module path "module".
std::string_view path_of(std::string_view prefix) {
  return prefix.ends_with('.') ? prefix.substr(0, prefix.size() - 1) : prefix;
}

void set_version(StateDict& weights, std::string path, std::int64_t version) {
  for (auto& [known, value] : weights.versions) {
    if (known == path) {
      value = version;
      return;
    }
  }
  weights.versions.emplace_back(std::move(path), version);
}

} // namespace

at::Tensor StateDict::get(std::string_view key) const {
  for (const auto& [name, tensor] : entries) {
    if (name == key) {
      return tensor;
    }
  }
  return {};
}

std::vector<std::string> StateDict::keys() const {
  std::vector<std::string> keys;
  keys.reserve(entries.size());
  for (const auto& [key, tensor] : entries) {
    keys.push_back(key);
  }
  return keys;
}

StateDict state_dict(const torch::nn::Module& module) {
  check_torch_version();
  warn_of_replaced_children(module);
  StateDict out;
  collect(module, "", out);
  return out;
}

StateDict strip_prefix(const StateDict& weights, std::string_view prefix) {
  StateDict out;
  for (const auto& [key, tensor] : weights.entries) {
    out.entries.emplace_back(
        key.starts_with(prefix) ? key.substr(prefix.size()) : key,
        tensor);
  }
  check_unique(out, prefix);
  for (const auto& [path, version] : weights.versions) {
    if (!prefix.empty() && path == path_of(prefix)) {
      set_version(out, "", version); // the wrapped module is the root now
    } else if (path.starts_with(prefix)) {
      set_version(out, path.substr(prefix.size()), version);
    } else {
      set_version(out, path, version);
    }
  }
  return out;
}

StateDict add_prefix(const StateDict& weights, std::string_view prefix) {
  StateDict out;
  for (const auto& [key, tensor] : weights.entries) {
    out.entries.emplace_back(std::string(prefix) + key, tensor);
  }
  if (prefix.empty() || weights.versions.empty()) {
    out.versions = weights.versions;
    return out;
  }
  // The wrappers that the prefix stands for: "a.b." is "", "a", then "a.b".
  set_version(out, "", 1);
  for (std::size_t i = 0; i + 1 < prefix.size(); ++i) {
    if (prefix[i] == '.') {
      set_version(out, std::string(prefix.substr(0, i)), 1);
    }
  }
  for (const auto& [path, version] : weights.versions) {
    set_version(
        out,
        path.empty() ? std::string(path_of(prefix))
                     : std::string(prefix) + path,
        version);
  }
  return out;
}

} // namespace lockstep
