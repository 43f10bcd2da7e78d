// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/loop/start_lines.h"

#include <algorithm>

#include <ATen/Parallel.h>

#include "lockstep/base/strings.h"
#include "lockstep/base/version.h"
#include "lockstep/device/device_list.h"
#include "lockstep/train/step/precision.h"

namespace lockstep::train {
namespace {

// " over 2 ranks", " over 2 devices".
std::string shared_text(const Setup& setup) {
  const std::size_t devices = setup.devices.size();
  return setup.group.size() > 1 ? format(" over {} ranks", setup.group.size())
         : devices > 1          ? format(" over {} devices", devices)
                                : std::string();
}

std::string model_line(const StartingRun& run) {
  const std::string precision =
      precision_text(run.config, run.setup.devices.front().is_cuda());
  return format(
      "model {} with {} parameters on {} ({}), {}, kernels {}{}; "
      "batch {}{}; lockstep {}",
      run.config.model,
      with_commas(static_cast<std::uint64_t>(
          count_parameters(run.setup.model.module()))),
      lockstep::to_string(run.setup.devices),
      run.setup.strategy->name(),
      counted(static_cast<std::uint64_t>(at::get_num_threads()), "thread"),
      run.config.kernels,
      precision == "off" ? "" : ", amp " + precision,
      run.config.batch_size,
      shared_text(run.setup),
      kVersion);
}

std::string resumed_line(const StartingRun& run, const ResumePoint& from) {
  if (from.path.empty()) {
    return format(
        "{} has no checkpoint yet: the run begins again",
        from.folder);
  }
  return format(
      "resumed {} at epoch {}, step {}, sample {} of {}",
      from.path,
      run.cursor.epoch + 1,
      run.cursor.step,
      run.cursor.samples,
      run.setup.train_samples);
}

std::string finished_line(const StartingRun& run, const ResumePoint& from) {
  const std::int64_t done = run.cursor.epoch;
  const auto left = run.setup.schedule->epochs_left(
      run.setup.steps_of(run.setup.train_samples));
  const bool can_go_on = left.value_or(1) >= 1;
  return format(
      "finished: {} of {} epochs{}",
      done,
      std::max(done, run.config.epochs),
      can_go_on ? format(". Hint: --epochs {} goes on", done + 1)
                : format(
                      ", and so is the one-cycle schedule. Hint: "
                      "--initial-checkpoint {} begins a new run",
                      from.path));
}

} // namespace

std::vector<StartLine> start_lines(
    const StartingRun& run,
    const std::string& folder) {
  std::vector<StartLine> lines{
      {.text = model_line(run)},
      {.text = format(
           "data {}: {} training and {} test samples; run folder {}",
           run.config.data,
           run.setup.train_samples,
           run.setup.test_samples,
           folder)}};
  for (const std::string& note : run.own.data_notes) {
    lines.push_back({.text = "data: " + note});
  }
  for (const std::string& warning : run.own.data_warnings) {
    lines.push_back({.level = LogLevel::kWarning, .text = "data: " + warning});
  }
  lines.insert(lines.end(), run.setup.lines.begin(), run.setup.lines.end());
  for (const auto& hook : run.setup.hooks) {
    lines.push_back({.text = hook->text()});
  }
  if (const BestBy& by = run.cursor.best_by; !is_accuracy(by)) {
    lines.push_back(
        {.text = format(
             "the best epoch is that of the {} {}",
             by.better == Better::kHigher ? "highest" : "lowest",
             by.column)});
  }
  if (!run.from) {
    if (!run.config.resume.empty()) {
      lines.push_back({.text = "nothing to resume: a new run begins"});
    }
    return lines;
  }
  for (const std::string& warning : run.from->warnings) {
    lines.push_back({.level = LogLevel::kWarning, .text = warning});
  }
  for (const std::string& note : run.from->notes) {
    lines.push_back({.text = note});
  }
  lines.push_back({.text = resumed_line(run, *run.from)});
  if (run.cursor.epoch >= run.config.epochs) {
    lines.push_back({.text = finished_line(run, *run.from)});
  }
  return lines;
}

StartRecord start_record(const StartingRun& run, const std::string& folder) {
  StartRecord record{
      .folder = folder,
      .rank = run.setup.group.rank(),
      .ranks = run.setup.group.size(),
      .best_by = run.cursor.best_by,
      .train_metrics = infos_of(run.setup.strategy->task().train_metrics()),
      .test_metrics = infos_of(run.setup.strategy->task().metrics),
      .epoch = run.cursor.epoch + 1,
      .epochs = run.config.epochs,
      .step = run.cursor.step,
      .samples = run.cursor.samples,
      .train = run.cursor.sums.score(
          run.setup.strategy->task().train_metrics(),
          /*seconds=*/0),
      .data = {
          .train_samples = run.setup.train_samples,
          .test_samples = run.setup.test_samples,
          .sample_shape = run.setup.train_set->sample_shape(),
          .num_classes = run.setup.train_set->num_classes(),
          .train_digest = run.identity.facts().train_digest,
          .test_digest = run.identity.facts().test_digest}};
  for (const c10::Device& device : run.setup.devices) {
    record.devices.push_back(device.str());
  }
  return record;
}

} // namespace lockstep::train
