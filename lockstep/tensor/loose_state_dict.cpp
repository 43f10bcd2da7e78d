// SPDX-License-Identifier: BSD-3-Clause
//
// From a value of a file to a StateDict.
#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/ckpt/model.h"
#include "lockstep/ckpt/print.h"
#include "lockstep/tensor/state_dict.h"

namespace lockstep {
namespace {

[[noreturn]] void mismatch(std::string message, std::string hint = {}) {
  raise(
      {.code = ErrorCode::kMismatch,
       .op = "tensor.load",
       .message = std::move(message),
       .hint = std::move(hint)});
}

// A model in place of its weights, or its method `state_dict`.
[[noreturn]] void no_dict(const ckpt::Value& value) {
  const ckpt::ModuleFacts facts = ckpt::module_facts(value);
  const std::string name = facts.is_uncalled ? "method" : python_class(value);
  mismatch(
      "Expected state_dict to be dict-like, got <class '" + name + "'>.",
      facts.class_name.empty()
          ? std::string()
          : "this file " + ckpt::whole_model_hint(facts) +
                "; load_weights takes them from it as well");
}

std::vector<std::pair<std::string, std::int64_t>> versions_of(
    const ckpt::Dict& dict) {
  std::vector<std::pair<std::string, std::int64_t>> versions;
  for (const auto& [name, value] : dict.attributes) {
    const ckpt::Dict* modules = value.as_dict();
    const std::string* attribute = name.as_string();
    if (modules == nullptr || attribute == nullptr ||
        *attribute != "_metadata") {
      continue;
    }
    for (const auto& [path, entry] : modules->items) {
      const ckpt::Value* version = entry.find("version");
      if (path.as_string() != nullptr && version != nullptr &&
          version->as_int() != nullptr) {
        versions.emplace_back(*path.as_string(), *version->as_int());
      }
    }
  }
  return versions;
}

} // namespace

std::string python_class(const ckpt::Value& value) {
  if (const ckpt::Object* object = value.as_object()) {
    return escape(object->global);
  }
  if (const ckpt::Dict* dict = value.as_dict()) {
    switch (dict->kind) {
      case ckpt::Dict::Kind::kOrderedDict:
        return "collections.OrderedDict";
      case ckpt::Dict::Kind::kCounter:
        return "collections.Counter";
      case ckpt::Dict::Kind::kDict:
        return "dict";
    }
  }
  const std::string name(value.type_name());
  const bool is_torch =
      name == "Tensor" || name == "Size" || name == "device" || name == "dtype";
  return (is_torch ? "torch." : "") + name;
}

LooseStateDict to_loose_state_dict(const ckpt::Value& value) {
  const ckpt::Dict* dict = value.as_dict();
  if (dict == nullptr) {
    no_dict(value);
  }
  LooseStateDict out;
  TensorReader reader;
  for (const auto& [key, entry] : dict->items) {
    const std::string* name = key.as_string();
    if (name == nullptr) {
      mismatch(format(
          "expected keys of type str in state_dict, got {}",
          key.type_name()));
    }
    const ckpt::Tensor* tensor = entry.as_tensor();
    out.weights.entries.emplace_back(
        *name,
        tensor == nullptr ? at::Tensor() : reader.tensor(*tensor).detach());
    const std::string shard = ckpt::describe_shard(entry);
    out.kinds.push_back(
        shard.empty() ? "<class '" + python_class(entry) + "'>"
                      : shard + ": the part of one rank");
  }
  out.weights.versions = versions_of(*dict);
  return out;
}

StateDict to_state_dict(const ckpt::Value& value) {
  LooseStateDict out = to_loose_state_dict(value);
  for (std::size_t i = 0; i < out.kinds.size(); ++i) {
    const auto& [key, tensor] = out.weights.entries[i];
    if (!tensor.defined()) {
      mismatch(format(
          "expected a tensor under '{}', got {}",
          escape(key),
          out.kinds[i]));
    }
  }
  return std::move(out.weights);
}

} // namespace lockstep
