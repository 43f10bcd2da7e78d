// SPDX-License-Identifier: BSD-3-Clause
#include "cli_train/bench_text.h"

#include <algorithm>

#include "lockstep/base/strings.h"

namespace lockstep::cli_train {

std::string bench_title(const BenchRequest& request) {
  const ModelRequest& model = request.model;
  return format(
      "{}, {} of {} x {} x {}, {}, {}\n\n",
      model.model,
      counted(static_cast<std::uint64_t>(model.batch_size), "image"),
      model.in_channels,
      model.img_size,
      model.img_size,
      request.amp == "off" ? "float32" : "amp " + request.amp,
      request.device.is_cpu()
          ? counted(static_cast<std::uint64_t>(request.threads), "thread")
          : request.device.str());
}

Json bench_facts(const BenchRequest& request) {
  Json object = Json::object();
  object.set("model", request.model.model)
      .set("batch_size", request.model.batch_size)
      .set("img_size", request.model.img_size)
      .set("in_channels", request.model.in_channels)
      .set("num_classes", request.model.num_classes)
      .set("amp", request.amp)
      .set("device", request.device.str())
      .set("threads", request.threads);
  return object;
}

std::string milliseconds_text(double seconds) {
  return format("{:.2f} ms", seconds * 1e3);
}

std::string text_table(const std::vector<TableRow>& rows) {
  std::vector<std::size_t> widths(rows.front().size());
  for (const TableRow& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], row[i].size());
    }
  }
  std::string text;
  for (const TableRow& row : rows) {
    std::string line = format("{:<{}}", row[0], widths[0]);
    for (std::size_t i = 1; i < row.size(); ++i) {
      line += format("  {:>{}}", row[i], widths[i]);
    }
    text += line + "\n";
  }
  return text;
}

} // namespace lockstep::cli_train
