// SPDX-License-Identifier: BSD-3-Clause
#include <string>
#include <string_view>
#include <utility>

#include <ATen/ops/zeros.h>

#include "cli_train/command_flags.h"
#include "cli_train/commands.h"
#include "lockstep/base/internal/answer.h"
#include "lockstep/models/internal/summary.h"
#include "lockstep/train/settings/internal/commands.h"

namespace lockstep::cli_train {
namespace {

constexpr const train::TrainCommand& kSummary = train::kTrainCommands[1];
static_assert(kSummary.name == "summary");

constexpr std::string_view kSummaryAbout =
    "Runs a model once on an empty image and shows its layers: shapes,\n"
    "parameters and multiplications with additions, counted as torchinfo does.";

Json summary_json(const std::string& model, const ModelSummary& summary) {
  Json layers = Json::array();
  for (const LayerSummary& layer : summary.layers) {
    Json row = Json::object();
    row.set("name", layer.name)
        .set("type", layer.type)
        .set("depth", layer.depth)
        .set("output_shape", Json::array(layer.output_shape))
        .set("params", layer.params)
        .set("trainable_params", layer.trainable_params)
        .set("mult_adds", layer.mult_adds);
    layers.push(std::move(row));
  }
  Json result = Json::object();
  result.set("model", model)
      .set("input_shape", Json::array(summary.input_shape))
      .set("params", summary.params)
      .set("trainable_params", summary.trainable_params)
      .set("mult_adds", summary.mult_adds)
      .set("input_bytes", summary.input_bytes)
      .set("pass_bytes", summary.pass_bytes)
      .set("param_bytes", summary.param_bytes)
      .set("layers", std::move(layers));
  return answer_json("lockstep.summary/1", std::move(result));
}

} // namespace

int summary_command(Arguments args) {
  const CommandFlags flags(kSummary, args);
  if (flags.has("--help")) {
    flags.print_help(kSummaryAbout);
    return 0;
  }
  const ModelRequest request = read_model_request(flags, {});
  const auto net = make_requested(request);
  const ModelSummary summary = summarize(
      *net,
      at::zeros(
          {request.batch_size,
           request.in_channels,
           request.img_size,
           request.img_size}));
  const std::string text =
      flags.has("--json") ? summary_json(request.model, summary).dump() + "\n"
                          : to_string(summary);
  print(text);
  return 0;
}

} // namespace lockstep::cli_train
