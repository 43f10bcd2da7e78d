// SPDX-License-Identifier: BSD-3-Clause
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <utility>

#include "lockstep/base/internal/atomic_file.h"
#include "lockstep/base/strings.h"
#include "lockstep/ckpt/load.h"
#include "lockstep/tensor/internal/trace_spans.h"
#include "lockstep/train/checkpoints.h"
#include "lockstep/train/checkpoints/checkpoint_files.h"

namespace lockstep::train {
namespace {

/// Training comes first: the writer takes what it leaves of the processors (on
/// Linux the number is the calling thread's own), and signals are for others:
/// on some network disks they would cut an fsync short. A third of its share is
/// left: with less it would starve beside other programs, and the end of a run
/// waits for it.
void step_aside() {
  constexpr int kNice = 5;
  ::setpriority(PRIO_PROCESS, 0, kNice);
  sigset_t requests;
  ::sigemptyset(&requests);
  ::sigaddset(&requests, SIGINT);
  ::sigaddset(&requests, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &requests, nullptr);
}

/// Temporary files with this process's number are another's that had the same:
/// in a container it is always 1.
bool is_another_process(std::int64_t pid) {
  return pid != ::getpid() && is_process_alive(pid);
}

/// What `work` throws, as a value: out of memory, too.
template <class Work>
Status failure_of(const Work& work) {
  try {
    work();
    return {};
  } catch (const Exception& error) {
    return error.error();
  } catch (const std::exception& error) {
    return Error{
        .code = ErrorCode::kIo,
        .op = "train.checkpoint",
        .message = error.what()};
  }
}

/// For a checkpoint that waited for `best`, which has failed again.
Error blocked_by(const CheckpointOutcome& best) {
  Error error = best.status.error();
  error.message = format(
      "not written: {}, the best, must be written first, and failed again: {}",
      base_name(best.record.path),
      error.message);
  return error;
}

[[noreturn]] void refuse_replacing(const CheckpointRecord& record) {
  raise(
      {.code = ErrorCode::kInvalidArgument,
       .op = "train.checkpoint",
       .message = format(
           "this checkpoint has no number, and would replace the best one, {}, "
           "which had none either",
           checkpoint_name(0)),
       .hint = "write(state, {.epoch = ..., .step = ...}) with numbers that "
               "grow",
       .path = record.path});
}

} // namespace

CheckpointWriter::CheckpointWriter(
    FileSystem& fs,
    std::string folder,
    CheckpointWriterOptions options)
    : fs_(fs), folder_(std::move(folder)), options_(std::move(options)) {
  if (options_.keep < 1) {
    raise(
        {.code = ErrorCode::kInvalidArgument,
         .op = "train.checkpoint",
         .message =
             format("keep: expected at least 1, got {}", options_.keep)});
  }
  fs_.create_directories(folder_).value();
  // What a killed process left. Whatever cannot be removed is in nobody's way.
  (void)remove_stale_temporaries(fs_, folder_, is_another_process);
  (void)prune_checkpoints(fs_, folder_, options_.keep);
  // That of an earlier process; where there is no such link, its own path.
  if (const auto best = fs_.resolve(format("{}/{}", folder_, kBestFile))) {
    best_path_ = format("{}/{}", folder_, base_name(*best));
  }
  if (options_.in_background) {
    thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
  }
}

// The thread ends after the job that it has.
CheckpointWriter::~CheckpointWriter() = default;

void CheckpointWriter::write(const ckpt::Value& live, CheckpointRecord record) {
  const std::int64_t number = record.step > 0 ? record.step : record.epoch;
  record.path = format("{}/{}", folder_, checkpoint_name(number));
  if (record.is_best) {
    best_path_ = record.path;
  } else if (number == 0 && record.path == best_path_) {
    refuse_replacing(record);
  }
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !job_; });
  if (!record.is_best && pending_) {
    // See Note [A best checkpoint that failed].
    start(lock, std::exchange(pending_, {}));
    changed_.wait(lock, [this] { return !job_; });
    if (pending_) {
      Error error = blocked_by(finished_.back());
      finished_.push_back(
          {.record = std::move(record), .status = std::move(error)});
      return;
    }
  }
  pending_.reset();
  // The thread sleeps until there is a job: the buffer is ours.
  lock.unlock();
  auto job = std::make_unique<Job>(Job{.record = std::move(record)});
  Status copied = failure_of([&] {
    const TraceSpan span("copy of the checkpoint");
    job->root = buffer_.copy(live);
  });
  lock.lock();
  if (!copied) {
    finished_.push_back(
        {.record = std::move(job->record), .status = std::move(copied)});
    return;
  }
  start(lock, std::move(job));
}

void CheckpointWriter::start(
    std::unique_lock<std::mutex>& lock,
    std::unique_ptr<Job> job) {
  job_ = std::move(job);
  if (options_.in_background) {
    changed_.notify_all();
  } else {
    do_job(lock);
  }
}

void CheckpointWriter::do_job(std::unique_lock<std::mutex>& lock) {
  lock.unlock();
  CheckpointOutcome outcome = write_now(*job_);
  lock.lock();
  if (!outcome.status && outcome.record.is_best) {
    pending_ = std::move(job_);
  }
  finished_.push_back(std::move(outcome));
  job_.reset();
  changed_.notify_all();
}

std::vector<CheckpointOutcome> CheckpointWriter::finished() {
  const std::lock_guard lock(mutex_);
  return std::exchange(finished_, {});
}

std::vector<CheckpointOutcome> CheckpointWriter::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !job_; });
  return std::exchange(finished_, {});
}

void CheckpointWriter::finish() {
  if (const auto outcomes = wait(); !outcomes.empty()) {
    outcomes.back().status.value();
  }
}

void CheckpointWriter::run(const std::stop_token& stop) {
  step_aside();
  std::unique_lock lock(mutex_);
  while (changed_.wait(lock, stop, [this] { return job_ != nullptr; })) {
    do_job(lock);
  }
}

CheckpointOutcome CheckpointWriter::write_now(const Job& job) {
  const TraceSpan span("write the checkpoint", "checkpoint writer");
  CheckpointOutcome outcome{.record = job.record};
  outcome.status = failure_of([&] { publish(job).value(); });
  if (outcome.status) {
    outcome.pruned = failure_of(
        [&] { prune_checkpoints(fs_, folder_, options_.keep).value(); });
  }
  return outcome;
}

// See Note [Order of writing].
Status CheckpointWriter::publish(const Job& job) {
  const auto lead_here = [&](std::string_view link) {
    return replace_link(
        fs_,
        base_name(job.record.path),
        format("{}/{}", folder_, link));
  };
  LOCKSTEP_TRY(options_.before());
  LOCKSTEP_TRY(ckpt::save(job.record.path, job.root, {}, fs_));
  if (job.record.is_best) {
    LOCKSTEP_TRY(lead_here(kBestFile));
  }
  return lead_here(kLatestFile);
}

} // namespace lockstep::train
