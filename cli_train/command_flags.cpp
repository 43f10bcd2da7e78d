// SPDX-License-Identifier: BSD-3-Clause
#include "cli_train/command_flags.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <utility>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/models/model.h"
#include "lockstep/program/internal/program_facts.h"
#include "lockstep/train/settings/config.h"
#include "lockstep/train/step/named_model.h"

namespace lockstep::cli_train {

CommandFlags::CommandFlags(const train::TrainCommand& command, Arguments args)
    : command_(&command) {
  for (std::size_t i = 0; i < args.size(); ++i) {
    const auto equals =
        args[i].starts_with("--") ? args[i].find('=') : std::string::npos;
    const bool has_value = equals != std::string::npos;
    std::string word = args[i].substr(0, equals);
    if (!word.starts_with('-') || word == "-") {
      add_argument(args[i]);
      continue;
    }
    std::ranges::replace(word, '_', '-');
    word = word == "-h" ? "--help" : word;
    const auto flag =
        std::ranges::find(command.flags, word, &train::CommandFlag::name);
    if (flag == command.flags.end()) {
      refuse(word);
    }
    std::string value = has_value ? args[i].substr(equals + 1) : "";
    if (!flag->value.empty() && !has_value) {
      if (i + 1 == args.size()) {
        fail(format("flag '{}' needs a value", word));
      }
      value = args[++i];
    } else if (flag->value.empty() && has_value) {
      fail(format("flag '{}' takes no value, got '{}'", word, escape(value)));
    }
    if (!flag->value.empty() && value.empty()) {
      // Of --data "$DIR" with a variable that is not set.
      fail(format("{} has an empty value; expected {}", word, flag->value));
    }
    values_.insert_or_assign(word, value);
  }
  if (takes_model() && arguments_.size() > 1) {
    fail(format(
        "one model at a time; '{}' is left over",
        escape(arguments_[1])));
  }
}

void CommandFlags::add_argument(const std::string& word) {
  if (word.empty()) {
    fail(format("an argument is empty; expected {}", command_->arguments));
  }
  arguments_.push_back(word);
}

bool CommandFlags::takes_model() const {
  return command_->arguments == "MODEL";
}

void CommandFlags::refuse(const std::string& word) const {
  std::vector<std::string> known;
  for (const train::CommandFlag& flag : command_->flags) {
    known.emplace_back(flag.name);
  }
  const std::string near = nearest(word, known);
  const std::string message = format("unknown flag '{}'", escape(word));
  if (near.empty()) {
    fail(message);
  }
  fail(message, format("did you mean '{}'?", near));
}

void CommandFlags::fail(std::string message) const {
  fail(
      std::move(message),
      format("'lockstep {} --help' shows the flags", command_->name));
}

void CommandFlags::fail(std::string message, std::string hint) const {
  raise(
      {.code = ErrorCode::kInvalidArgument,
       .op = format("{}.args", command_->name),
       .message = std::move(message),
       .hint = std::move(hint)});
}

bool CommandFlags::has(std::string_view flag) const {
  return values_.contains(flag);
}

std::int64_t CommandFlags::number(
    std::string_view flag,
    std::int64_t otherwise,
    std::int64_t maximum) const {
  const auto found = values_.find(flag);
  if (found == values_.end()) {
    return otherwise;
  }
  const std::string& text = found->second;
  std::int64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, code] = std::from_chars(text.data(), end, number);
  if (code != std::errc() || rest != end || number < 1) {
    fail(format(
        "{}: expected a whole number of 1 or more, got '{}'",
        flag,
        escape(text)));
  }
  if (number > maximum) {
    fail(format("{}: expected at most {}, got '{}'", flag, maximum, number));
  }
  return number;
}

std::string CommandFlags::choice(
    std::string_view flag,
    std::span<const std::string_view> choices) const {
  const auto found = values_.find(flag);
  if (found == values_.end()) {
    return std::string(choices.front());
  }
  if (std::ranges::find(choices, found->second) == choices.end()) {
    fail(format(
        "{}: expected {}, got '{}'",
        flag,
        join(std::vector<std::string>(choices.begin(), choices.end()), ", "),
        escape(found->second)));
  }
  return found->second;
}

std::string CommandFlags::text(std::string_view flag) const {
  const auto found = values_.find(flag);
  return found == values_.end() ? "" : found->second;
}

std::string CommandFlags::devices() const {
  const std::string variable =
      train::environment_name(*train::find_flag("--devices"));
  return has("--devices") ? text("--devices")
                          : train::process_environment()(variable).value_or("");
}

std::string CommandFlags::model() const {
  if (arguments_.empty()) {
    fail(
        "no model is named",
        format(
            "'lockstep {} resnet18'; models are {}",
            command_->name,
            join(model_names(), ", ")));
  }
  return arguments_.front();
}

void CommandFlags::print_help(std::string_view about) const {
  std::string text = format(
      "Usage: lockstep {} {} [flags]\n{}\n\n",
      command_->name,
      command_->arguments,
      about);
  for (const train::CommandFlag& flag : command_->flags) {
    text += format(
        "  {}{}{}\n      {}\n",
        flag.name,
        flag.value.empty() ? "" : " ",
        flag.value,
        flag.help);
  }
  if (takes_model()) {
    text += "\nModels\n";
    for (const std::string& name : model_names()) {
      text += "  " + name + "\n";
    }
  }
  text += "\nExamples\n";
  for (const std::string_view example : command_->examples) {
    text += format("  {}\n", example);
  }
  print(text);
}

ModelRequest read_model_request(
    const CommandFlags& flags,
    const ModelRequest& defaults) {
  constexpr std::int64_t kImageNet = 224;
  ModelRequest request{
      .model = flags.model(),
      .img_size = flags.number("--img-size", defaults.img_size),
      .batch_size = flags.number("--batch-size", defaults.batch_size),
      .num_classes = flags.number("--num-classes", defaults.num_classes),
      .in_channels = flags.number("--in-channels", defaults.in_channels)};
  const ImageSizes sizes = train::named_image_sizes(request.model);
  const ModelOptions ends = train::named_options(
      request.model,
      {.num_classes = request.num_classes, .in_channels = request.in_channels});
  request.num_classes = ends.num_classes;
  request.in_channels = ends.in_channels;
  if (request.img_size == 0) {
    request.img_size = sizes.largest > 0        ? sizes.largest
                       : request.model == "mlp" ? ModelOptions().image_height
                                                : kImageNet;
  }
  if (!sizes.takes(request.img_size)) {
    flags.fail(
        format(
            "--img-size: {} takes images of {}, got {}",
            request.model,
            sizes.to_text(),
            request.img_size),
        "leave the flag out for the usual size");
  }
  return request;
}

std::shared_ptr<Model> make_requested(const ModelRequest& request) {
  if (is_program_file(request.model)) {
    return load_program(request.model).ptr();
  }
  return make_model(
      request.model,
      {.num_classes = request.num_classes,
       .in_channels = request.in_channels,
       .image_height = request.img_size,
       .image_width = request.img_size});
}

} // namespace lockstep::cli_train
