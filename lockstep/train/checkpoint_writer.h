// SPDX-License-Identifier: BSD-3-Clause
//
// Writes the checkpoints of a run in a thread of its own, while training goes
// on.
//   CheckpointWriter writer(folder, {.keep = 2});
//   writer.write(state.save(), {.step = 938, .epoch = 1, .is_best = true});
//   for (const CheckpointOutcome& outcome : writer.finished()) { ... }
//   writer.finish();
//
// Note [Order of writing]
// A kill or a power cut between any two of these steps leaves a folder from
// which the run goes on with the same bits:
//   1. The rows that the checkpoint counts are made durable. Rows after them
//      are cut off when the run goes on.
//   2. The checkpoint goes to a temporary file, fsync, rename, fsync of the
//      folder: it is whole or not there.
//   3. `model_best.pth.tar` is led to it if it is the best. Cut off here, the
//      run goes on from the checkpoint before, comes here again and finds the
//      same bits: no accuracy is claimed that no file holds.
//   4. `checkpoint.pth.tar` is led to it.
//   5. Only now files that nobody needs are removed.
//
// Note [A best checkpoint that failed]
// All checkpoints after it claim its accuracy, and no other can hold it. So its
// copy is kept, and the next `write` tries it again first. As long as that
// fails, nothing after it is written, and each of them has that error as its
// outcome; a better one takes its place.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "lockstep/base/fs.h"
#include "lockstep/ckpt/value.h"
#include "lockstep/train/observer.h"
#include "lockstep/train/snapshot_buffer.h"

namespace lockstep::train {

struct CheckpointWriterOptions {
  /// How many of the newest checkpoints stay, beside the best one; at least 1.
  std::int64_t keep = 2;
  /// Called in the writer's thread before each checkpoint is written: makes
  /// durable what the checkpoint counts. An error stops the checkpoint.
  std::function<Status()> before = [] { return Status(); };
  /// Off: `write` returns when the checkpoint is on the disk.
  bool in_background = true;
};

/// What became of one `write`.
struct CheckpointOutcome {
  CheckpointRecord record = {};
  /// An error leaves the checkpoint before as it was.
  Status status = {};
  /// Whether older files that nobody needs could be removed.
  Status pruned = {};
};

/// Threads: one at a time calls the functions.
class CheckpointWriter {
 public:
  /// Makes `folder` if it is missing. Ownership: `fs` must outlive the writer.
  /// Errors: throws kInvalidArgument if `keep` < 1, kIo for the folder.
  CheckpointWriter(
      FileSystem& fs,
      std::string folder,
      CheckpointWriterOptions options = {});
  /// On the disk of this machine.
  explicit CheckpointWriter(
      std::string folder,
      CheckpointWriterOptions options = {})
      : CheckpointWriter(real_fs(), std::move(folder), std::move(options)) {}
  /// Waits for the checkpoint in flight.
  ~CheckpointWriter();
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  /// Copies `live` and returns; the file follows. Waits first until the
  /// checkpoint before is written: there is one copy, never two. `record.path`
  /// is set here. It has one outcome; an earlier best checkpoint that failed is
  /// tried again first and has another. See Note [A best checkpoint that
  /// failed].
  void write(const ckpt::Value& live, CheckpointRecord record);

  /// Outcomes since the last call, in order. Does not wait.
  std::vector<CheckpointOutcome> finished();
  /// Waits for the checkpoint in flight, then the same.
  std::vector<CheckpointOutcome> wait();
  /// For the end of a loop that asks for no outcomes. Errors: throws what kept
  /// the newest checkpoint from getting to the disk.
  void finish();

 private:
  struct Job {
    ckpt::Value root = {};
    CheckpointRecord record = {};
  };

  void run(const std::stop_token& stop);
  void start(std::unique_lock<std::mutex>& lock, std::unique_ptr<Job> job);
  void do_job(std::unique_lock<std::mutex>& lock);
  CheckpointOutcome write_now(const Job& job);
  Status publish(const Job& job);

  FileSystem& fs_;
  std::string folder_;
  CheckpointWriterOptions options_;
  SnapshotBuffer buffer_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  /// Guarded by `mutex_`. A job stays until it is done.
  std::unique_ptr<Job> job_;
  /// The best checkpoint, if it failed. Its copy is the buffer's.
  std::unique_ptr<Job> owed_;
  std::vector<CheckpointOutcome> finished_;
  /// Last: it uses all of the above.
  std::jthread thread_;
};

} // namespace lockstep::train
