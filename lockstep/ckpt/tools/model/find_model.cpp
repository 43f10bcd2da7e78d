// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/tools/model/find_model.h"

#include <algorithm>
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

// Models that only the code of their holder could put in their place: they are
// arguments of a call.
std::string model_in_arguments(const Value& root) {
  std::string name;
  NodeWalk().run(root, [&name](const Value& node) {
    const Object* object = node.as_object();
    if (!name.empty() || object == nullptr || module_in(node) != nullptr) {
      return name.empty();
    }
    const Tuple* args =
        object->args == nullptr ? nullptr : object->args->as_tuple();
    if (args != nullptr &&
        std::ranges::any_of(args->items, [](const Value& argument) {
          return module_in(argument) != nullptr;
        })) {
      name = object->global;
    }
    return name.empty();
  });
  return name;
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
