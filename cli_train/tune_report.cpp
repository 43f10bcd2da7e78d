// SPDX-License-Identifier: BSD-3-Clause
#include "cli_train/tune_report.h"

#include <algorithm>

#include "cli_train/bench_text.h"
#include "lockstep/base/internal/answer.h"
#include "lockstep/base/strings.h"

namespace lockstep::cli_train {
namespace {

using kernels::AlgorithmTime;
using kernels::AlgorithmTimes;
using kernels::kAlgorithms;

// By Pass.
constexpr std::array<std::string_view, 3> kPassNames{
    "forward",
    "input gradient",
    "weight gradient"};

// How much longer than the best a choice may take before it is worth a look.
constexpr double kTolerated = 1.1;

double chosen_seconds(const AlgorithmTimes& times) {
  return std::ranges::find(times, true, &AlgorithmTime::is_chosen)->seconds;
}

double best_seconds(const AlgorithmTimes& times) {
  return std::ranges::min(times, {}, &AlgorithmTime::seconds).seconds;
}

double exact_seconds(const AlgorithmTimes& times) {
  return times.front().seconds;
}

// Of all passes of a step.
double sum_of(
    const TuneResult& result,
    double (*seconds)(const AlgorithmTimes&)) {
  double sum = 0;
  for (const TunedConvolution& one : result.convolutions) {
    for (const AlgorithmTimes& times : one.times) {
      sum +=
          times.empty() ? 0 : static_cast<double>(one.count) * seconds(times);
    }
  }
  return sum;
}

// "3" for {3, 3}, "3x5" for others.
std::string extent(const std::vector<std::int64_t>& numbers) {
  const std::int64_t down = numbers.front();
  const std::int64_t across = numbers.back();
  return down == across ? format("{}", down) : format("{}x{}", down, across);
}

// Whether a stride of 1 would keep the map's size.
bool keeps_size(const TunedConvolution& one) {
  return 2 * one.padding.front() ==
             one.dilation.front() * (one.weight_sizes[2] - 1) &&
         2 * one.padding.back() ==
             one.dilation.back() * (one.weight_sizes[3] - 1);
}

// "64 -> 128, 3x3/2 on 7x7".
std::string name_of(const TunedConvolution& one) {
  std::string text = format(
      "{} -> {}, {}x{}",
      one.weight_sizes[1],
      one.weight_sizes[0],
      one.weight_sizes[2],
      one.weight_sizes[3]);
  if (const std::string stride = extent(one.stride); stride != "1") {
    text += "/" + stride;
  }
  text += format(" on {}x{}", one.input_sizes[2], one.input_sizes[3]);
  if (const std::string dilation = extent(one.dilation); dilation != "1") {
    text += ", dilation " + dilation;
  }
  if (!keeps_size(one)) {
    text += ", padding " + extent(one.padding);
  }
  return text;
}

TableRow row_of(const TunedConvolution& one, std::size_t pass) {
  const AlgorithmTimes& times = one.times[pass];
  TableRow row{
      pass == 0 ? name_of(one) : "",
      pass == 0 ? format("{}", one.count) : "",
      std::string(kPassNames[pass])};
  for (const std::string_view algorithm : kAlgorithms) {
    const auto time =
        std::ranges::find(times, algorithm, &AlgorithmTime::algorithm);
    row.push_back(
        time == times.end()
            ? ""
            : (time->is_chosen ? "* " : "") + milliseconds_text(time->seconds));
  }
  const double loss = chosen_seconds(times) / best_seconds(times);
  row.push_back(loss > kTolerated ? format("{:.2f}x", loss) : "");
  return row;
}

Json to_json(const TunedConvolution& one) {
  Json passes = Json::object();
  for (std::size_t pass = 0; pass < one.times.size(); ++pass) {
    if (one.times[pass].empty()) {
      continue;
    }
    Json algorithms = Json::array();
    for (const auto& [algorithm, seconds, is_chosen] : one.times[pass]) {
      Json object = Json::object();
      object.set("algorithm", std::string(algorithm))
          .set("seconds", seconds)
          .set("chosen", is_chosen);
      algorithms.push(std::move(object));
    }
    passes.set(kPassNames[pass], std::move(algorithms));
  }
  Json object = Json::object();
  object.set("input", Json::array(one.input_sizes))
      .set("weight", Json::array(one.weight_sizes))
      .set("stride", Json::array(one.stride))
      .set("padding", Json::array(one.padding))
      .set("dilation", Json::array(one.dilation))
      .set("count", one.count)
      .set("passes", std::move(passes));
  return object;
}

} // namespace

std::string tune_text(const BenchRequest& request, const TuneResult& result) {
  std::vector<TableRow> rows{{"convolution", "layers", "pass"}};
  TableRow& heads = rows.front();
  heads.insert(heads.end(), kAlgorithms.begin(), kAlgorithms.end());
  heads.emplace_back("loss");
  for (const TunedConvolution& one : result.convolutions) {
    for (std::size_t pass = 0; pass < one.times.size(); ++pass) {
      if (!one.times[pass].empty()) {
        rows.push_back(row_of(one, pass));
      }
    }
  }
  if (rows.size() == 1) {
    return bench_title(request) + "no convolution can be computed otherwise\n";
  }
  std::string text =
      bench_title(request) + text_table(rows) +
      format(
          "\n*: the algorithm that is chosen ({}); loss: how many times as "
          "long as "
          "the best it takes, above {:.1f}\n"
          "convolutions of a step: {} as chosen, {} in the best ones, {} with "
          "--kernels exact\n",
          result.has_channels_last ? "channels last" : "packed maps",
          kTolerated,
          milliseconds_text(sum_of(result, &chosen_seconds)),
          milliseconds_text(sum_of(result, &best_seconds)),
          milliseconds_text(sum_of(result, &exact_seconds)));
  if (result.others > 0) {
    text += format(
        "{} with groups, other dimensions or types: LibTorch's alone\n",
        counted(static_cast<std::uint64_t>(result.others), "convolution"));
  }
  return text;
}

Json tune_json(const BenchRequest& request, const TuneResult& result) {
  Json convolutions = Json::array();
  for (const TunedConvolution& one : result.convolutions) {
    convolutions.push(to_json(one));
  }
  Json object = bench_facts(request);
  object.set("channels_last", result.has_channels_last)
      .set("chosen_seconds", sum_of(result, &chosen_seconds))
      .set("best_seconds", sum_of(result, &best_seconds))
      .set("exact_seconds", sum_of(result, &exact_seconds))
      .set("convolutions", std::move(convolutions))
      .set("other_convolutions", result.others);
  return answer_json("lockstep.tune/1", std::move(object));
}

} // namespace lockstep::cli_train
