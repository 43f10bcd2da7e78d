// SPDX-License-Identifier: BSD-3-Clause
//
// c10d behind `ProcessGroup`.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/grad_mode.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "lockstep/distributed/process_group.h"
#include "lockstep/distributed/watch/flight_recorder.h"
#include "lockstep/distributed/watch/hang_watch.h"

namespace lockstep::dist {

struct ProcessGroup::Impl : std::enable_shared_from_this<ProcessGroup::Impl> {
  c10::intrusive_ptr<c10d::Store> store = {};
  c10::intrusive_ptr<c10d::ProcessGroup> group = {};
  std::chrono::milliseconds timeout = {};
  /// As `ProcessGroup::backend` tells it.
  std::string backend = {};
  bool has_python_ranks = false;
  /// Wrappers made so far: names of their keys in the store.
  std::uint64_t wrappers = 0;
  /// Groups that Python would have made so far: this one, and those of
  /// `new_group`.
  std::uint64_t groups = 1;
  /// As it was made.
  InitOptions options = {};
  /// As ranks of the job.
  std::vector<int> ranks = {};
  /// Its name below those of the groups that it was made from: "0/1".
  std::string path = {};

  /// Where what is no tensor goes through the group, and barriers wait: the
  /// CPU, or this rank's device if NCCL alone carries the group. As Python's.
  [[nodiscard]] c10::Device object_device() const;

  /// Runs collectives that are for `name`; c10d's errors become ours. Those of
  /// the backend are already (internal/recorded_backend.h).
  void collective(std::string_view name, const std::function<void()>& run);

  /// Behind the group, which ends after it: the others are told first.
  std::shared_ptr<internal::FlightRecorder> recorder = {};
  std::unique_ptr<internal::HangWatch> watch = {};
};

namespace internal {

c10d::ReduceOp to_c10d(ReduceOp op);

/// The same elements with memory that holds what they are: conjugation and
/// negation that LibTorch has put off are done. `tensor` itself without them.
at::Tensor without_lazy_signs(const at::Tensor& tensor);

/// The elements in order, as memory holds them. `tensor` itself if it does.
at::Tensor in_order(const at::Tensor& tensor);

/// A tensor that a collective replaces. Gloo takes memory as it lies, whatever
/// the strides say: it gets the elements in order. Python reduces and
/// broadcasts memory as it lies, so beside its ranks what has no gaps stays as
/// it is.
class Replaced {
 public:
  explicit Replaced(const at::Tensor& tensor, bool has_python_ranks = false)
      : tensor_(tensor),
        elements_(
            tensor.is_sparse() ||
                    (has_python_ranks && tensor.is_non_overlapping_and_dense())
                ? without_lazy_signs(tensor)
                : in_order(tensor)) {}

  [[nodiscard]] std::vector<at::Tensor> list() const {
    return {elements_};
  }
  /// After the collective. Errors: throws c10::Error if elements of the tensor
  /// share memory.
  void write_back() {
    if (!elements_.is_same(tensor_)) {
      const at::NoGradGuard no_grad;
      tensor_.copy_(elements_);
    }
  }

 private:
  at::Tensor tensor_;
  at::Tensor elements_;
};

/// `Impl::object_device`; the CPU for a process that is alone.
c10::Device object_device(const ProcessGroup& group);

/// Errors: throws kInvalidArgument (E_COLLECTIVE_ARGUMENT) for a rank that a
/// group of `size` does not have.
void check_peer(const char* op, int peer, int size);

/// The elements of each, as `in_order`.
std::vector<at::Tensor> contiguous(const std::vector<at::Tensor>& tensors);

/// A group over `store`, named as Python names its default group, so that ranks
/// of both languages meet.
ProcessGroup make_group(
    const c10::intrusive_ptr<c10d::Store>& store,
    int rank,
    int size,
    const InitOptions& options);

/// Where a group's ranks meet.
struct GroupPlace {
  c10::intrusive_ptr<c10d::Store> store = {};
  /// This one's, in the group.
  int rank = 0;
  /// The group's, as ranks of the job.
  std::vector<int> ranks = {};
  /// Python's: a number.
  std::string name = {};
};

/// A group of some ranks of `parent`, whose store `place` has.
ProcessGroup make_sub_group(
    const ProcessGroup::Impl& parent,
    const GroupPlace& place,
    const InitOptions& options);

/// What the start of a job is called in errors.
constexpr std::string_view kInit = "dist.init";

/// Gives every rank the texts of all ranks, through the store. Rank 0 returns
/// when all have read them, so that it may end then, and the store with it.
/// `op`: what they are needed for, in errors and warnings.
/// Errors: throws kTimeout that names the ranks whose text did not come,
/// kUnavailable if the store has ended.
std::vector<std::string> exchange(
    ProcessGroup::Impl& impl,
    const std::string& key,
    const std::string& text,
    std::string_view op = kInit);

} // namespace internal
} // namespace lockstep::dist
