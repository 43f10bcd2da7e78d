// SPDX-License-Identifier: BSD-3-Clause
//
// The walk over the module follows PyTorch's, so that keys are named in the
// same order; but nothing is copied before everything is checked.
#include <algorithm>
#include <initializer_list>
#include <map>
#include <set>
#include <unordered_map>

#include <ATen/MemoryOverlap.h>
#include <torch/nn/module.h>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/tensor/bridge.h"
#include "lockstep/tensor/compat.h"
#include "lockstep/tensor/module_version.h"
#include "lockstep/tensor/position.h"
#include "lockstep/tensor/prefix_fit.h"
#include "lockstep/tensor/python_text.h"
#include "lockstep/tensor/state_dict.h"

namespace lockstep {
namespace {

constexpr std::string_view kOp = "tensor.load";

struct Entry {
  std::string key = {};
  at::Tensor tensor = {};
  // Python's class where the value is no tensor: "int".
  std::string python_class = {};
};

struct PendingCopy {
  at::Tensor target = {};
  at::Tensor source = {};
};

using Entries = std::vector<const Entry*>;

// One load: collects what does not fit, then copies.
class Loader {
 public:
  /// `report` says what was left over before names were looked at.
  Loader(
      const std::vector<Entry>& entries,
      const std::vector<std::pair<std::string, std::int64_t>>& versions,
      LoadReport report)
      : versions_(versions.begin(), versions.end()),
        report_(std::move(report)) {
    for (const Entry& entry : entries) {
      by_key_[entry.key] = &entry;
    }
  }

  void check(
      torch::nn::Module& module,
      const std::string& prefix,
      const Entries& entries) {
    std::set<std::string> own;
    for (const auto& item : module.named_parameters(/*recurse=*/false)) {
      own.insert(item.key());
      check_tensor(prefix + item.key(), item.value());
    }
    const bool may_lack_counter = is_old_batch_norm(module, prefix);
    for (const auto& item : module.named_buffers(/*recurse=*/false)) {
      own.insert(item.key());
      const std::string key = prefix + item.key();
      // Before version 2 there was no counter: the model keeps its own.
      const bool is_counter = item.key() == "num_batches_tracked";
      if (by_key_.contains(key) || !(may_lack_counter && is_counter)) {
        check_tensor(key, item.value());
      }
    }
    const auto children = module.named_children();
    note_unexpected(prefix, entries, own, children);
    for (const auto& child : children) {
      const std::string child_prefix = prefix + child.key() + ".";
      Entries inside;
      for (const Entry* entry : entries) {
        if (entry->key.starts_with(child_prefix)) {
          inside.push_back(entry);
        }
      }
      check(*child.value(), child_prefix, inside);
    }
  }

  /// PyTorch's message, empty if nothing is wrong.
  [[nodiscard]] std::string message(const std::string& name, bool strict)
      const {
    std::vector<std::string> parts;
    if (strict && !report_.missing_keys.empty()) {
      parts.push_back(keys_text("Missing", report_.missing_keys));
    }
    if (strict && !report_.unexpected_keys.empty()) {
      parts.push_back(keys_text("Unexpected", report_.unexpected_keys));
    }
    parts.insert(parts.end(), errors_.begin(), errors_.end());
    if (parts.empty()) {
      return {};
    }
    return "Error(s) in loading state_dict for " + name + ":\n\t" +
           join(parts, "\n\t");
  }

  LoadReport copy() {
    const at::NoGradGuard no_grad;
    for (PendingCopy& pending : copies_) {
      pending.target.copy_(pending.source);
    }
    return std::move(report_);
  }

 private:
  static std::string keys_text(
      const std::string& kind,
      const std::vector<std::string>& keys) {
    std::string text = kind + " key(s) in state_dict: ";
    for (std::size_t i = 0; i < keys.size(); ++i) {
      text += (i == 0 ? "\"" : ", \"") + keys[i] + "\"";
    }
    return text + ". ";
  }

  bool is_old_batch_norm(
      const torch::nn::Module& module,
      const std::string& prefix) const {
    if (state_version(module) < 2) {
      return false;
    }
    const auto found = versions_.find(
        prefix.substr(0, prefix.empty() ? 0 : prefix.size() - 1));
    return found == versions_.end() || found->second < 2;
  }

  void check_tensor(const std::string& key, const at::Tensor& target) {
    const auto found = by_key_.find(key);
    if (found == by_key_.end()) {
      report_.missing_keys.push_back(key);
      return;
    }
    const Entry& entry = *found->second;
    if (!entry.tensor.defined()) {
      errors_.push_back(
          "While copying the parameter named \"" + key +
          "\", expected torch.Tensor or Tensor-like object from checkpoint "
          "but received <class '" +
          entry.python_class + "'>");
      return;
    }
    at::Tensor source = entry.tensor;
    if (target.dim() == 0 && source.dim() == 1 && source.size(0) == 1) {
      source = source.select(0, 0); // files of PyTorch 0.3
    }
    if (source.sizes() != target.sizes()) {
      errors_.push_back(
          "size mismatch for " + key + ": copying a param with shape " +
          size_text(source.sizes()) +
          " from checkpoint, the shape in current model is " +
          size_text(target.sizes()) + ".");
      return;
    }
    prepare(key, target, source);
  }

  // Does here all that can fail, so that `copy` cannot.
  void prepare(
      const std::string& key,
      const at::Tensor& target,
      const at::Tensor& source) {
    try {
      const at::NoGradGuard no_grad;
      at::assert_no_internal_overlap(target);
      TORCH_CHECK(
          source.layout() == target.layout(),
          "expected layout ",
          target.layout(),
          ", got ",
          source.layout());
      const bool same = source.scalar_type() == target.scalar_type() &&
                        source.device() == target.device();
      copies_.push_back({target, same ? source : source.to(target.options())});
    } catch (const c10::Error& error) {
      errors_.push_back(
          "While copying the parameter named \"" + key +
          "\", whose dimensions in the model are " + size_text(target.sizes()) +
          " and whose dimensions in the checkpoint are " +
          size_text(source.sizes()) + ", an exception occurred : (" +
          python_repr(error.what_without_backtrace()) + ",).");
    }
  }

  template <class Children>
  void note_unexpected(
      const std::string& prefix,
      const Entries& entries,
      const std::set<std::string>& own,
      const Children& children) {
    for (const Entry* entry : entries) {
      const std::string rest = entry->key.substr(prefix.size());
      const std::size_t dot = rest.find('.');
      const bool known = dot == std::string::npos
                             ? own.contains(rest)
                             : children.contains(rest.substr(0, dot));
      if (!known) {
        report_.unexpected_keys.push_back(entry->key);
      }
    }
  }

  std::unordered_map<std::string, const Entry*> by_key_;
  std::map<std::string, std::int64_t> versions_;
  LoadReport report_;
  std::vector<std::string> errors_;
  std::vector<PendingCopy> copies_;
};

// Keys and versions go through the same edit as a StateDict's.
StateDict edited(StateDict weights, const LoadStateDictOptions& options) {
  if (!options.strip_prefix.empty()) {
    weights = strip_prefix(weights, options.strip_prefix);
  }
  if (!options.add_prefix.empty()) {
    weights = add_prefix(weights, options.add_prefix);
  }
  return weights;
}

std::vector<Entry> entries_of(
    const StateDict& weights,
    const std::vector<std::string>& classes) {
  std::vector<Entry> entries;
  for (std::size_t i = 0; i < weights.entries.size(); ++i) {
    const auto& [key, tensor] = weights.entries[i];
    entries.push_back({key, tensor, classes.empty() ? "NoneType" : classes[i]});
  }
  return entries;
}

// The first hint that says something.
std::string first_of(std::initializer_list<std::string> hints) {
  const auto* found = std::ranges::find_if(hints, [](const std::string& hint) {
    return !hint.empty();
  });
  return found == hints.end() ? std::string() : *found;
}

// `classes` holds Python's class of each entry that is no tensor.
LoadReport load(
    torch::nn::Module& module,
    StateDict weights,
    const std::vector<std::string>& classes,
    const LoadStateDictOptions& options,
    const std::string& fallback_hint) {
  check_torch_version();
  const StateDict file = edited(std::move(weights), options);
  const StateDict model = state_dict(module);
  LoadReport report;
  std::vector<Entry> entries;
  auto versions = file.versions;
  if (options.by_position) {
    Positioned found = lay_by_position(file, model);
    entries = entries_of(found.weights, {});
    versions = std::move(found.weights.versions);
    report.unexpected_keys = std::move(found.unexpected_keys);
    report.mapping = std::move(found.mapping);
  } else {
    entries = entries_of(file, classes);
  }
  Entries all;
  for (const Entry& entry : entries) {
    all.push_back(&entry);
  }
  Loader loader(entries, versions, std::move(report));
  loader.check(module, "", all);
  std::string message = loader.message(class_name(module), options.strict);
  if (!message.empty()) {
    raise(
        {.code = ErrorCode::kMismatch,
         .op = std::string(kOp),
         .message = std::move(message),
         .hint = first_of(
             {options.by_position ? "" : prefix_hint(model.keys(), file.keys()),
              position_hint(file, model, options.by_position),
              fallback_hint})});
  }
  return loader.copy();
}

} // namespace

std::string to_string(const LoadReport& report) {
  if (report.missing_keys.empty() && report.unexpected_keys.empty()) {
    return "<All keys matched successfully>";
  }
  return "_IncompatibleKeys(missing_keys=" + python_repr(report.missing_keys) +
         ", unexpected_keys=" + python_repr(report.unexpected_keys) + ")";
}

LoadReport load_state_dict(
    torch::nn::Module& module,
    const StateDict& weights,
    const LoadStateDictOptions& options) {
  return load(module, weights, {}, options, {});
}

LoadReport load_state_dict(
    torch::nn::Module& module,
    const ckpt::Value& weights,
    const LoadStateDictOptions& options) {
  LooseStateDict file = to_loose_state_dict(weights);
  return load(
      module,
      std::move(file.weights),
      file.classes,
      options,
      nested_weights_hint(weights));
}

} // namespace lockstep
