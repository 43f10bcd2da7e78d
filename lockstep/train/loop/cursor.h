// SPDX-License-Identifier: BSD-3-Clause
//
// Where a run stands, counted in samples, so that the batch size and the
// number of ranks may change between two parts of a run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/train/state_part.h"
#include "lockstep/train/task.h"

namespace lockstep::train {

/// Nothing of it depends on time or on how often a run was interrupted.
struct Cursor {
  /// The epoch that is running: as many are done.
  std::int64_t epoch = 0;
  /// Steps and samples of this epoch, over all ranks.
  std::int64_t batch = 0;
  std::int64_t samples = 0;
  /// Steps and samples since the run began.
  std::int64_t step = 0;
  std::int64_t total_samples = 0;
  /// Sums of this epoch, of this rank. What a checkpoint brought is rank 0's.
  Scoring sums = {};
  /// The rate of the last step.
  double lr = 0.0;
  /// What chooses the best epoch; the program says it, not the checkpoint.
  BestBy best_by = {};
  /// The best number so far; none before the first epoch whose losses are
  /// finite.
  std::optional<double> best = {};

  /// Counts a batch of `ranks` ranks, of which this one had `size` samples, in
  /// an epoch of `epoch_samples`.
  void count_samples(
      std::int64_t size,
      std::int64_t ranks,
      std::int64_t epoch_samples);
  /// Counts a step, whose batches are counted. Its score is added to `sums`
  /// once it is known.
  void count_step() {
    ++batch;
    ++step;
  }
  /// Goes on to the next epoch.
  void finish_epoch();
  /// Whether an epoch is the best so far, which is kept. None whose losses are
  /// not finite is.
  bool take_best(const EpochRecord& record);
  /// "best Acc@1 87.31", "best val_loss 0.25", "no best epoch".
  [[nodiscard]] std::string best_text() const;

  friend bool operator==(const Cursor&, const Cursor&) = default;
};

/// `epoch` and `best_acc1`, as Python's scripts write them, and `step` and
/// `cursor`, which a checkpoint may lack: it was taken after an epoch then.
/// Where another number than val_top1 chooses the best epoch, `best_` and its
/// column (`best_val_miou`, `best_val_loss`: a number, or None) is there
/// instead of `best_acc1`; it begins fresh, with a warning, in a run that goes
/// on from a checkpoint of another best. Errors of loading: throws kMismatch
/// for what is no number. Ownership: borrow `cursor`, whose `best_by` is set.
std::vector<StatePart> cursor_parts(
    Cursor& cursor,
    const dist::ProcessGroup& group);

/// Whether the best epoch of a checkpoint of Lockstep was chosen by another
/// number.
bool has_other_best(const ckpt::Value& root, const BestBy& best_by);

} // namespace lockstep::train
