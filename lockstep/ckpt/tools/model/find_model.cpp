// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/tools/model/find_model.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/places.h"
#include "lockstep/ckpt/model.h"
#include "lockstep/ckpt/walk.h"

namespace lockstep::ckpt {
namespace {

// Models at any depth, each once, under its first name.
class ModelWalk final : public ValueWalk {
 public:
  Result<std::vector<FoundModel>> run(const Value& root) {
    LOCKSTEP_TRY(walk(root));
    return std::move(found_);
  }

 private:
  Status visit(const Value& value) override {
    if (child_count(value) == 0 || !met_.insert(value.address()).second) {
      return {};
    }
    if (const Value* module = module_in(value)) {
      if (module == &value || met_.insert(module->address()).second) {
        found_.push_back({&value, name()});
      }
      return {};
    }
    return enter(value);
  }

  std::unordered_set<const void*> met_;
  std::vector<FoundModel> found_;
};

// Looks at what many objects may share once: their state, their arguments.
class ModelHolder {
 public:
  // The first call with a model among its arguments; empty without one.
  std::string run(const Value& root) {
    NodeWalk().run(root, [this](const Value& node) {
      const Object* object = node.as_object();
      if (name_.empty() && object != nullptr && !is_model(node) &&
          takes_model(*object)) {
        name_ = object->global;
      }
      return name_.empty();
    });
    return name_;
  }

 private:
  bool is_model(const Value& value) {
    const Object* object = value.as_object();
    if (object == nullptr) {
      return false;
    }
    const bool has_state =
        object->state != nullptr && object->state->is_container();
    const auto [row, is_new] = models_.try_emplace(
        has_state ? object->state->address() : value.address(),
        false);
    if (is_new) {
      row->second = module_in(value) != nullptr;
    }
    return row->second;
  }

  bool takes_model(const Object& object) {
    const Tuple* args =
        object.args == nullptr ? nullptr : object.args->as_tuple();
    return args != nullptr && arguments_.insert(args).second &&
           std::ranges::any_of(args->items, [this](const Value& argument) {
             return is_model(argument);
           });
  }

  std::unordered_map<const void*, bool> models_;
  std::unordered_set<const Tuple*> arguments_;
  std::string name_;
};

// Models that only the code of their holder could put in their place: they are
// arguments of a call.
std::string model_in_arguments(const Value& root) {
  return ModelHolder().run(root);
}

bool is_weights_entry(const Item& item) {
  return has_tensor_entry(item.second) &&
         item.first.text().find("optim") == std::string::npos;
}

// An optimizer's tensors are no weights.
bool has_other_weights(const Value& root) {
  const Dict* top = root.as_dict();
  return has_tensor_entry(root) ||
         (top != nullptr && std::ranges::any_of(top->items, is_weights_entry));
}

Error no_whole_model(const Value& root, const std::vector<FoundModel>& deep) {
  std::string hint;
  if (!deep.empty()) {
    hint = format(
        "it holds weights already; ExtractOptions::key {} takes the model "
        "there",
        deep.front().key);
  } else if (const std::string holder = model_in_arguments(root);
             !holder.empty()) {
    hint = format(
        "a model is an argument of '{}', whose code alone knows the names of "
        "its weights: 'lockstep ckpt ls' lists its tensors",
        escape(holder, 100));
  } else if (root.as_dict() != nullptr) {
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

Result<FoundModel> only_of(const std::vector<FoundModel>& found) {
  if (found.size() == 1) {
    return found.front();
  }
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

} // namespace

bool has_tensor_entry(const Value& value) {
  const Dict* dict = value.as_dict();
  return dict != nullptr &&
         std::ranges::any_of(dict->items, [](const Item& item) {
           return item.second.as_tensor() != nullptr;
         });
}

Error no_model(ErrorCode code, std::string message, std::string hint) {
  return {
      .code = code,
      .op = "ckpt.extract",
      .message = std::move(message),
      .hint = std::move(hint),
      .detail = "E_NO_MODEL"};
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
  if (!found.empty()) {
    return only_of(found);
  }
  LOCKSTEP_ASSIGN(found, ModelWalk().run(root));
  return found.empty() || has_other_weights(root)
             ? Result<FoundModel>(no_whole_model(root, found))
             : only_of(found);
}

} // namespace lockstep::ckpt
