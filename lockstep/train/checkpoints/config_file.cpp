// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/checkpoints/config_file.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <yaml-cpp/yaml.h>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/train/settings/internal/run_names.h"

namespace lockstep::train {
namespace {

/// Where in a file.
struct Place {
  std::string path = {};
  YAML::Mark mark = {};

  [[nodiscard]] std::string to_text() const {
    return mark.is_null()
               ? path
               : format("{}:{}:{}", path, mark.line + 1, mark.column + 1);
  }
};

[[noreturn]] void bad_yaml(
    const Place& place,
    std::string_view detail,
    const std::string& message,
    const std::string& hint = {}) {
  raise(
      {.code = ErrorCode::kInvalidArgument,
       .op = "train.config",
       .message = message,
       .hint = hint,
       .path = place.to_text(),
       .detail = std::string(detail)});
}

/// The setting that `key` names, in either spelling.
const Flag& flag_of(std::string key, const Place& place) {
  std::ranges::replace(key, '-', '_');
  if (const Flag* flag = find_key(key)) {
    return *flag;
  }
  std::vector<std::string> keys;
  for (const Flag& known : flag_table()) {
    keys.push_back(known.key());
  }
  const std::string near = nearest(key, keys);
  bad_yaml(
      place,
      "E_CONFIG_KEY",
      format("unknown setting '{}'", escape(key)),
      near.empty() ? "" : format("did you mean '{}'?", near));
}

void set_from_file(
    TrainConfig& config,
    const Flag& flag,
    const std::string& value,
    const Place& place) {
  // The run that goes on has settings, too: which run it is must be known
  // before any file is a run's. timm writes an empty one.
  if (flag.name == "resume" && !value.empty()) {
    bad_yaml(
        place,
        "E_CONFIG_KEY",
        "what to resume is no setting of a file",
        "--resume on the command line, or LOCKSTEP_RESUME in the environment");
  }
  try {
    set_flag(config, flag, value);
  } catch (const Exception& exception) {
    Error error = exception.error();
    error.path = place.to_text();
    raise(std::move(error));
  }
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
    bad_yaml(
        {path, node.Mark()},
        "E_CONFIG_FILE",
        "expected a plain value or a list");
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
  if (const auto text = value.as_string()) {
    return *text;
  }
  if (const auto flag = value.as_bool()) {
    return *flag ? "true" : "false";
  }
  if (const auto number = value.as_int()) {
    return std::to_string(*number);
  }
  if (value.type() == ckpt::Value::Type::kFloat) {
    return shortest(*value.as_float());
  }
  if (const auto list = value.as_list()) {
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
    const std::string& path,
    SettingSources* sources) {
  try {
    const YAML::Node root = YAML::Load(text);
    if (!root.IsMap()) {
      bad_yaml(
          {path, root.Mark()},
          "E_CONFIG_FILE",
          "expected lines of 'key: value'");
    }
    for (const auto& entry : root) {
      const Place place{path, entry.first.Mark()};
      const Flag& flag = flag_of(entry.first.as<std::string>(), place);
      const std::string value = scalar_text(path, entry.second);
      set_from_file(config, flag, value, {path, entry.second.Mark()});
      if (sources != nullptr) {
        sources->set(flag, format("{}:{}", path, place.mark.line + 1));
      }
    }
  } catch (const YAML::Exception& error) {
    bad_yaml({path, error.mark}, "E_CONFIG_FILE", error.msg);
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

void apply_args(
    TrainConfig& config,
    const ckpt::Value& args,
    SettingSources* sources) {
  for (const Flag& flag : flag_table()) {
    const ckpt::Value* value = args.find(flag.key());
    if (const auto text = value ? to_text(*value) : std::nullopt) {
      set_flag(config, flag, *text);
      if (sources != nullptr) {
        sources->set(flag, std::string(kFromCheckpoint));
      }
    }
  }
}

} // namespace lockstep::train
