// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <unordered_set>
#include <utility>
#include <vector>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/formats/exported/exported_checkpoint.h"
#include "lockstep/ckpt/model.h"
#include "lockstep/ckpt/tools/model/module_version.h"
#include "lockstep/ckpt/walk.h"

namespace lockstep::ckpt {
namespace {

Error no_model(ErrorCode code, std::string message, std::string hint) {
  return {
      .code = code,
      .op = "ckpt.extract",
      .message = std::move(message),
      .hint = std::move(hint),
      .detail = "E_NO_MODEL"};
}

// A tensor as `state_dict` gives it: detached, no parameter.
Value detached(const Value& value) {
  const Tensor* tensor = value.as_tensor();
  if (tensor == nullptr) {
    return value; // a kind of tensor that is kept as an object
  }
  Tensor plain = *tensor;
  plain.is_parameter = false;
  plain.requires_grad = false;
  plain.attributes = nullptr;
  return plain;
}

class Extractor {
 public:
  Status walk(const Value& module, const std::string& name) {
    const Value& state = *module.as_object()->state;
    LOCKSTEP_TRY(count(module, member_cost(state), name));
    metadata_.items.emplace_back(
        name,
        Value::dict({{"version", module_version(module)}}));
    const std::string prefix = name.empty() ? "" : name + ".";
    return for_each_member(
        state,
        [&](MemberKind kind, const Value& key, const Value& value) -> Status {
          std::string path = prefix + key_text(key);
          if (kind == MemberKind::kModule) {
            return child(value, path);
          }
          buffers += kind == MemberKind::kBuffer ? 1 : 0;
          weights_.items.emplace_back(std::move(path), detached(value));
          return {};
        });
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

 private:
  Status child(const Value& value, const std::string& path) {
    if (is_module(value)) {
      return walk(value, path);
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

struct FoundModel {
  const Value* value = nullptr;
  std::string key = {};
};

Error no_whole_model(const Value& root) {
  std::string hint;
  if (root.as_dict() != nullptr) {
    hint = "it holds a dict already: 'lockstep ckpt ls' lists its tensors";
  } else if (!script_class(root).empty()) {
    hint =
        "'lockstep ckpt convert IN OUT --to pt' writes the weights of a "
        "TorchScript program";
  }
  return no_model(
      ErrorCode::kNotFound,
      "the file holds no whole model",
      std::move(hint));
}

Result<FoundModel> only_model(const Value& root) {
  if (module_in(root) != nullptr) {
    return FoundModel{&root, ""};
  }
  std::vector<FoundModel> found;
  const Dict* top = root.as_dict();
  for (std::size_t i = 0; top != nullptr && i < top->items.size(); ++i) {
    const auto& [key, value] = top->items[i];
    if (module_in(value) != nullptr) {
      found.push_back({&value, key_text(key)});
    }
  }
  if (found.empty()) {
    return no_whole_model(root);
  }
  if (found.size() > 1) {
    std::vector<std::string> keys;
    keys.reserve(found.size());
    for (const FoundModel& one : found) {
      keys.push_back(one.key);
    }
    return no_model(
        ErrorCode::kInvalidArgument,
        format(
            "the file holds {}: {}",
            counted(keys.size(), "model"),
            some_names(keys)),
        "choose one with ExtractOptions::key");
  }
  return found.front();
}

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
  LOCKSTEP_TRY(extractor.walk(*module, ""));
  result.buffers = extractor.buffers;
  result.parameters = extractor.entries() - extractor.buffers;
  result.unread = std::move(extractor.unread);
  LOCKSTEP_ASSIGN(result.left_out, unnamed_tensors(*module));
  result.state_dict = std::move(extractor).state_dict();
  return result;
}

} // namespace lockstep::ckpt
