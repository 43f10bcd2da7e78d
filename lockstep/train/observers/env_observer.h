// SPDX-License-Identifier: BSD-3-Clause
//
// `env.json`: with what, on what and by which command a run was made.
//   {"lockstep": "0.1.0", "torch": "2.13.0", "cpu": {...}, "devices": ["cpu"],
//    "command": ["lockstep-train", "train", ...], "args": {...},
//    "sources": {...}, "data": {...},
//    "starts": [{"started": "2026-01-31T10:00:00Z", "step": 0, ...,
//                "end": {"how": "failed", "why": "loss nan", ...}}]}
#pragma once

#include <string>

#include "lockstep/train/checkpoints/run_files.h"
#include "lockstep/train/observer.h"
#include "lockstep/train/settings/config.h"

namespace lockstep::train {

/// Describes this start, and how it ended; those before stay in the list
/// `starts`. One without an end was killed, or runs.
class EnvObserver final : public Observer {
 public:
  /// Writes `env.json` in `folder`. Ownership: `files` must outlive the
  /// observer.
  EnvObserver(
      RunFiles& files,
      const std::string& folder,
      TrainConfig config,
      SettingSources sources = {});

  void on_start(const StartRecord& record) override;
  void on_end(const EndRecord& record) override;
  void on_failure(const Error& error) override;

 private:
  RunFiles& files_;
  std::string path_;
  TrainConfig config_;
  SettingSources sources_;
};

/// Why a run failed, in a few words for a table: "loss nan", "E_NO_SPACE".
std::string short_reason(const Error& error);

} // namespace lockstep::train
