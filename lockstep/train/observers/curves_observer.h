// SPDX-License-Identifier: BSD-3-Clause
//
// `results.svg`: what is in `metrics.jsonl` as curves.
#pragma once

#include <memory>
#include <string>

#include "lockstep/report/run_history.h"
#include "lockstep/train/checkpoints/run_files.h"
#include "lockstep/train/observer.h"

namespace lockstep::train {

/// Draws loss, metrics and learning rate anew after every epoch, with those of
/// earlier starts: over steps until there are epochs enough.
class CurvesObserver final : public Observer {
 public:
  /// Writes in `folder`; told of an epoch after what keeps `history` is.
  /// Ownership: `files` must outlive the observer.
  CurvesObserver(
      RunFiles& files,
      std::string folder,
      std::shared_ptr<const report::RunHistory> history);

  void on_epoch(const EpochRecord& record) override;

 private:
  RunFiles& files_;
  std::string folder_;
  std::shared_ptr<const report::RunHistory> history_;
};

} // namespace lockstep::train
