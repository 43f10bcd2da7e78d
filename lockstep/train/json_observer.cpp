// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/json_observer.h"

#include "lockstep/base/json.h"
#include "lockstep/base/strings.h"
#include "lockstep/train/run_folder.h"

namespace lockstep::train {

JsonObserver::JsonObserver(
    RunFiles& files,
    const std::string& folder,
    std::int64_t log_interval)
    : log_interval_(log_interval),
      file_(files.open(format("{}/{}", folder, kMetricsFile))) {}

namespace {

Json number_or_null(const std::optional<double>& number) {
  return number ? Json(*number) : Json();
}

} // namespace

void JsonObserver::on_step(const StepRecord& record) {
  if (!record.is_logged(log_interval_)) {
    return;
  }
  Json line = Json::object();
  line.set("event", "step")
      .set("step", record.step)
      .set("epoch", record.epoch)
      .set("batch", record.batch)
      .set("batches", record.batches)
      .set("samples", record.samples)
      .set("loss", record.loss)
      .set("top1", number_or_null(record.top1))
      .set("top5", number_or_null(record.top5))
      .set("lr", record.lr)
      .set("seconds", record.seconds)
      .set("data_seconds", record.data_seconds);
  file_.append(line.dump());
}

void JsonObserver::on_epoch(const EpochRecord& record) {
  const Score test = record.test.value_or(Score());
  Json line = Json::object();
  line.set("event", "epoch")
      .set("epoch", record.epoch)
      .set("step", record.step)
      .set("samples", record.samples)
      .set("train_loss", record.train.loss)
      .set("train_top1", number_or_null(record.train.top1))
      .set("train_top5", number_or_null(record.train.top5))
      .set("val_loss", record.test ? Json(test.loss) : Json())
      .set("val_top1", number_or_null(test.top1))
      .set("val_top5", number_or_null(test.top5))
      .set("best", record.is_best)
      .set("best_by", best_column(record.best_by))
      .set("lr", record.lr)
      .set("images_per_s", record.images_per_second)
      .set("epoch_s", record.times.wall)
      .set("user_s", record.times.user)
      .set("system_s", record.times.system);
  file_.append(line.dump());
}

} // namespace lockstep::train
