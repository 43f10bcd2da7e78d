// SPDX-License-Identifier: BSD-3-Clause
//
// Writes the checkpoints of a run in a thread of its own, while training goes
// on.
//   CheckpointWriter writer(folder, {.keep = 2});
//   writer.write(state.save(), {.step = 938, .epoch = 1, .is_best = true});
//   for (const CheckpointOutcome& outcome : writer.finished()) { ... }
//   writer.finish();
//
// Where a run goes on: finds the checkpoint, checks every byte of it, and takes
// the one before if it is damaged.
//   if (auto found = find_checkpoint(folder)) {
//     state.load(found->root);
//   }
// `--resume`, with settings:
//   if (auto resumption = find_resumption(real_fs(), config)) {
//     state.load(resumption->checkpoint.root);
//   }
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
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "lockstep/base/fs.h"
#include "lockstep/ckpt/value.h"
#include "lockstep/train/observer.h"
#include "lockstep/train/settings/config.h"

#pragma GCC visibility push(default)
namespace lockstep::train {

/// Memory for a copy of a run's state, kept from one checkpoint to the next, so
/// that training waits for a memory copy and for nothing else.
///   ckpt::Value owned = buffer.copy(state.save());
/// Threads: one at a time.
class SnapshotBuffer {
 public:
  /// A tree like `live` whose tensors lie in this buffer; those that share a
  /// storage keep sharing it. What is no tensor is shared with `live`.
  /// Ownership: the copy keeps its bytes, but the next `copy` overwrites them:
  /// be done with the one before.
  ckpt::Value copy(const ckpt::Value& live);

 private:
  /// Shape: [bytes] uint8 each, in the order in which storages come.
  std::vector<at::Tensor> blocks_;
};

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
  /// failed]. The file is numbered by `record.step`, or by `record.epoch` where
  /// no step is given; of one number there is one file, the last.
  /// Errors: throws kInvalidArgument for one without a number that would
  /// replace the best of the folder.
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
  std::unique_ptr<Job> pending_;
  /// Of the last one that was the best.
  std::string best_path_ = {};
  std::vector<CheckpointOutcome> finished_;
  /// Last: it uses all of the above.
  std::jthread thread_;
};

/// A checkpoint in Lockstep's form, whatever dictionary the training script
/// kept: {epoch (the next one), state_dict, best_acc1, optimizer, ...}.
struct RunCheckpoint {
  ckpt::Value root = {};
  /// Whose form the file has: "Lockstep", "torchvision", "timm", ...
  std::string layout = {};
  /// Whether Lockstep wrote it.
  bool is_ours = false;
  /// For the log: what was understood of a form that is not ours.
  std::vector<std::string> notes = {};
  /// As `args`, of what the file lets guess only: a setting that is given
  /// counts more.
  ckpt::Value guessed_args = ckpt::Value::dict({});
};

/// Takes what Lockstep, PyTorch's examples and tutorials (`{epoch,
/// model_state_dict, optimizer_state_dict, loss}`), torchvision's and timm's
/// scripts write, `{epoch, model, optimizer, scheduler}` and
/// `{epoch, best_mIoU, state_dict, optimizer}`. The entries themselves stay as
/// they are; the model's name and what the optimizer and the schedule say of
/// their settings become `args`. A best value of another metric than accuracy
/// is left, with a note; a note names what else is not used. `path` is for
/// messages. Errors: throws kMismatch (E_NOT_A_RUN) that names the missing keys
/// and says what to do.
RunCheckpoint to_run_checkpoint(
    const ckpt::Value& root,
    const std::string& path);

/// Where a run goes on.
struct ResumePoint {
  /// The run's folder; empty if the file lies outside of one.
  std::string folder = {};
  /// The checkpoint; empty if the run was killed before its first one: then it
  /// begins again in `folder`.
  std::string path = {};
  /// Whether the run goes on in `folder`. Not from an older checkpoint, nor
  /// from a file outside or of another program: theirs stay, a new folder is
  /// made.
  bool is_in_place = true;
  /// Whether `model_best.pth.tar` leads to it.
  bool is_best = false;
  /// The newest checkpoint of `folder`, usable or not; empty if there is none.
  std::string newest = {};
  /// Whether the checkpoint was taken right after the first epoch: then that is
  /// the best one so far.
  bool ends_first_epoch = false;
  /// What was passed over, and why.
  std::vector<std::string> warnings = {};
  /// What was understood of a form that is not ours.
  std::vector<std::string> notes = {};
};

/// What was found there. Opened once; tensors alias the mapped file.
struct Resumption : ResumePoint {
  RunCheckpoint checkpoint = {};
};

/// The newest checkpoint in `folder`, whole or not; empty if there is none.
/// Errors: kIo.
Result<std::string> newest_checkpoint(
    FileSystem& fs,
    const std::string& folder);

/// `config.resume` names a checkpoint, a run folder, or is "auto" (the folder
/// `--output` or `runs/<--name>`, else the newest below `runs/`) or "best" (the
/// best checkpoint of that). Nothing if it is empty, or "auto" and there is no
/// run. Errors: throws kNotFound for a path without, kCorrupt if no checkpoint
/// is whole, kMismatch for a file of another kind.
std::optional<Resumption> find_resumption(
    FileSystem& fs,
    const TrainConfig& config);

/// A file of which every byte was checked.
struct FoundCheckpoint {
  std::string path = {};
  /// As it was saved, its tensors on the CPU. They alias the mapped file.
  ckpt::Value root = {};
  /// What was passed over, and why.
  std::vector<std::string> warnings = {};
};

/// The file of that name, once every byte of it was checked.
/// Errors: throws kNotFound, kCorrupt, or what else keeps it from being read.
FoundCheckpoint read_checkpoint(
    const std::string& path,
    FileSystem& fs = real_fs());

/// The newest whole checkpoint that a `CheckpointWriter` left in `folder`.
/// Nothing if there is none, or no folder.
/// Errors: throws kCorrupt, or what else it was, if none can be used.
std::optional<FoundCheckpoint> find_checkpoint(
    const std::string& folder,
    FileSystem& fs = real_fs());

} // namespace lockstep::train
#pragma GCC visibility pop
