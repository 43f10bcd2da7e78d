// SPDX-License-Identifier: BSD-3-Clause
//
// `results.svg`: the columns of `results.csv` as curves.
#pragma once

#include <string>
#include <vector>

#include "lockstep/train/observer.h"
#include "lockstep/train/run/run_files.h"

namespace lockstep::train {

/// Draws loss, metrics and learning rate anew after every epoch, with the
/// epochs of earlier starts.
class CurvesObserver final : public Observer {
 public:
  /// Reads and writes in `folder`; told of an epoch after `results.csv` is.
  /// Ownership: `files` must outlive the observer.
  CurvesObserver(RunFiles& files, std::string folder);

  void on_start(const StartRecord& record) override;
  void on_epoch(const EpochRecord& record) override;

 private:
  RunFiles& files_;
  std::string folder_;
  std::vector<MetricInfo> metrics_;
};

} // namespace lockstep::train
