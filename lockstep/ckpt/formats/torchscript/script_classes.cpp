// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/formats/torchscript/script_classes.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "lockstep/base/internal/numbers.h"
#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/save_error.h"
#include "lockstep/ckpt/formats/torchscript/script_tree.h"
#include "lockstep/ckpt/formats/torchscript/script_types.h"
#include "lockstep/ckpt/print.h"
#include "lockstep/ckpt/walk.h"

namespace lockstep::ckpt::internal {
namespace {

using Role = ScriptAttribute::Role;

constexpr std::size_t kMaxScriptDepth = 1000;
constexpr std::size_t kMaxAttributes = 4'000'000;
// Layers without weights leave gaps in the numbers of a Sequential.
constexpr std::int64_t kMaxGap = 4096;

constexpr std::array<std::string_view, 3> kBufferNames{
    "running_mean",
    "running_var",
    "num_batches_tracked"};

// A program can be converted, not edited.
constexpr std::string_view kProgramHint =
    "'lockstep ckpt convert --to pt' writes its tensors alone";
constexpr std::string_view kPlainHint =
    "'lockstep ckpt drop' takes it out of a copy; 'lockstep ckpt convert --to "
    "pt' keeps all plain data";

bool has_tensor_type(const Value& value) {
  const auto type = script_type(value);
  return type && *type == "Tensor";
}

Role role_of(std::string_view name, const Value& value) {
  const Tensor* tensor = value.as_tensor();
  if (tensor == nullptr || tensor->is_parameter) {
    return Role::kParameter;
  }
  const bool is_number =
      dtype_info(tensor->dtype).name.find("float") != std::string_view::npos ||
      dtype_info(tensor->dtype).name.starts_with("complex");
  const bool is_known =
      std::ranges::find(kBufferNames, name) != kBufferNames.end();
  return is_number && !is_known ? Role::kParameter : Role::kBuffer;
}

// A dict of tensors with text keys: a state_dict.
bool is_state_dict(const Dict& dict) {
  return !dict.items.empty() &&
         std::ranges::all_of(dict.items, [](const Item& item) {
           return item.first.as_string() != nullptr &&
                  has_tensor_type(item.second);
         });
}

class Builder {
 public:
  // After `run`.
  std::vector<ValueChange> take_changes() {
    return changes_.take();
  }

  Result<std::vector<ScriptClass>> run(const Value& root) {
    is_program_ = script_attributes(root) != nullptr;
    const List* list = root.as_list();
    const bool are_tensors =
        list != nullptr && std::ranges::all_of(list->items, has_tensor_type);
    if (has_tensor_type(root) || are_tensors) {
      // As C++ saves a tensor or a vector of them.
      const std::size_t object = new_object("Module");
      const std::vector<Value> alone{root};
      const auto& tensors = are_tensors ? list->items : alone;
      for (std::size_t i = 0; i < tensors.size(); ++i) {
        LOCKSTEP_TRY(add(object, std::to_string(i), tensors[i]));
      }
      return std::move(classes_);
    }
    LOCKSTEP_ASSIGN([[maybe_unused]] const std::size_t first, object_of(root));
    return std::move(classes_);
  }

 private:
  std::size_t new_object(std::string name) {
    classes_.push_back({.name = std::move(name)});
    names_.emplace_back();
    return classes_.size() - 1;
  }

  Result<std::size_t> object_of(const Value& value) {
    if (path_.size() > kMaxScriptDepth) {
      return refuse("E_DEPTH", "the value is nested too deeply");
    }
    if (const Dict* dict = value.as_dict()) {
      return is_state_dict(*dict) ? state_dict(*dict) : named(*dict);
    }
    if (const List* list = value.as_list()) {
      return numbered(list->items);
    }
    if (const Tuple* tuple = value.as_tuple()) {
      changes_.add(ChangeKind::kTuple, [this] { return join(path_, "."); });
      return numbered(tuple->items);
    }
    if (is_module(value)) {
      return module(*value.as_object()->state);
    }
    if (const Dict* attributes = script_attributes(value)) {
      const bool is_program =
          script_container(value.as_object()->global) == ScriptContainer::kNone;
      return is_program ? program(*attributes) : named(*attributes, "Module");
    }
    Error error = refuse(
        "E_NOT_SCRIPT",
        format("LibTorch has no type for {}", describe(value)));
    error.hint = is_program_ ? kProgramHint : kPlainHint;
    return error;
  }

  Result<std::size_t> named(const Dict& dict, std::string class_name = {}) {
    const auto is_integer = [](const Item& item) {
      return item.first.as_int() != nullptr;
    };
    if (class_name.empty()) {
      class_name =
          !dict.items.empty() && std::ranges::all_of(dict.items, is_integer)
              ? "LockstepIntDict"
              : "LockstepDict";
    }
    const std::size_t object = new_object(std::move(class_name));
    const bool is_text = classes_[object].name != "LockstepIntDict";
    for (const auto& [key, value] : dict.items) {
      if (is_text && key.as_string() == nullptr) {
        changes_.add(ChangeKind::kKey, [this, &key] {
          return attribute_name(join(path_, "."), key);
        });
      }
      LOCKSTEP_TRY(add(object, key_text(key), value));
    }
    return object;
  }

  // What its code says of roles is gone: a tensor that needs a gradient was a
  // parameter.
  Result<std::size_t> program(const Dict& attributes) {
    const std::size_t object = new_object("Module");
    for (const auto& [key, value] : attributes.items) {
      const Tensor* tensor = value.as_tensor();
      const Role role = tensor == nullptr       ? Role::kPlain
                        : tensor->requires_grad ? Role::kParameter
                                                : Role::kBuffer;
      LOCKSTEP_TRY(add(object, key_text(key), value, role));
    }
    return object;
  }

  Result<std::size_t> numbered(const std::vector<Value>& values) {
    const std::size_t object = new_object("LockstepList");
    for (std::size_t i = 0; i < values.size(); ++i) {
      LOCKSTEP_TRY(add(object, std::to_string(i), values[i]));
    }
    return object;
  }

  Result<std::size_t> module(const Value& state) {
    constexpr std::array kRoles{Role::kParameter, Role::kBuffer, Role::kPlain};
    const std::size_t object = new_object("Module");
    attributes_ += member_cost(state); // also of what gives no attributes
    LOCKSTEP_TRY(for_each_member(
        state,
        [&](MemberKind kind, const Value& key, const Value& value) {
          const Role role = kRoles.at(static_cast<std::size_t>(kind));
          return add(object, key_text(key), value, role);
        }));
    return object;
  }

  Result<std::size_t> state_dict(const Dict& dict) {
    const std::size_t root = new_object("Module");
    for (const auto& [key, value] : dict.items) {
      const std::string& name = *key.as_string();
      const std::size_t dot = name.rfind('.');
      std::size_t owner = root;
      const std::size_t level = path_.size();
      if (dot != std::string::npos) {
        path_.push_back(name.substr(0, dot));
        LOCKSTEP_ASSIGN(owner, submodule(root, path_.back()));
      }
      const std::string last = name.substr(dot + 1); // npos + 1 is 0
      LOCKSTEP_TRY(add(owner, last, value, role_of(last, value)));
      path_.resize(level);
    }
    // The paths of all modules, also of those without weights.
    for (const auto& [key, value] : dict.attributes) {
      const std::string* name = key.as_string();
      const Dict* paths = value.as_dict();
      if (name == nullptr || *name != "_metadata" || paths == nullptr) {
        continue;
      }
      for (const auto& [path, version] : paths->items) {
        const std::string* text = path.as_string();
        if (text != nullptr && !text->empty()) { // empty: the root itself
          LOCKSTEP_TRY(submodule(root, *text));
        }
      }
      return root;
    }
    return fill_gaps(root);
  }

  // Without `_metadata` the numbers of a Sequential tell which layers have no
  // weights; C++ asks for those, too.
  Result<std::size_t> fill_gaps(std::size_t root) {
    const std::size_t end = classes_.size();
    for (std::size_t object = root; object < end; ++object) {
      std::int64_t largest = -1;
      for (const ScriptAttribute& attribute : classes_[object].attributes) {
        const auto number = parse_number<std::int64_t>(attribute.name);
        if (attribute.object && number && *number < kMaxGap) {
          largest = std::max(largest, *number);
        }
      }
      for (std::int64_t i = 0; i < largest; ++i) {
        LOCKSTEP_TRY(submodule(object, std::to_string(i)));
      }
    }
    return root;
  }

  // The module at a dotted path below `object`, made where it is missing. A
  // part that is empty names no attribute.
  Result<std::size_t> submodule(std::size_t object, std::string_view path) {
    for (std::size_t dot = 0; dot != std::string_view::npos;) {
      dot = path.find('.');
      const std::string name(path.substr(0, dot));
      path = path.substr(dot == std::string_view::npos ? path.size() : dot + 1);
      const auto known = names_[object].find(name);
      if (known == names_[object].end()) {
        const std::size_t made = new_object("Module");
        LOCKSTEP_TRY(append(object, {.name = name, .object = made}));
        object = made;
        continue;
      }
      const ScriptAttribute& found = classes_[object].attributes[known->second];
      if (!found.object) {
        return same_name(name);
      }
      object = *found.object;
    }
    return object;
  }

  Status add(
      std::size_t object,
      const std::string& name,
      const Value& value,
      Role role = Role::kPlain) {
    path_.push_back(name);
    ScriptAttribute attribute{.name = name, .role = role};
    if (auto type = script_type(value)) {
      note_changes(value);
      attribute.type = *std::move(type);
      attribute.value = value;
    } else {
      LOCKSTEP_ASSIGN(const std::size_t made, object_of(value));
      attribute.object = made;
      attribute.role = Role::kPlain;
    }
    LOCKSTEP_TRY(append(object, std::move(attribute)));
    path_.pop_back();
    return {};
  }

  // Of a value that LibTorch has a type for.
  void note_changes(const Value& value) {
    const ValueChanges::Name place = [this] { return join(path_, "."); };
    if (value.as_size() != nullptr) {
      changes_.add(ChangeKind::kTuple, place);
    }
    if (const Tensor* tensor = value.as_tensor()) {
      changes_.add_tensor(*tensor, place);
    }
    if (const List* list = value.as_list()) {
      for (const Value& item : list->items) {
        if (const Tensor* tensor = item.as_tensor()) {
          changes_.add_tensor(*tensor, place);
        }
      }
    }
  }

  Status append(std::size_t object, ScriptAttribute attribute) {
    if (!can_be_attribute(attribute.name)) {
      return refuse(
          "E_NOT_SCRIPT",
          format("'{}' cannot name an attribute", escape(attribute.name)));
    }
    if (++attributes_ > kMaxAttributes) {
      return refuse("E_LIMIT", "shared values expand to too many names");
    }
    auto& list = classes_[object].attributes;
    if (!names_[object].emplace(attribute.name, list.size()).second) {
      return same_name(attribute.name);
    }
    list.push_back(std::move(attribute));
    return {};
  }

  Error same_name(std::string_view name) const {
    Error error = refuse(
        "E_NOT_SCRIPT",
        format("'{}' names two values of one object", escape(name)));
    error.code = ErrorCode::kInvalidArgument;
    return error;
  }

  Error refuse(std::string_view detail, std::string_view message) const {
    std::string where = "root";
    for (const std::string& name : path_) {
      where += "." + name;
    }
    return save_error(
        ErrorCode::kUnsupported,
        std::string(detail),
        format("{}: {}", escape(where), message),
        "'lockstep ckpt drop' takes it out; or write another format");
  }

  std::vector<ScriptClass> classes_;
  // Of each object: place of an attribute by name.
  std::vector<std::map<std::string, std::size_t>> names_;
  std::vector<std::string> path_;
  ValueChanges changes_;
  std::size_t attributes_ = 0;
  bool is_program_ = false;
};

} // namespace

std::string script_module(std::size_t index) {
  return index == 0 ? "__torch__"
                    : format("__torch__.___torch_mangle_{}", index - 1);
}

Result<std::vector<ScriptClass>> script_classes(const Value& root) {
  return Builder().run(root);
}

Result<std::vector<ValueChange>> script_changes(const Value& root) {
  Builder builder;
  LOCKSTEP_TRY(builder.run(root));
  return builder.take_changes();
}

} // namespace lockstep::ckpt::internal
