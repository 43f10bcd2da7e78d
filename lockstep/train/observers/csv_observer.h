// SPDX-License-Identifier: BSD-3-Clause
//
// `results.csv` (a row per epoch) and `steps.csv` (a row per --log-interval).
// `images_per_s` is that of training; the three times are the whole epoch's.
// Losses and rates are the shortest decimals that restore the number, so equal
// runs give equal files up to the time columns.
#pragma once

#include <string>

#include "lockstep/train/checkpoints/run_files.h"
#include "lockstep/train/observer.h"
#include "lockstep/train/settings/internal/run_names.h"

namespace lockstep::train {

/// Appends to both files. Rows are written at once: a reader sees them live.
class CsvObserver final : public Observer {
 public:
  /// Opens both in `folder`; `results_header` as `record_row.h` makes it. A
  /// file with other columns keeps them, and gets those that it lacks.
  /// Ownership: `files` must outlive the observer.
  /// Errors: throws kIo.
  CsvObserver(
      RunFiles& files,
      const std::string& folder,
      const std::string& results_header,
      std::int64_t log_interval);

  void on_step(const StepRecord& record) override;
  void on_epoch(const EpochRecord& record) override;

 private:
  std::int64_t log_interval_;
  std::string header_;
  RunFile& results_;
  RunFile& steps_;
};

} // namespace lockstep::train
