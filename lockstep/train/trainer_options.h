// SPDX-License-Identifier: BSD-3-Clause
//
// What a program gives to a trainer besides the settings.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "lockstep/base/fs.h"
#include "lockstep/base/log_sink.h"
#include "lockstep/dist/process_group.h"
#include "lockstep/train/observer.h"
#include "lockstep/train/own_parts.h"
#include "lockstep/train/resume.h"
#include "lockstep/train/settings/sources.h"
#include "lockstep/train/state_part.h"

namespace lockstep::train {

/// What a trainer needs from the program around it. Ownership: pointers are
/// borrowed.
struct TrainerOptions {
  FileSystem* fs = &real_fs();
  /// The ranks that train one model together: each its share of every batch, on
  /// one of the devices that are named, as its `place` says; rank 0 writes. Not
  /// given: those of the job (`job_group`, which waits for all ranks that a
  /// launcher has started). `{}`: this process trains a run of its own, and
  /// needs a folder of its own.
  dist::ProcessGroup group = dist::job_group();
  /// Receives messages, on the rank that writes; none: silence.
  LogSink* log = nullptr;
  /// Told every step and epoch, on every rank, and every checkpoint, on the
  /// rank that writes it: after the run folder's own files.
  Observers observers = {};
  /// Asked after every step; true saves a checkpoint and ends the run. An
  /// accelerator has begun the next step by then, and ends it first.
  std::function<bool()> should_stop = [] { return false; };
  /// What the run consists of.
  OwnParts own = {};
  /// State of the program's own that checkpoints shall hold.
  std::vector<StatePart> parts = {};
  /// What `find_resumption` found for the settings, if it was asked already.
  std::optional<Resumption> resumption = {};
  /// Where settings come from, for what is said of those that differ from a
  /// checkpoint's.
  SettingSources sources = {};
};

} // namespace lockstep::train
