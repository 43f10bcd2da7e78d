// SPDX-License-Identifier: BSD-3-Clause
#include "cli_train/bench_report.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "cli_train/bench_text.h"
#include "lockstep/base/internal/answer.h"
#include "lockstep/base/strings.h"

namespace lockstep::cli_train {
namespace {

std::string billions(double per_second) {
  return format("{:.0f}", per_second / 1e9);
}

double seconds_of(const LayerTime& layer) {
  return layer.forward_seconds + layer.backward_seconds;
}

/// Of a layer; 0 where they are not known.
double operations_of(const BenchResult& result, const std::string& layer) {
  const auto found = std::ranges::find(
      result.layer_operations,
      layer,
      &std::pair<std::string, double>::first);
  return found == result.layer_operations.end() ? 0 : found->second;
}

/// Of the layer or operation of this name; all 0 if the side has none.
LayerTime same_layer(const BenchSide& side, const std::string& name) {
  const auto found = std::ranges::find(side.layers, name, &LayerTime::name);
  return found == side.layers.end() ? LayerTime() : *found;
}

double peak_of(const BenchResult& result) {
  return std::max(result.peak_before, result.peak_after);
}

std::string step_table(const BenchRequest& request, const BenchResult& result) {
  std::vector<TableRow> rows{
      {"kernels",
       "layout",
       "images/s",
       "step",
       "best",
       "worst",
       "update",
       "GFLOP/s",
       "of peak"}};
  for (const BenchSide& side : result.sides) {
    const double median = side.median_step();
    const auto [best, worst] = std::ranges::minmax(side.steps);
    rows.push_back(
        {side.kernels,
         side.has_channels_last ? "channels last" : "packed",
         format(
             "{:.1f}",
             static_cast<double>(request.model.batch_size) / median),
         milliseconds_text(median),
         milliseconds_text(best),
         milliseconds_text(worst),
         milliseconds_text(side.update_seconds),
         billions(result.operations / median),
         format(
             "{:.0f} %",
             100 * result.operations / median / peak_of(result))});
  }
  std::string text = text_table(rows);
  if (result.sides.size() == 2) {
    text += format(
        "{} takes {:.2f} times as long as {} (medians)\n",
        result.sides[1].kernels,
        result.sides[1].median_step() / result.sides[0].median_step(),
        result.sides[0].kernels);
  }
  return text;
}

std::string layer_table(const BenchResult& result) {
  const BenchSide& side = result.sides.front();
  const bool compares = result.sides.size() == 2;
  std::vector<TableRow> rows{
      {"layer", "type", "forward", "backward", "share", "GFLOP/s", "kernel"}};
  if (compares) {
    rows.front().push_back(result.sides[1].kernels);
  }
  double all = side.update_seconds;
  for (const LayerTime& layer : side.layers) {
    all += seconds_of(layer);
  }
  for (const LayerTime& layer : side.layers) {
    const double took = seconds_of(layer);
    if (took == 0) {
      continue;
    }
    const double operations = operations_of(result, layer.name);
    const std::vector<std::string> kernels(
        layer.kernels.begin(),
        layer.kernels.end());
    rows.push_back(
        {layer.name,
         layer.type,
         milliseconds_text(layer.forward_seconds),
         milliseconds_text(layer.backward_seconds),
         format("{:.1f} %", 100 * took / all),
         operations < result.operations / 100 ? ""
                                              : billions(operations / took),
         kernels.empty() ? "LibTorch's" : join(kernels, ", ")});
    if (compares) {
      const double other = seconds_of(same_layer(result.sides[1], layer.name));
      rows.back().push_back(other == 0 ? "" : format("{:.2f}x", other / took));
    }
  }
  return text_table(rows);
}

Json to_json(const BenchResult& result, const BenchSide& side) {
  Json layers = Json::array();
  for (const LayerTime& layer : side.layers) {
    Json row = Json::object();
    row.set("name", layer.name)
        .set("type", layer.type)
        .set("forward_seconds", layer.forward_seconds)
        .set("backward_seconds", layer.backward_seconds)
        .set("operations", operations_of(result, layer.name))
        .set("kernels", Json::array(layer.kernels));
    layers.push(std::move(row));
  }
  Json object = Json::object();
  object.set("kernels", side.kernels)
      .set("channels_last", side.has_channels_last)
      .set("median_step_seconds", side.median_step())
      .set("step_seconds", Json::array(side.steps))
      .set("update_seconds", side.update_seconds)
      .set("layers", std::move(layers));
  return object;
}

} // namespace

std::string bench_text(const BenchRequest& request, const BenchResult& result) {
  return bench_title(request) + step_table(request, result) +
         format(
             "peak: {} GFLOP/s of {}, measured now\nmemory: {} at most{}\n\n",
             billions(peak_of(result)),
             request.device.is_cpu() ? "float32 multiplications with additions"
             : request.amp == "off"  ? "float32 matrix products"
                                     : "bfloat16 matrix products",
             human_bytes(static_cast<std::uint64_t>(result.peak_memory)),
             result.sides.size() == 2 ? ", both models together" : "") +
         layer_table(result);
}

Json bench_json(const BenchRequest& request, const BenchResult& result) {
  Json sides = Json::array();
  for (const BenchSide& side : result.sides) {
    sides.push(to_json(result, side));
  }
  Json object = bench_facts(request);
  object.set("operations", result.operations)
      .set("peak_before", result.peak_before)
      .set("peak_after", result.peak_after)
      .set("peak_memory_bytes", result.peak_memory)
      .set("sides", std::move(sides));
  return answer_json("lockstep.bench/1", std::move(object));
}

} // namespace lockstep::cli_train
