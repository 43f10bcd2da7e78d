// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <string>
#include <vector>

#include <ATen/ops/zeros.h>

#include "cli_train/commands.h"
#include "lockstep/base/error.h"
#include "lockstep/base/json.h"
#include "lockstep/base/strings.h"
#include "lockstep/models/registry.h"
#include "lockstep/models/summary.h"
#include "lockstep/train/settings/commands.h"

namespace lockstep::cli_train {
namespace {

struct SummaryRequest {
  std::string model = {};
  /// Units: pixels; 0: what the model is made for.
  std::int64_t img_size = 0;
  std::int64_t batch_size = 1;
  std::int64_t num_classes = 1000;
  std::int64_t in_channels = 3;
  bool wants_json = false;
  bool wants_help = false;
};

struct NumberFlag {
  std::string_view name = {};
  std::int64_t SummaryRequest::*member = nullptr;
};

// Those of `train::kSummaryFlags` that take a number.
constexpr std::array kNumbers{
    NumberFlag{"--img-size", &SummaryRequest::img_size},
    NumberFlag{"--batch-size", &SummaryRequest::batch_size},
    NumberFlag{"--num-classes", &SummaryRequest::num_classes},
    NumberFlag{"--in-channels", &SummaryRequest::in_channels},
};

[[noreturn]] void bad_summary(std::string message, std::string hint) {
  raise(
      {.code = ErrorCode::kInvalidArgument,
       .op = "summary.args",
       .message = std::move(message),
       .hint = std::move(hint)});
}

[[noreturn]] void unknown_summary_flag(const std::string& word) {
  std::vector<std::string> known;
  for (const train::CommandFlag& flag : train::kSummaryFlags) {
    known.emplace_back(flag.name);
  }
  const std::string near = nearest(word, known);
  bad_summary(
      format("unknown flag '{}'", escape(word)),
      near.empty() ? "'lockstep summary --help' lists all"
                   : format("did you mean '{}'?", near));
}

std::int64_t to_number(std::string_view flag, const std::string& text) {
  std::int64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, code] = std::from_chars(text.data(), end, number);
  if (code != std::errc() || rest != end || number < 1) {
    bad_summary(
        format(
            "{}: expected a whole number of 1 or more, got '{}'",
            flag,
            escape(text)),
        "'lockstep summary --help' shows the flags");
  }
  return number;
}

SummaryRequest parse_summary(Arguments args) {
  SummaryRequest request;
  for (std::size_t i = 0; i < args.size(); ++i) {
    const auto equals =
        args[i].starts_with("--") ? args[i].find('=') : std::string::npos;
    std::string word = args[i].substr(0, equals);
    if (!word.starts_with('-')) {
      if (!request.model.empty()) {
        bad_summary(
            format("one model at a time; '{}' is left over", escape(word)),
            "'lockstep summary --help' shows the flags");
      }
      request.model = word;
      continue;
    }
    std::ranges::replace(word, '_', '-');
    request.wants_json = request.wants_json || word == "--json";
    request.wants_help = request.wants_help || word == "--help" || word == "-h";
    if (word == "--json" || word == "--help" || word == "-h") {
      continue;
    }
    const auto* flag = std::ranges::find(kNumbers, word, &NumberFlag::name);
    if (flag == kNumbers.end()) {
      unknown_summary_flag(word);
    }
    if (equals == std::string::npos && i + 1 == args.size()) {
      bad_summary(
          format("flag '{}' needs a value", word),
          "'lockstep summary --help' shows the flags");
    }
    request.*flag->member = to_number(
        word,
        equals == std::string::npos ? args[++i] : args[i].substr(equals + 1));
  }
  return request;
}

void print_summary_help() {
  std::string text =
      "Usage: lockstep summary MODEL [flags]\n"
      "Runs a model once on an empty image and shows its layers: shapes,\n"
      "parameters and multiplications with additions, counted as torchinfo "
      "does.\n\n";
  for (const train::CommandFlag& flag : train::kSummaryFlags) {
    text += format(
        "  {}{}{}\n      {}\n",
        flag.name,
        flag.value.empty() ? "" : " ",
        flag.value,
        flag.help);
  }
  text += "\nModels\n";
  for (const std::string& name : model_names()) {
    text += "  " + name + "\n";
  }
  text +=
      "\nExamples\n"
      "  lockstep summary resnet18\n"
      "  lockstep summary vgg19 --img-size 32 --num-classes 10 --json\n";
  std::fputs(text.c_str(), stdout);
}

/// Units: pixels. Errors: kInvalidArgument for images that the model refuses.
std::int64_t size_for(const SummaryRequest& request) {
  constexpr std::int64_t kImageNet = 224;
  const ImageSizes sizes = image_sizes(request.model);
  if (request.img_size == 0) {
    return sizes.largest > 0        ? sizes.largest
           : request.model == "mlp" ? ModelOptions().image_height
                                    : kImageNet;
  }
  if (!sizes.takes(request.img_size)) {
    bad_summary(
        format(
            "--img-size: {} takes images of {}, got {}",
            request.model,
            sizes.to_text(),
            request.img_size),
        "leave the flag out for the usual size");
  }
  return request.img_size;
}

Json to_json(const std::vector<std::int64_t>& numbers) {
  Json list = Json::array();
  for (const std::int64_t number : numbers) {
    list.push(number);
  }
  return list;
}

Json to_json(const std::string& model, const ModelSummary& summary) {
  Json layers = Json::array();
  for (const LayerSummary& layer : summary.layers) {
    Json row = Json::object();
    row.set("name", layer.name)
        .set("type", layer.type)
        .set("depth", layer.depth)
        .set("output_shape", to_json(layer.output_shape))
        .set("params", layer.params)
        .set("trainable_params", layer.trainable_params)
        .set("mult_adds", layer.mult_adds);
    layers.push(std::move(row));
  }
  Json result = Json::object();
  result.set("model", model)
      .set("input_shape", to_json(summary.input_shape))
      .set("params", summary.params)
      .set("trainable_params", summary.trainable_params)
      .set("mult_adds", summary.mult_adds)
      .set("input_bytes", summary.input_bytes)
      .set("pass_bytes", summary.pass_bytes)
      .set("param_bytes", summary.param_bytes)
      .set("layers", std::move(layers));
  Json document = Json::object();
  document.set("schema", "lockstep.summary/1")
      .set("ok", true)
      .set("result", std::move(result));
  return document;
}

} // namespace

int summary_command(Arguments args) {
  const SummaryRequest request = parse_summary(args);
  if (request.wants_help) {
    print_summary_help();
    return 0;
  }
  if (request.model.empty()) {
    bad_summary(
        "which model?",
        "'lockstep summary resnet18'; models are " + join(model_names(), ", "));
  }
  const std::int64_t size = size_for(request);
  const auto net = make_model(
      request.model,
      {.num_classes = request.num_classes,
       .in_channels = request.in_channels,
       .image_height = size,
       .image_width = size});
  const ModelSummary summary = summarize(
      *net,
      at::zeros({request.batch_size, request.in_channels, size, size}));
  const std::string text = request.wants_json
                               ? to_json(request.model, summary).dump() + "\n"
                               : to_string(summary);
  std::fputs(text.c_str(), stdout);
  return 0;
}

} // namespace lockstep::cli_train
