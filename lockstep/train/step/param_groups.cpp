// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/step/param_groups.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include <yaml-cpp/yaml.h>

#include "lockstep/base/error.h"
#include "lockstep/base/internal/numbers.h"
#include "lockstep/base/strings.h"

namespace lockstep::train {
namespace {

/// One rule of a file.
struct GroupRule {
  std::vector<std::string> match = {};
  double lr_scale = 1.0;
  /// None: as for the parameters of no rule.
  std::optional<double> weight_decay = {};
};

[[noreturn]] void bad_rules(
    const std::string& path,
    const YAML::Mark& mark,
    std::string message) {
  raise(
      {.code = ErrorCode::kInvalidArgument,
       .op = "train.param_groups",
       .message = std::move(message),
       .hint = "a rule is '- {match: \"fc.*\", lr_scale: 10, weight_decay: 0}'",
       .path = mark.is_null()
                   ? path
                   : format("{}:{}:{}", path, mark.line + 1, mark.column + 1),
       .detail = "E_CONFIG_FILE"});
}

double rule_number(const YAML::Node& node, const std::string& path) {
  const auto number = node.IsScalar() ? parse_number<double>(node.Scalar())
                                      : std::optional<double>();
  if (!number || !std::isfinite(*number) || *number < 0) {
    bad_rules(path, node.Mark(), "expected a number of at least 0");
  }
  return *number;
}

std::vector<std::string> patterns_in(
    const YAML::Node& node,
    const std::string& path) {
  std::vector<std::string> patterns;
  if (node.IsScalar()) {
    patterns.push_back(node.Scalar());
  }
  for (const YAML::Node& item : node) {
    patterns.push_back(item.IsScalar() ? item.Scalar() : "");
  }
  if (patterns.empty() || std::ranges::find(patterns, "") != patterns.end()) {
    bad_rules(path, node.Mark(), "match is a pattern of names, or several");
  }
  return patterns;
}

GroupRule rule_in(const YAML::Node& node, const std::string& path) {
  if (!node.IsMap()) {
    bad_rules(path, node.Mark(), "expected the entries of a rule by name");
  }
  GroupRule rule;
  for (const auto& entry : node) {
    std::string name = entry.first.Scalar();
    std::ranges::replace(name, '-', '_');
    if (name == "match") {
      rule.match = patterns_in(entry.second, path);
    } else if (name == "lr_scale") {
      rule.lr_scale = rule_number(entry.second, path);
    } else if (name == "weight_decay") {
      rule.weight_decay = rule_number(entry.second, path);
    } else {
      bad_rules(
          path,
          entry.first.Mark(),
          format(
              "expected match, lr_scale or weight_decay, got '{}'",
              escape(name)));
    }
  }
  if (rule.match.empty()) {
    bad_rules(path, node.Mark(), "the rule has no match");
  }
  return rule;
}

std::vector<GroupRule> rules_in(
    const std::string& text,
    const std::string& path) {
  std::vector<GroupRule> rules;
  if (text.empty()) {
    return rules;
  }
  try {
    const YAML::Node root = YAML::Load(text);
    if (!root.IsSequence() || root.size() == 0) {
      bad_rules(path, root.Mark(), "expected a list of rules");
    }
    for (const YAML::Node& node : root) {
      rules.push_back(rule_in(node, path));
    }
  } catch (const YAML::Exception& error) {
    bad_rules(path, error.mark, error.msg);
  }
  return rules;
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char letter : text) {
    out += letter == '"' || letter == '\\' ? "\\" : "";
    out += letter;
  }
  return out + "\"";
}

std::string rules_to_yaml(const std::vector<GroupRule>& rules) {
  std::vector<std::string> texts;
  for (const GroupRule& rule : rules) {
    std::vector<std::string> patterns;
    patterns.reserve(rule.match.size());
    for (const std::string& pattern : rule.match) {
      patterns.push_back(quoted(pattern));
    }
    std::string text = format(
        "match: [{}], lr_scale: {}",
        join(patterns, ", "),
        shortest(rule.lr_scale));
    if (const auto decay = rule.weight_decay) {
      text += format(", weight_decay: {}", shortest(*decay));
    }
    texts.push_back("{" + text + "}");
  }
  return "[" + join(texts, ", ") + "]";
}

// '*' is any text, '?' any letter.
bool matches(std::string_view pattern, std::string_view name) {
  std::size_t p = 0;
  std::size_t n = 0;
  std::size_t star = std::string_view::npos;
  std::size_t resume = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = n;
    } else if (
        p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n])) {
      ++p;
      ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++resume;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

bool matches(const GroupRule& rule, std::string_view name) {
  return std::ranges::any_of(rule.match, [&](const std::string& pattern) {
    return matches(pattern, name);
  });
}

// The first rule of each parameter; the number of rules for none.
std::vector<std::size_t> rules_of(
    const std::vector<GroupRule>& rules,
    std::span<const NamedShape> params) {
  std::vector<std::size_t> found;
  std::vector<bool> has_own(rules.size());
  for (const NamedShape& param : params) {
    const auto rule = std::ranges::find_if(rules, [&](const GroupRule& each) {
      return matches(each, param.name);
    });
    found.push_back(static_cast<std::size_t>(rule - rules.begin()));
    if (rule != rules.end()) {
      has_own[found.back()] = true;
    }
  }
  const auto idle = std::ranges::find(has_own, false);
  if (idle != has_own.end()) {
    std::vector<std::string> names;
    for (const NamedShape& param : params) {
      names.push_back(param.name);
    }
    const auto& patterns =
        rules[static_cast<std::size_t>(idle - has_own.begin())].match;
    raise(
        {.code = ErrorCode::kInvalidArgument,
         .op = "train.param_groups",
         .message = format(
             "rule {} of --param-groups ('{}') has no parameter: none matches, "
             "or rules before it have them",
             idle - has_own.begin() + 1,
             escape(join(patterns, "', '"))),
         .hint = format("the parameters are {}", some_names(names)),
         .detail = "E_GROUP_RULE"});
  }
  return found;
}

// "layer1.0" of "layer1.0.conv1.weight", "fc" of "fc.weight", "" of
// "cls_token".
std::string part_of(const std::string& name) {
  const std::vector<std::string> words = split(name, '.');
  std::string part;
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    part += (i == 0 ? "" : ".") + words[i];
    if (parse_number<std::int64_t>(words[i])) {
      return part;
    }
  }
  return words.size() == 1 ? "" : words.front();
}

} // namespace

std::string resolved_param_groups(const std::string& text, FileSystem& fs) {
  if (text.empty()) {
    return text;
  }
  return rules_to_yaml(
      text.starts_with('[') ? rules_in(text, "--param-groups")
                            : rules_in(read_text(fs, text).value(), text));
}

std::vector<std::size_t> layers_of(std::span<const NamedShape> params) {
  std::vector<std::string> parts;
  std::map<std::string, bool> is_layer;
  for (const NamedShape& param : params) {
    const std::string part = part_of(param.name);
    if (!is_layer.contains(part)) {
      parts.push_back(part);
    }
    is_layer[part] = is_layer[part] || (param.dims > 1 && !part.empty());
  }
  std::map<std::string, std::size_t> layers;
  std::size_t count = 0;
  for (const std::string& part : parts) {
    count += is_layer[part] ? 1 : 0;
    layers[part] = part.empty() || count == 0 ? 0 : count - 1;
  }
  std::vector<std::size_t> found;
  found.reserve(params.size());
  for (const NamedShape& param : params) {
    found.push_back(layers[part_of(param.name)]);
  }
  return found;
}

namespace {

std::vector<NamedShape> shapes_of(const ParamGroup& all) {
  std::vector<NamedShape> shapes;
  shapes.reserve(all.params.size());
  const ckpt::List& names = *all.find("param_names")->as_list();
  for (std::size_t i = 0; i < all.params.size(); ++i) {
    shapes.push_back(
        {.name = std::string(names.items[i].text()),
         .dims = all.params[i].dim()});
  }
  return shapes;
}

bool asks_for_groups(const TrainConfig& config) {
  return config.layer_decay != 1.0 || !config.param_groups.empty() ||
         config.no_decay_norms;
}

void add_to(ParamGroup& group, const NamedShape& shape, at::Tensor parameter) {
  group.params.push_back(std::move(parameter));
  ckpt::List names;
  if (const ckpt::Value* known = group.find("param_names")) {
    names = *known->as_list();
  }
  names.items.emplace_back(shape.name);
  group.set("param_names", std::move(names));
}

} // namespace

std::vector<ParamGroup> chosen_groups(
    const TrainConfig& config,
    const torch::nn::Module& module) {
  std::vector<ParamGroup> groups;
  if (!asks_for_groups(config)) {
    return groups;
  }
  const ParamGroup all = named_parameters(module);
  const std::vector<NamedShape> shapes = shapes_of(all);
  const std::vector<GroupRule> rules =
      rules_in(config.param_groups, "--param-groups");
  const std::vector<std::size_t> rule_of = rules_of(rules, shapes);
  std::vector<std::size_t> layers(shapes.size());
  if (config.layer_decay != 1.0) {
    layers = layers_of(shapes);
  }
  const std::size_t last = layers.empty() ? 0 : std::ranges::max(layers);
  std::map<std::tuple<std::size_t, std::size_t, bool>, std::size_t> places;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const GroupRule rule =
        rule_of[i] < rules.size() ? rules[rule_of[i]] : GroupRule();
    const bool is_plain = config.no_decay_norms && shapes[i].dims <= 1 &&
                          !rule.weight_decay.has_value();
    const auto [place, is_new] =
        places.try_emplace({rule_of[i], layers[i], is_plain}, groups.size());
    if (is_new) {
      const double scale =
          std::pow(config.layer_decay, static_cast<double>(last - layers[i]));
      ParamGroup& group = groups.emplace_back();
      group.set("lr", config.lr * rule.lr_scale * scale);
      group.set(
          "weight_decay",
          is_plain ? 0.0 : rule.weight_decay.value_or(config.weight_decay));
    }
    add_to(groups[place->second], shapes[i], all.params[i]);
  }
  if (rules.empty() && config.layer_decay == 1.0) {
    std::ranges::stable_sort(groups, {}, [](const ParamGroup& group) {
      return group.number("weight_decay") != 0;
    });
  }
  return groups;
}

std::string groups_text(const std::vector<ParamGroup>& groups) {
  std::string text =
      format("the optimizer has {}", counted(groups.size(), "group"));
  for (const ParamGroup& group : groups) {
    std::vector<std::string> names;
    for (const ckpt::Value& name :
         group.find("param_names")->as_list()->items) {
      names.emplace_back(name.text());
    }
    text += format(
        "\n  lr {}, weight decay {}: {}, {}",
        shortest(group.lr()),
        shortest(group.number("weight_decay")),
        counted(names.size(), "parameter"),
        some_names(names));
  }
  return text;
}

} // namespace lockstep::train
