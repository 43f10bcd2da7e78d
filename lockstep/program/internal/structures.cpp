// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/program/internal/structures.h"

#include <algorithm>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/tensor/modules.h"

namespace lockstep::program {
namespace {

using ckpt::ExportedInput;
using ckpt::ExportedInputKind;
using ckpt::ExportedModel;
using ckpt::ExportedTree;

constexpr std::string_view kNamedTuple = "collections.namedtuple";
constexpr std::string_view kList = "builtins.list";

bool has_keys(const ExportedTree& tree) {
  return !tree.keys.empty() && tree.type != kNamedTuple;
}

bool is_users(const ExportedInput& input) {
  return input.kind == ExportedInputKind::kUser ||
         input.kind == ExportedInputKind::kConstant;
}

// "{'a': tensor, 'b': (tensor, tensor)}"
std::string describe(const ExportedTree& tree) {
  if (tree.is_leaf()) {
    return "a value";
  }
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < tree.children.size(); ++i) {
    const std::string text = describe(tree.children[i]);
    parts.push_back(
        has_keys(tree) ? python_repr(tree.keys[i]) + ": " + text : text);
  }
  const std::string inside = join(parts, ", ");
  return has_keys(tree)       ? "{" + inside + "}"
         : tree.type == kList ? "[" + inside + "]"
                              : "(" + inside + ")";
}

[[noreturn]] void wrong_arguments(std::string message, std::string hint = {}) {
  raise(
      {.code = ErrorCode::kInvalidArgument,
       .op = "program.run",
       .message = std::move(message),
       .hint = std::move(hint),
       .detail = "E_PROGRAM_INPUT"});
}

std::string argument_name(
    const ExportedModel& model,
    const ExportedTree& group,
    std::size_t index,
    std::size_t argument) {
  if (has_keys(group)) {
    return group.keys[index];
  }
  return argument < model.argument_names.size()
             ? model.argument_names[argument]
             : format("argument {}", argument);
}

std::string child_name(
    const ExportedTree& tree,
    std::size_t index,
    const std::string& name) {
  return has_keys(tree) ? format("{}[{}]", name, python_repr(tree.keys[index]))
                        : format("{}[{}]", name, index);
}

void add_names(
    const ExportedTree& tree,
    const std::string& name,
    std::vector<std::string>& names) {
  if (tree.is_leaf()) {
    names.push_back(name);
  }
  for (std::size_t i = 0; i < tree.children.size(); ++i) {
    add_names(tree.children[i], child_name(tree, i, name), names);
  }
}

/// Arguments against the pytree of the file.
class Flattener {
 public:
  explicit Flattener(const ExportedModel& model) : model_(model) {
    for (const ExportedInput& input : model.inputs) {
      if (is_users(input)) {
        inputs_.push_back(&input);
      }
    }
  }

  std::vector<const ProgramValue*> run(const ProgramArguments& given) {
    const auto& groups = model_.in_tree.children;
    const std::size_t positional = groups.front().children.size();
    // Keywords have no place: forward may have others before them. A net's only
    // input needs no name.
    const bool is_only = positional + groups.back().children.size() == 1;
    const std::size_t most = is_only ? 1 : positional;
    check_count(given, most);
    used_.assign(given.kwargs.size(), false);
    std::size_t argument = 0;
    for (const ExportedTree& group : groups) {
      for (std::size_t i = 0; i < group.children.size(); ++i) {
        const std::string name = argument_name(model_, group, i, argument);
        const ProgramValue* value =
            argument < given.args.size() ? &given.args[argument] : nullptr;
        if (const ProgramValue* named = keyword(given, name)) {
          if (value != nullptr) {
            wrong_arguments(
                format("argument '{}' is given twice", name),
                "expected " + signature());
          }
          value = named;
        }
        add(group.children[i], value, name);
        ++argument;
      }
    }
    check_all_used(given);
    return std::move(leaves_);
  }

 private:
  const ProgramValue* keyword(
      const ProgramArguments& given,
      const std::string& name) {
    for (std::size_t i = 0; i < given.kwargs.size(); ++i) {
      if (given.kwargs[i].first == name && !used_[i]) {
        used_[i] = true;
        return &given.kwargs[i].second;
      }
    }
    return nullptr;
  }

  void add(
      const ExportedTree& tree,
      const ProgramValue* value,
      const std::string& name) {
    if (value == nullptr) {
      return add_constants(tree, name);
    }
    if (tree.is_leaf()) {
      leaves_.push_back(value);
      return;
    }
    const bool fits = !value->container().empty() &&
                      value->items().size() == tree.children.size() &&
                      has_keys(tree) == !value->keys().empty();
    if (!fits) {
      wrong_structure(tree, *value, name);
    }
    for (std::size_t i = 0; i < tree.children.size(); ++i) {
      add_child(tree, *value, i, name);
    }
  }

  void add_child(
      const ExportedTree& tree,
      const ProgramValue& value,
      std::size_t index,
      const std::string& name) {
    std::size_t place = index;
    if (has_keys(tree)) {
      const auto key = std::ranges::find(value.keys(), tree.keys[index]);
      if (key == value.keys().end()) {
        wrong_structure(tree, value, name);
      }
      place = static_cast<std::size_t>(key - value.keys().begin());
    }
    add(tree.children[index],
        &value.items()[place],
        child_name(tree, index, name));
  }

  // What was not given must be in the file.
  void add_constants(const ExportedTree& tree, const std::string& name) {
    for (std::size_t i = tree.leaves(); i > 0; --i) {
      const ExportedInput& input = *inputs_.at(leaves_.size());
      if (input.kind != ExportedInputKind::kConstant) {
        wrong_arguments(
            format("argument '{}' is missing", name),
            "expected " + signature());
      }
      leaves_.push_back(nullptr);
    }
  }

  void check_count(const ProgramArguments& given, std::size_t most) const {
    const std::size_t keywords = model_.in_tree.children.back().children.size();
    if (given.args.size() > most) {
      wrong_arguments(
          format("{} arguments by position are too many", given.args.size()),
          "expected " + signature() +
              (keywords > 0
                   ? format(
                         ", the last {} by name: "
                         "ProgramArguments{{.args = ..., .kwargs = ...}}",
                         keywords == 1 ? "one" : std::to_string(keywords))
                   : ""));
    }
  }

  void check_all_used(const ProgramArguments& given) {
    const auto left = std::ranges::find(used_, false);
    if (left != used_.end()) {
      const auto& name =
          given.kwargs[static_cast<std::size_t>(left - used_.begin())].first;
      const auto same =
          std::ranges::count(given.kwargs, name, &ProgramValue::Item::first);
      wrong_arguments(
          same > 1 ? format("argument '{}' is given twice", escape(name))
                   : format("there is no argument '{}'", escape(name)),
          "expected " + signature());
    }
  }

  [[noreturn]] static void wrong_structure(
      const ExportedTree& tree,
      const ProgramValue& value,
      const std::string& name) {
    wrong_arguments(format(
        "argument '{}' has another structure; expected {}, got {}",
        name,
        describe(tree),
        value.describe()));
  }

  [[nodiscard]] std::string signature() const {
    std::vector<std::string> parts;
    std::size_t argument = 0;
    for (const ExportedTree& group : model_.in_tree.children) {
      for (std::size_t i = 0; i < group.children.size(); ++i) {
        const ExportedTree& child = group.children[i];
        const std::string name = argument_name(model_, group, i, argument++);
        parts.push_back(child.is_leaf() ? name : name + ": " + describe(child));
      }
    }
    return "forward(" + join(parts, ", ") + ")";
  }

  const ExportedModel& model_;
  std::vector<const ExportedInput*> inputs_ = {};
  std::vector<bool> used_ = {};
  std::vector<const ProgramValue*> leaves_ = {};
};

// Of the values of a dict, a named tuple, a dataclass.
const std::vector<std::string>& names_of(
    const ExportedTree& tree,
    const ExportedModel& model) {
  if (tree.type != kNamedTuple) {
    return has_keys(tree) ? tree.keys : tree.fields;
  }
  const auto found = tree.keys.empty()
                         ? model.named_tuples.end()
                         : model.named_tuples.find(tree.keys.front());
  return found == model.named_tuples.end() ? tree.fields : found->second;
}

ProgramValue build(
    const ExportedTree& tree,
    const ExportedModel& model,
    std::vector<c10::IValue>& outputs,
    std::size_t& next) {
  if (tree.is_leaf()) {
    return to_program_value(std::move(outputs.at(next++)));
  }
  std::vector<ProgramValue> items;
  items.reserve(tree.children.size());
  for (const ExportedTree& child : tree.children) {
    items.push_back(build(child, model, outputs, next));
  }
  const auto& names = names_of(tree, model);
  const bool is_empty_dict = items.empty() && tree.is_dict();
  if (is_empty_dict || (!names.empty() && names.size() == items.size())) {
    std::vector<ProgramValue::Item> entries;
    entries.reserve(items.size());
    for (std::size_t i = 0; i < items.size(); ++i) {
      entries.emplace_back(names[i], std::move(items[i]));
    }
    for (const std::string& name : tree.none_fields) {
      entries.emplace_back(name, ProgramValue());
    }
    return ProgramValue::dict(std::move(entries));
  }
  return tree.type == kList ? ProgramValue::list(std::move(items))
                            : ProgramValue::tuple(std::move(items));
}

} // namespace

std::vector<const ProgramValue*> flatten_arguments(
    const ExportedModel& model,
    const ProgramArguments& arguments) {
  return Flattener(model).run(arguments);
}

std::vector<std::string> input_names(const ExportedModel& model) {
  std::vector<std::string> names;
  std::size_t argument = 0;
  for (const ExportedTree& group : model.in_tree.children) {
    for (std::size_t i = 0; i < group.children.size(); ++i) {
      add_names(
          group.children[i],
          argument_name(model, group, i, argument++),
          names);
    }
  }
  return names;
}

ProgramValue build_results(
    const ExportedModel& model,
    std::vector<c10::IValue> outputs) {
  std::size_t next = 0;
  return build(model.out_tree, model, outputs, next);
}

ProgramValue to_program_value(c10::IValue value) {
  if (value.isTensor()) {
    return std::move(value).toTensor();
  }
  if (value.isBool()) {
    return value.toBool();
  }
  if (value.isInt()) {
    return value.toInt();
  }
  if (value.isDouble()) {
    return value.toDouble();
  }
  if (value.isString()) {
    return value.toStringRef();
  }
  if (value.isNone()) {
    return {};
  }
  raise(
      {.code = ErrorCode::kUnsupported,
       .op = "program.run",
       .message = format(
           "a result is a {}, which has no form in C++",
           value.tagKind()),
       .detail = "E_PROGRAM"});
}

} // namespace lockstep::program
