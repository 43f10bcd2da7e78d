// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/observers/page_observer.h"

#include <cmath>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/internal/utc.h"
#include "lockstep/base/json.h"
#include "lockstep/base/strings.h"
#include "lockstep/report/html_text.h"
#include "lockstep/report/run_page.h"
#include "lockstep/train/checkpoints/run_folder.h"
#include "lockstep/train/observers/env_observer.h"

namespace lockstep::train {
namespace {

Json number_json(double value) {
  return std::isfinite(value) ? Json(value) : Json();
}

Json table_json(const MetricTable& table) {
  Json rows = Json::array();
  for (const MetricRow& row : table.rows) {
    Json values = Json::array();
    for (const double value : row.values) {
      values.push(number_json(value));
    }
    rows.push(
        Json::object().set("name", row.name).set("values", std::move(values)));
  }
  return Json::object()
      .set("name", table.name)
      .set("columns", Json::array(table.columns))
      .set("rows", std::move(rows));
}

Json sample_json(const SampleRecord& sample) {
  Json json = Json::object();
  json.set("name", sample.name)
      .set("target", sample.target)
      .set("output", sample.output)
      .set("right", sample.is_right ? Json(*sample.is_right) : Json());
  if (!sample.png.empty()) {
    json.set("picture", report::data_uri("image/png", sample.png));
  }
  return json;
}

std::string details_text(const EpochRecord& record) {
  Json tables = Json::array();
  for (const MetricTable& table : record.test.value_or(Score()).tables) {
    tables.push(table_json(table));
  }
  bool has_masks = false;
  Json samples = Json::array();
  for (const SampleRecord& sample : record.shown) {
    has_masks = has_masks || (sample.output.empty() && !sample.png.empty());
    samples.push(sample_json(sample));
  }
  Json json = Json::object();
  json.set("schema", "lockstep.report/1")
      .set("epoch", record.epoch)
      .set("tables", std::move(tables))
      .set("samples", std::move(samples));
  if (has_masks) {
    json.set("samples_wide", true)
        .set(
            "samples_note",
            "from left to right the image, its mask and the prediction");
  }
  return json.dump();
}

} // namespace

PageObserver::PageObserver(
    RunFiles& files,
    std::string folder,
    std::shared_ptr<const report::RunHistory> history)
    : files_(files), folder_(std::move(folder)), history_(std::move(history)) {}

void PageObserver::on_start(const StartRecord& /*record*/) {
  // Of an earlier start; without an epoch there is nothing that it could tell.
  if (history_->epochs().rows() > 0) {
    details_ = files_.read(format("{}/{}", folder_, kDetailsFile));
  }
  write("running", "");
}

void PageObserver::on_epoch(const EpochRecord& record) {
  details_ = details_text(record);
  files_.replace(format("{}/{}", folder_, kDetailsFile), details_ + "\n");
  write("running", "");
}

void PageObserver::on_end(const EndRecord& record) {
  write(record.was_stopped ? "interrupted" : "finished", record.why);
}

void PageObserver::on_failure(const Error& error) {
  write("failed", to_string(error));
}

void PageObserver::write(std::string_view state, std::string_view why) {
  /// Units: bytes; its end has the newest warnings.
  constexpr std::uint64_t kMostLog = std::uint64_t{1} << 20;
  files_.replace(
      format("{}/{}", folder_, kPageFile),
      report::run_page(
          {.folder = folder_,
           .state = std::string(state),
           .why = std::string(why),
           .written = utc_text(utc_now()),
           .env = files_.read(format("{}/{}", folder_, kEnvFile)),
           .details = details_,
           .log =
               files_.read_end(format("{}/{}", folder_, kLogFile), kMostLog)},
          *history_));
}

} // namespace lockstep::train
