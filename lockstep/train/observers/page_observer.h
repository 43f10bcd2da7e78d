// SPDX-License-Identifier: BSD-3-Clause
//
// `report.html`: the run on one page, and `report.json`, what it shows that no
// other file of the run holds: classes and samples of the newest test.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "lockstep/report/run_history.h"
#include "lockstep/train/checkpoints/run_files.h"
#include "lockstep/train/observer.h"

namespace lockstep::train {

/// Writes both anew when the run starts, after each epoch and at the end. That
/// cannot be written is a warning: no run depends on them.
class PageObserver final : public Observer {
 public:
  /// Told after the observers that write `env.json` and keep `history`.
  /// Ownership: `files` must outlive the observer.
  PageObserver(
      RunFiles& files,
      std::string folder,
      std::shared_ptr<const report::RunHistory> history);

  void on_start(const StartRecord& record) override;
  void on_epoch(const EpochRecord& record) override;
  void on_end(const EndRecord& record) override;
  void on_failure(const Error& error) override;

 private:
  void write(std::string_view state, std::string_view why);

  RunFiles& files_;
  std::string folder_;
  std::shared_ptr<const report::RunHistory> history_;
  /// Text of `report.json`.
  std::string details_;
};

} // namespace lockstep::train
