// SPDX-License-Identifier: BSD-3-Clause
//
// The processes of a job and what they do together: torch.distributed for C++,
// on LibTorch's c10d. Started by torchrun, Slurm, Open MPI or by hand; a
// program that nothing started is a group of one.
//   dist::init_process_group();                       // env://
//   dist::all_reduce(total);                          // in place, on all ranks
//   if (dist::get_rank() == 0) { ... }
//   dist::destroy_process_group();
//
// Value trees between ranks: numbers, texts, lists, dicts, and tensors in them.
//   const auto all = dist::all_gather_object(
//       group, ckpt::Value::dict({{"host", name}, {"seen", 120}}));
// What holds no tensor travels as Python's pickle, so ranks of Python take part
// with `dist.all_gather_object`. Nothing in it is executed here.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "lockstep/base/rank_info.h"
#include "lockstep/ckpt/value.h"

#pragma GCC visibility push(default)
namespace lockstep::dist {

/// How the processes find each other.
struct InitOptions {
  /// "shm": memory that the ranks of one host share; "gloo": TCP, also among
  /// hosts and with Python's ranks. Both take tensors of the CPU and, by way of
  /// it, of CUDA devices; shm those of any device. "nccl": tensors of CUDA
  /// devices only, one device for each rank. "cpu:gloo,cuda:nccl" has a name
  /// for each device, as in PyTorch.
  /// "": NCCL for CUDA where there is a device; for the rest "shm" where it
  /// works for all ranks, else "gloo". With Python's ranks: "nccl" where there
  /// is a device, else "gloo".
  /// Errors: kUnavailable on every rank for "shm" where it cannot be, and for
  /// "nccl" in a build without it or without a device.
  std::string backend = {};
  /// `env://`: MASTER_ADDR and MASTER_PORT, and the rank from what the launcher
  /// has set (`rank_info_from_environment`). `tcp://HOST:PORT` and
  /// `file://PATH` want `rank` and `world_size`.
  std::string init_method = "env://";
  /// With `tcp://` and `file://`; -1: not given.
  int rank = -1;
  int world_size = -1;
  /// How long a rank waits for the others: at the start, and in a collective.
  std::chrono::milliseconds timeout = std::chrono::minutes(30);
  /// Some ranks are Python's. They take no part in the checks that compare the
  /// ranks, so a difference shows as c10d shows it: late, or as a hang.
  bool has_python_ranks = false;
};

/// How `all_reduce` joins the ranks' numbers.
enum class ReduceOp { kSum, kProduct, kMin, kMax };

/// Processes that act together. A handle: copies name the same group. Every
/// rank makes the same calls in the same order. A process that is alone is a
/// group, too, so nobody asks for the special case: rank 0 of 1, with
/// collectives that leave their arguments as they are.
/// Threads: one at a time.
/// Errors of the collectives: throw kTimeout if a rank does not answer in time,
/// kUnavailable if one is gone, both with the collective, its number and this
/// rank; the group is of no use then.
class ProcessGroup {
 public:
  /// This process alone.
  ProcessGroup() = default;

  /// False for a process that is alone, and for one that is outside of a group
  /// (`new_group`).
  [[nodiscard]] explicit operator bool() const {
    return impl_ != nullptr;
  }
  [[nodiscard]] int rank() const;
  /// Ranks, at least 1.
  [[nodiscard]] int size() const;
  /// The rank, and its place on its machine. The ranks of a group that is not
  /// the job's count as those of one machine.
  [[nodiscard]] RankInfo place() const;
  /// How the ranks talk to each other: "shm", "gloo", "nccl",
  /// "cpu:shm,cuda:nccl" or "cpu:gloo,cuda:nccl"; "" for a process that is
  /// alone.
  [[nodiscard]] std::string backend() const;

  /// Replaces `tensor` by the element-wise result over all ranks.
  /// Shape: the same on all ranks.
  void all_reduce(at::Tensor& tensor, ReduceOp op = ReduceOp::kSum) const;
  /// Replaces `tensor` by that of rank `src`.
  void broadcast(at::Tensor& tensor, int src = 0) const;
  /// The tensors of all ranks, by rank. Shape: the same on all ranks.
  [[nodiscard]] std::vector<at::Tensor> all_gather(
      const at::Tensor& tensor) const;
  /// This rank's part of the element-wise sum: `inputs` has one tensor for each
  /// rank.
  [[nodiscard]] at::Tensor reduce_scatter(
      const std::vector<at::Tensor>& inputs) const;
  /// The bytes of all ranks, by rank, of whatever sizes.
  [[nodiscard]] std::vector<std::vector<std::byte>> all_gather_bytes(
      std::span<const std::byte> bytes) const;
  /// The tensors of all ranks, by rank, on rank `dst`; nothing on the others.
  /// Shape: the same on all ranks.
  [[nodiscard]] std::vector<at::Tensor> gather(
      const at::Tensor& tensor,
      int dst = 0) const;
  /// Replaces `tensor` by this rank's of `inputs`, of which rank `src` gives
  /// one for each rank; the others give none.
  void scatter(
      at::Tensor& tensor,
      const std::vector<at::Tensor>& inputs,
      int src = 0) const;
  /// One rank to another: `recv` replaces its tensor by that of `send`, of the
  /// same shape and dtype; `tag`, at least 0, tells several apart. Both wait
  /// for the other.
  void send(const at::Tensor& tensor, int dst, int tag = 0) const;
  void recv(at::Tensor& tensor, int src, int tag = 0) const;
  /// Replaces each number by the sum over all ranks, added in the order of the
  /// ranks, so that it is the same on all of them and at each run. All give as
  /// many numbers.
  void sum(std::span<double> numbers) const;
  /// True on all ranks if any of them says true.
  [[nodiscard]] bool any(bool value) const;
  /// Returns when all ranks have called it.
  void barrier() const;
  /// `numel` numbers on the CPU, not set, that `all_reduce` adds up fastest:
  /// with shm they lie in memory that all ranks see, else they are `at::empty`.
  /// The buckets of DistributedDataParallel are such tensors. Each rank calls
  /// it as it likes. A child of `fork` sees them change, and can change them.
  [[nodiscard]] at::Tensor allocate_tensor(
      std::int64_t numel,
      at::ScalarType dtype = at::kFloat) const;
  /// A barrier that tells who does not come: rank 0 waits for the others one
  /// after the other, so it is slow, and for finding faults. `timeout`: 0 for
  /// the group's. With `wait_all_ranks` it names all that are late, else the
  /// first.
  /// Errors: throws kTimeout that names them on rank 0; the others name rank 0.
  void monitored_barrier(
      std::chrono::milliseconds timeout = {},
      bool wait_all_ranks = false) const;

  /// A group of some of this group's ranks; it counts them anew, in ascending
  /// order. Every rank of this group calls it, those outside too, as often and
  /// in the same order as the others. `timeout`: 0 for this group's. Ranks of
  /// Python meet in it with `dist.new_group(ranks)`.
  /// Returns no group to ranks that are not in it: false as a bool, and an
  /// error (E_SUB_GROUP) wherever it is used.
  /// Errors: throws kInvalidArgument for ranks that do not exist or come twice,
  /// in PyTorch's words.
  [[nodiscard]] ProcessGroup new_group(
      std::vector<int> ranks,
      std::chrono::milliseconds timeout = {}) const;

  /// What the other folders' implementations work with; c10d's types are in
  /// internal/group_impl.h. Ownership: lives as long as a handle.
  struct Impl;
  explicit ProcessGroup(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  [[nodiscard]] Impl& impl() const;

 private:
  [[nodiscard]] bool is_alone() const {
    return impl_ == nullptr && !is_outside_;
  }
  /// What `new_group` gives to ranks that are not in the group.
  static ProcessGroup outside();
  friend ProcessGroup group_or_default(ProcessGroup group);

  std::shared_ptr<Impl> impl_;
  bool is_outside_ = false;
};

/// Finds the other ranks and makes the default group of this process. Waits
/// until all have come. Under a launcher that wants to know why a rank fails,
/// installs its error file (launch/error_file.h). SIGPIPE ends the process no
/// more, unless the program has a handler of its own.
/// Errors: throws kInvalidArgument for wrong options or environment (with
/// PyTorch's words where it has some), kTimeout that names the ranks that did
/// not come, kMismatch on every rank if versions differ.
ProcessGroup init_process_group(const InitOptions& options = {});

/// The group of the job that this process is a rank of: the default group, or,
/// if a launcher has started several processes and there is none yet,
/// `init_process_group()`, which waits for all of them. A process that is alone
/// where no other was started.
/// Errors: as `init_process_group` and `rank_info_from_environment`.
ProcessGroup job_group();

/// The group that `init_process_group` made. Errors: throws kInvalidArgument
/// without one.
ProcessGroup default_group();
/// `group`, or the default group instead of none. Errors: as `default_group`;
/// throws kInvalidArgument for a group that this rank is not in.
ProcessGroup group_or_default(ProcessGroup group);
[[nodiscard]] bool is_initialized();

/// Forgets the default group; it ends with its last handle.
void destroy_process_group();

/// Of the default group.
[[nodiscard]] int get_rank();
[[nodiscard]] int get_world_size();
void all_reduce(at::Tensor& tensor, ReduceOp op = ReduceOp::kSum);
void broadcast(at::Tensor& tensor, int src = 0);
[[nodiscard]] std::vector<at::Tensor> all_gather(const at::Tensor& tensor);
void barrier();

/// The values of all ranks, by rank.
/// Errors: throws as the collectives; kUnsupported for a value that cannot be
/// written; what reading pickles returns.
[[nodiscard]] std::vector<ckpt::Value> all_gather_object(
    const ProcessGroup& group,
    const ckpt::Value& object);

/// The values of all ranks, by rank, on rank `dst`; nothing on the others.
[[nodiscard]] std::vector<ckpt::Value> gather_object(
    const ProcessGroup& group,
    const ckpt::Value& object,
    int dst = 0);

/// The value of rank `src`. In Python: `broadcast_object_list` with one object.
[[nodiscard]] ckpt::Value broadcast_object(
    const ProcessGroup& group,
    const ckpt::Value& object,
    int src = 0);

} // namespace lockstep::dist
#pragma GCC visibility pop
