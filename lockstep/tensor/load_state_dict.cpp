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
#include "lockstep/tensor/internal/compat.h"
#include "lockstep/tensor/internal/module_children.h"
#include "lockstep/tensor/internal/module_version.h"
#include "lockstep/tensor/internal/position.h"
#include "lockstep/tensor/internal/prefix_fit.h"
#include "lockstep/tensor/modules.h"
#include "lockstep/tensor/state_dict.h"

namespace lockstep {
namespace {

constexpr std::string_view kOp = "tensor.load";

struct Entry {
  std::string key = {};
  at::Tensor tensor = {};
  // What the value is where it is no tensor: "<class 'int'>".
  std::string kind = {};
};

struct PendingCopy {
  at::Tensor target = {};
  at::Tensor source = {};
};

using Entries = std::vector<const Entry*>;

// One load: collects what does not fit, then copies.
class ModuleLoad {
 public:
  /// `report` says what was left over before names were looked at.
  ModuleLoad(
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
    for (const auto& [name, buffer] : saved_buffers_of(module)) {
      own.insert(name);
      const std::string key = prefix + name;
      // Before version 2 there was no counter: the model keeps its own.
      const bool is_counter = name == "num_batches_tracked";
      if (by_key_.contains(key) || !(may_lack_counter && is_counter)) {
        check_tensor(key, buffer);
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

  /// True if what differs may. Errors of other kinds never do.
  [[nodiscard]] bool accepts(
      MayDiffer may_differ,
      const std::vector<std::string>& model_keys) const {
    if (may_differ == MayDiffer::kNothing || has_other_errors_ ||
        copies_.empty()) {
      return false;
    }
    return may_differ == MayDiffer::kAnything ||
           only_ends_differ(report_, model_keys);
  }

  /// What does not fit.
  [[nodiscard]] LoadProblems problems(std::string class_name, bool strict)
      const {
    LoadProblems all{.class_name = std::move(class_name), .errors = errors_};
    if (strict) {
      all.missing_keys = report_.missing_keys;
      all.unexpected_keys = report_.unexpected_keys;
    }
    return all;
  }

  /// Names that are missing are not, where the module's tensor is copied under
  /// another one.
  void allow_shared(const StateDict& model) {
    std::unordered_map<const void*, at::Tensor> copied;
    for (const PendingCopy& copy : copies_) {
      copied.emplace(copy.target.const_data_ptr(), copy.target);
    }
    std::erase_if(report_.missing_keys, [&](const std::string& key) {
      const at::Tensor target = model.get(key);
      const auto found = copied.find(target.const_data_ptr());
      return found != copied.end() && found->second.is_alias_of(target) &&
             found->second.sizes() == target.sizes() &&
             found->second.strides() == target.strides();
    });
  }

  /// Units: tensors that `copy` would copy.
  [[nodiscard]] std::size_t fitting() const {
    return copies_.size();
  }

  LoadReport copy() {
    const at::NoGradGuard no_grad;
    for (PendingCopy& pending : copies_) {
      pending.target.copy_(pending.source);
    }
    report_.taken = std::ssize(copies_);
    return std::move(report_);
  }

 private:
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
      has_other_errors_ = true;
      errors_.push_back(
          "While copying the parameter named \"" + key +
          "\", expected torch.Tensor or Tensor-like object from checkpoint "
          "but received " +
          entry.kind);
      return;
    }
    at::Tensor source = entry.tensor;
    if (target.dim() == 0 && source.dim() == 1 && source.size(0) == 1) {
      source = source.select(0, 0); // files of PyTorch 0.3
    }
    if (source.sizes() != target.sizes()) {
      report_.mismatched.push_back(
          {key, source.sizes().vec(), target.sizes().vec()});
      errors_.push_back(
          "size mismatch for " + key + ": copying a param with shape " +
          size_text(source.sizes()) +
          " from checkpoint, the shape in current model is " +
          size_text(target.sizes()) + ".");
      return;
    }
    if (target.is_meta() && !source.is_meta()) {
      has_other_errors_ = true;
      errors_.push_back(
          "for " + key +
          ": copying from a non-meta parameter in the checkpoint to a meta "
          "parameter in the current model, which is a no-op: make the model on "
          "a device with memory.");
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
      has_other_errors_ = true;
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
  /// Whether some of `errors_` are not about shapes.
  bool has_other_errors_ = false;
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
    const std::vector<std::string>& kinds) {
  std::vector<Entry> entries;
  for (std::size_t i = 0; i < weights.entries.size(); ++i) {
    const auto& [key, tensor] = weights.entries[i];
    entries.push_back(
        {key, tensor, kinds.empty() ? "<class 'NoneType'>" : kinds[i]});
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

// How to load all the same what fits.
std::string partial_hint(
    std::size_t fitting,
    const StateDict& model,
    const LoadStateDictOptions& options) {
  const bool is_of_use = fitting > 0 && options.may_differ == MayDiffer::kEnds;
  return is_of_use ? format(
                         "more than the first and the last layer differ; "
                         "--partial (.may_differ = kAnything) takes the {} of "
                         "{} tensors that fit",
                         fitting,
                         model.entries.size())
                   : std::string();
}

void check_options(const LoadStateDictOptions& options) {
  if (options.first != 0 && !options.by_position) {
    raise(
        {.code = ErrorCode::kInvalidArgument,
         .op = std::string(kOp),
         .message = "first: names say which tensors go where, so the first few "
                    "are those of .by_position = true alone"});
  }
}

// `kinds` says what each entry is that is no tensor.
LoadReport load(
    torch::nn::Module& module,
    StateDict weights,
    const std::vector<std::string>& kinds,
    const LoadStateDictOptions& options,
    const std::string& fallback_hint) {
  check_torch_version();
  check_options(options);
  const StateDict file = edited(std::move(weights), options);
  const StateDict model = state_dict(module);
  LoadReport report;
  std::vector<Entry> entries;
  auto versions = file.versions;
  if (options.by_position) {
    Positioned found = lay_by_position(file, model, options.first);
    entries = entries_of(found.weights, {});
    versions = std::move(found.weights.versions);
    report.unexpected_keys = std::move(found.unexpected_keys);
    report.mapping = std::move(found.mapping);
  } else {
    entries = entries_of(file, kinds);
  }
  Entries all;
  for (const Entry& entry : entries) {
    all.push_back(&entry);
  }
  ModuleLoad load(entries, versions, std::move(report));
  load.check(module, "", all);
  if (options.may_share) {
    load.allow_shared(model);
  }
  const std::string message =
      load.accepts(options.may_differ, model.keys())
          ? ""
          : load_message(
                load.problems(
                    class_name(module),
                    options.strict && options.first == 0),
                options.shown_names);
  if (!message.empty()) {
    raise(
        {.code = ErrorCode::kMismatch,
         .op = std::string(kOp),
         .message = message,
         .hint = first_of(
             {options.by_position ? "" : prefix_hint(model.keys(), file.keys()),
              position_hint(file, model, options.by_position),
              fallback_hint,
              partial_hint(load.fitting(), model, options)}),
         .detail = "E_STATE_DICT"});
  }
  return load.copy();
}

} // namespace

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
      file.kinds,
      options,
      nested_weights_hint(weights));
}

} // namespace lockstep
