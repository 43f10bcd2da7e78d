// SPDX-License-Identifier: BSD-3-Clause
//
// `--auto-batch`: a step that does not fit into memory is made again in parts,
// whose gradients add up to the same. Ranks decide it together, and average
// their gradients when all of them have theirs.
#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "lockstep/data/dataset.h"
#include "lockstep/train/loop/setup.h"
#include "lockstep/train/state_part.h"

namespace lockstep::train {

/// In how many parts batches go; the number grows and never shrinks. Ownership:
/// borrows the setup. Threads: those of the trainer, one at a time.
class MicroBatches {
 public:
  /// Off: every batch is one part, and nothing is repeated.
  MicroBatches(Setup& setup, bool is_on) : setup_(setup), is_on_(is_on) {}

  [[nodiscard]] bool is_on() const {
    return is_on_;
  }
  /// Before the first batch of a step: remembers the buffers and the random
  /// numbers, from which a repeated step begins, too.
  void begin_step();
  /// After the batches of a step, before anything is exchanged: true if it
  /// shall be made again, in more parts. Everything is as before the step then,
  /// without gradients. `error`: what ended it on this rank, null if nothing;
  /// `most_parts`: in how many it can go. Every rank calls it.
  /// Errors: throws `error` if smaller parts are no remedy, on other ranks
  /// kUnavailable (E_OTHER_RANK).
  bool repeats(const std::exception_ptr& error, std::int64_t most_parts);
  /// `batch`, in as many parts as it goes. Views of its memory.
  [[nodiscard]] std::vector<Batch> parts_of(const Batch& batch) const;
  /// How much of the loss of `batch` that of `part` is.
  [[nodiscard]] double share(const Batch& part, const Batch& batch) const;

  [[nodiscard]] std::int64_t count() const {
    return count_;
  }
  /// `micro_batches` in checkpoints; none if it is off.
  std::vector<StatePart> state();

 private:
  void undo_step();
  void await_memory() const;

  Setup& setup_;
  bool is_on_ = false;
  std::int64_t count_ = 1;
  /// Of the step that runs.
  std::vector<at::Tensor> buffers_;
  ckpt::Value generators_;
  /// By device, before it. Units: bytes.
  std::vector<double> used_bytes_;
};

} // namespace lockstep::train
