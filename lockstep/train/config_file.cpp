// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/config_file.h"

#include <algorithm>
#include <optional>

#include <yaml-cpp/yaml.h>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"

namespace lockstep::train {
namespace {

[[noreturn]] void bad_yaml(
    const std::string& path,
    const YAML::Mark& mark,
    const std::string& message,
    const std::string& hint = {}) {
  raise(
      {.code = ErrorCode::kInvalidArgument,
       .op = "train.config",
       .message = message,
       .hint = hint,
       .path = mark.is_null()
                   ? path
                   : format("{}:{}:{}", path, mark.line + 1, mark.column + 1)});
}

/// Lists may be written `[3, 5]` or `3,5`; both become the flag's text.
std::string scalar_text(const std::string& path, const YAML::Node& node) {
  if (node.IsNull()) {
    return {};
  }
  if (node.IsScalar()) {
    return node.Scalar();
  }
  if (!node.IsSequence()) {
    bad_yaml(path, node.Mark(), "expected a plain value or a list");
  }
  std::vector<std::string> parts;
  for (const YAML::Node& item : node) {
    parts.push_back(scalar_text(path, item));
  }
  return join(parts, ",");
}

ckpt::Value to_value(const std::string& value) {
  return {value};
}
ckpt::Value to_value(std::int64_t value) {
  return {value};
}
ckpt::Value to_value(double value) {
  return {value};
}
ckpt::Value to_value(bool value) {
  return {value};
}
ckpt::Value to_value(const std::vector<std::int64_t>& values) {
  ckpt::List list;
  list.items.assign(values.begin(), values.end());
  return {std::move(list)};
}

/// What `set_flag` reads; nothing for None and for what no flag holds.
std::optional<std::string> to_text(const ckpt::Value& value) {
  if (const auto* text = value.as_string()) {
    return *text;
  }
  if (const auto* flag = value.as_bool()) {
    return *flag ? "true" : "false";
  }
  if (const auto* number = value.as_int()) {
    return std::to_string(*number);
  }
  if (const auto* number = value.as_float()) {
    return shortest(*number);
  }
  if (const auto* list = value.as_list()) {
    std::vector<std::string> parts;
    parts.reserve(list->items.size());
    for (const ckpt::Value& item : list->items) {
      parts.push_back(to_text(item).value_or(""));
    }
    return join(parts, ",");
  }
  return std::nullopt;
}

} // namespace

std::string to_yaml(const TrainConfig& config) {
  YAML::Emitter out;
  out << YAML::BeginMap;
  for (const Flag& flag : flag_table()) {
    if (!flag.is_saved) {
      continue;
    }
    out << YAML::Key << flag.key() << YAML::Value;
    if (std::holds_alternative<std::string TrainConfig::*>(flag.member)) {
      out << YAML::DoubleQuoted;
    }
    const std::string text = get_flag(config, flag);
    if (std::holds_alternative<std::vector<std::int64_t> TrainConfig::*>(
            flag.member)) {
      out << YAML::Flow << YAML::Load("[" + text + "]");
    } else {
      out << text;
    }
  }
  out << YAML::EndMap;
  return std::string(out.c_str()) + "\n";
}

void apply_yaml(
    TrainConfig& config,
    const std::string& text,
    const std::string& path) {
  try {
    const YAML::Node root = YAML::Load(text);
    if (!root.IsMap()) {
      bad_yaml(path, root.Mark(), "expected lines of 'key: value'");
    }
    for (const auto& entry : root) {
      auto key = entry.first.as<std::string>();
      std::ranges::replace(key, '-', '_');
      const Flag* flag = find_key(key);
      if (flag == nullptr) {
        std::vector<std::string> keys;
        for (const Flag& known : flag_table()) {
          keys.push_back(known.key());
        }
        const std::string near = nearest(key, keys);
        bad_yaml(
            path,
            entry.first.Mark(),
            format("unknown setting '{}'", escape(key)),
            near.empty() ? "" : format("did you mean '{}'?", near));
      }
      set_flag(config, *flag, scalar_text(path, entry.second));
    }
  } catch (const YAML::Exception& error) {
    bad_yaml(path, error.mark, error.msg);
  }
}

ckpt::Value to_args(const TrainConfig& config) {
  ckpt::Value args = ckpt::Value::dict({});
  for (const Flag& flag : flag_table()) {
    if (flag.is_saved) {
      args.set(
          flag.key(),
          std::visit(
              [&](auto member) { return to_value(config.*member); },
              flag.member));
    }
  }
  return args;
}

void apply_args(TrainConfig& config, const ckpt::Value& args) {
  for (const Flag& flag : flag_table()) {
    const ckpt::Value* value = args.find(flag.key());
    if (const auto text = value ? to_text(*value) : std::nullopt) {
      set_flag(config, flag, *text);
    }
  }
}

} // namespace lockstep::train
