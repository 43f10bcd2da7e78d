// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <unordered_set>
#include <utility>
#include <vector>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/places.h"
#include "lockstep/ckpt/core/tensor_layout.h"
#include "lockstep/ckpt/formats/exported/exported_checkpoint.h"
#include "lockstep/ckpt/model.h"
#include "lockstep/ckpt/tools/model/find_model.h"
#include "lockstep/ckpt/tools/model/module_version.h"
#include "lockstep/ckpt/tools/model/quantized_module.h"
#include "lockstep/ckpt/walk.h"

namespace lockstep::ckpt {
namespace {

// A tensor as `state_dict` gives it: detached, no parameter.
Value detached(const Value& value) {
  const Tensor* tensor = value.as_tensor();
  if (tensor == nullptr) { // a kind of tensor that is kept as an object
    const Value* inner = parameter_data(value);
    return inner == nullptr ? value : *inner;
  }
  Tensor plain = *tensor;
  plain.is_parameter = false;
  plain.requires_grad = false;
  plain.attributes = nullptr;
  return plain;
}

class Extractor {
 public:
  /// `path` is the module's, `prefix` what the names of its weights begin with.
  Status walk(
      const Value& module,
      const std::string& path,
      const std::string& prefix) {
    const Value& state = *module.as_object()->state;
    LOCKSTEP_TRY(count(module, member_cost(state), path));
    add_version(module, path);
    const std::string_view unnamed = unnamed_child(module);
    bool has_children = false;
    LOCKSTEP_TRY(for_each_member(
        state,
        [&](MemberKind kind, const Value& key, const Value& value) -> Status {
          const std::string name = key_text(key);
          if (kind == MemberKind::kModule) {
            if (!std::exchange(has_children, true)) {
              add_quantized(module, path, prefix);
            }
            const bool is_unnamed = !unnamed.empty() && name == unnamed;
            return child(
                value,
                format("{}{}{}", path, path.empty() ? "" : ".", name),
                is_unnamed ? prefix : prefix + name + ".");
          }
          buffers += kind == MemberKind::kBuffer ? 1 : 0;
          weights_.items.emplace_back(prefix + name, detached(value));
          return {};
        }));
    if (!has_children) {
      add_quantized(module, path, prefix);
    }
    return {};
  }

  Value state_dict() && {
    weights_.kind = Dict::Kind::kOrderedDict;
    metadata_.kind = Dict::Kind::kOrderedDict;
    weights_.attributes.emplace_back("_metadata", std::move(metadata_));
    return std::move(weights_);
  }

  [[nodiscard]] std::uint64_t entries() const {
    return weights_.items.size();
  }

  std::uint64_t buffers = 0;
  std::vector<UnreadModule> unread;
  /// Tensors that are among the weights, though no buffers: of quantized
  /// layers.
  std::unordered_set<const Tensor*> packed;

 private:
  void add_version(const Value& module, const std::string& path) {
    metadata_.items.emplace_back(
        path,
        Value::dict({{"version", module_version(module)}}));
  }

  void add_quantized(
      const Value& module,
      const std::string& path,
      const std::string& prefix) {
    QuantizedEntries entries = quantized_entries(module);
    for (auto& [name, value] : entries.items) {
      const auto parts = value.elements();
      for (std::size_t i = 0; parts != nullptr && i < parts->size(); ++i) {
        packed.insert((*parts)[i].as_tensor());
      }
      packed.insert(value.as_tensor());
      ++buffers;
      weights_.items.emplace_back(prefix + key_text(name), std::move(value));
    }
    for (auto& [name, class_name] : entries.unread) {
      unread.push_back(
          {.name = format("{}{}{}", path, path.empty() ? "" : ".", name),
           .class_name = std::move(class_name)});
    }
  }

  Status child(
      const Value& value,
      const std::string& path,
      const std::string& prefix) {
    if (is_module(value)) {
      return walk(value, path, prefix);
    }
    if (is_packed_convolution(value)) {
      add_version(value, path);
      add_quantized(value, path, prefix);
      return {};
    }
    const Object* object = value.as_object();
    unread.push_back(
        {.name = path,
         .class_name = object == nullptr ? std::string(value.type_name())
                                         : object->global});
    return {};
  }

  // A shared module costs its time and its names under each of its names, a
  // long name its length with each member: as in a walk (WalkBounds).
  Status
  count(const Value& module, std::uint64_t values, const std::string& name) {
    const bool is_again = !seen_.insert(module.address()).second;
    first_ += is_again ? 0 : values;
    again_ += values * (name.size() / kVisitBytes + (is_again ? 1 : 0));
    const std::uint64_t most =
        WalkBounds().max_repeats + kRepeatsPerVisit * first_;
    return again_ <= most
               ? Status()
               : Status(Error{
                     .code = ErrorCode::kUnsafe,
                     .op = "ckpt.extract",
                     .message = format(
                         "shared modules and long names expand to too many "
                         "values; expected at most {}, got {}",
                         most,
                         again_),
                     .detail = "E_LIMIT"});
  }

  Dict weights_;
  Dict metadata_;
  std::unordered_set<const void*> seen_;
  // Values of modules that were seen for the first time, and again.
  std::uint64_t first_ = 0;
  std::uint64_t again_ = 0;
};

// The one program of the file, or that of the name.
Result<Value> chosen_program(const Checkpoint& file, const std::string& key) {
  const auto& models = file.program->models;
  if (models.size() == 1 && (key.empty() || key == models.front().name)) {
    return file.root;
  }
  std::vector<std::string> names;
  for (const ExportedModel& model : models) {
    names.push_back(model.name);
    if (model.name == key) {
      return *file.root.find(key);
    }
  }
  return no_model(
      key.empty() ? ErrorCode::kInvalidArgument : ErrorCode::kNotFound,
      key.empty() ? format(
                        "the file holds {}: {}",
                        counted(names.size(), "program"),
                        some_names(names))
                  : format("the file has no program '{}'", escape(key)),
      key.empty() ? "choose one with ExtractOptions::key"
                  : format("it has {}", some_names(names)));
}

} // namespace

Result<ExtractedModel> extract_model(
    const Checkpoint& file,
    const ExtractOptions& options) {
  if (file.program == nullptr) {
    return extract_model(file.root, options);
  }
  LOCKSTEP_ASSIGN(const Value program, chosen_program(file, options.key));
  const bool is_split = has_constants(program);
  ExtractedModel result{.key = options.key};
  result.facts.class_name = "torch.export.ExportedProgram";
  Dict weights{.kind = Dict::Kind::kOrderedDict};
  for (const auto& [name, value] :
       (is_split ? *program.find(kExportedState) : program).as_dict()->items) {
    const Tensor* tensor = value.as_tensor();
    const bool is_parameter = tensor != nullptr && tensor->is_parameter;
    ++(is_parameter ? result.parameters : result.buffers);
    weights.items.emplace_back(name, detached(value));
  }
  result.state_dict = std::move(weights);
  if (is_split) {
    for (const auto& [name, value] :
         program.find(kExportedConstants)->as_dict()->items) {
      result.left_out.push_back(key_text(name));
    }
  }
  return result;
}

Result<ExtractedModel> extract_model(
    const Value& root,
    const ExtractOptions& options) {
  ExtractedModel result{.key = options.key};
  Value chosen;
  if (options.key.empty()) {
    LOCKSTEP_ASSIGN(const FoundModel found, only_model(root));
    chosen = *found.value;
    result.key = found.key;
  } else {
    LOCKSTEP_ASSIGN(chosen, find_path(root, options.key));
  }
  const Value* module = module_in(chosen);
  if (module == nullptr) {
    return no_model(
        ErrorCode::kNotFound,
        format(
            "'{}' is not a whole model; it is of type {}",
            escape(options.key),
            chosen.type_name()),
        "");
  }
  result.facts = module_facts(chosen);
  while (options.unwrap && wrapped_module(*module) != nullptr) {
    module = wrapped_module(*module);
  }
  Extractor extractor;
  LOCKSTEP_TRY(extractor.walk(*module, "", ""));
  result.buffers = extractor.buffers;
  result.parameters = extractor.entries() - extractor.buffers;
  result.unread = std::move(extractor.unread);
  const TensorVisitor leave_out = [&](const std::string& name,
                                      const Tensor& tensor) {
    if (!extractor.packed.contains(&tensor)) {
      result.left_out.push_back(name);
    }
  };
  LOCKSTEP_TRY(for_each_tensor(
      *module,
      TensorVisitors{.placed = &leave_out, .beside = &leave_out}));
  result.state_dict = std::move(extractor).state_dict();
  return result;
}

} // namespace lockstep::ckpt
