// SPDX-License-Identifier: BSD-3-Clause
//
// Copies of a module that run at the same time on several devices, made once
// and kept. CPU replicas share the parameters' memory; those on other devices
// get the parameters in each pass.
//   ReplicaGroup group(net, parse_devices("cpu*2"));
//   TensorList out = group.forward({images}, call);
// Its options, which are DataParallel's, too; the error of a replica; what is
// moved between devices; how many threads one operation takes.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include "lockstep/base/error.h"
#include "lockstep/device/device_list.h"
#include "lockstep/optim/optimizer.h"
#include "lockstep/tensor/make_module.h"
#include "lockstep/tensor/out_arguments.h"

#pragma GCC visibility push(default)
namespace lockstep {

/// What the caller sees when a replica throws: PyTorch's first line, then the
/// replica's own text. The original exception can be thrown again:
///   catch (const ReplicaError& e) { std::rethrow_exception(e.cause()); }
/// "Caught {Type} in replica {i} on device {d}." with the code of a
/// `lockstep::Exception`, kInvalidArgument for any other type.
class [[gnu::visibility("default")]] ReplicaError : public Exception {
 public:
  ReplicaError(Error error, std::size_t replica, std::exception_ptr cause);
  /// Place in the list of devices.
  [[nodiscard]] std::size_t replica() const noexcept {
    return replica_;
  }
  /// What the replica threw.
  [[nodiscard]] const std::exception_ptr& cause() const noexcept {
    return cause_;
  }

 private:
  std::size_t replica_ = 0;
  std::exception_ptr cause_;
};

} // namespace lockstep

namespace lockstep::parallel {

/// Throws `ReplicaError` for the first place in `errors` that is not null.
void rethrow_lowest(
    std::span<const std::exception_ptr> errors,
    std::span<const c10::Device> devices,
    std::string_view op);

/// The number of threads inside one operation, for one thread and for a while.
/// at::set_num_threads is for the process: it also resizes a pool, empties
/// oneDNN's cache and changes what new threads start with. This goes to the
/// runtimes below it, which keep a number per thread. Gives the calling thread
/// a number of threads of its own while it lives; `at::get_num_threads()` says
/// it. Other threads keep theirs.
class IntraOpThreadsGuard {
 public:
  /// Whether this LibTorch's runtimes can do it: OpenMP's and, where LibTorch
  /// computes with it, MKL's are found by name and obey. Asked once.
  static bool is_available();

  /// Only where `is_available()`; `threads` is at least 1.
  explicit IntraOpThreadsGuard(int threads);
  ~IntraOpThreadsGuard();
  IntraOpThreadsGuard(const IntraOpThreadsGuard&) = delete;
  IntraOpThreadsGuard& operator=(const IntraOpThreadsGuard&) = delete;

 private:
  int saved_ = 0;
  /// 0 if the thread had none of its own.
  int saved_mkl_ = 0;
};

/// What is moved, in the order of a step.
enum class Cargo : std::uint8_t {
  kParameters,
  kBuffers,
  kInputs,
  kOutputs,
  /// Of outputs, to the replicas, and of inputs, back from them.
  kBatchGradients,
  /// Of parameters, to the first device.
  kGradients,
};
inline constexpr std::size_t kCargoes = 6;

/// Transfers between two devices and their bytes.
struct Moved {
  std::uint64_t copies = 0;
  std::uint64_t bytes = 0;

  Moved& operator+=(const Moved& other) {
    copies += other.copies;
    bytes += other.bytes;
    return *this;
  }
};

/// What a transfer of `tensor` moves; of a sparse one its indices and values.
/// Units: bytes.
std::uint64_t bytes_of(const at::Tensor& tensor);

/// Counts what a group moves between devices, by what it is, so that a user
/// sees what a step costs. Threads: any number may add at the same time.
class Traffic {
 public:
  explicit Traffic(std::size_t replicas) : counts_(replicas) {}

  /// Adds what went to or came from the device of `replica`.
  void add(Cargo cargo, std::size_t replica, Moved moved);
  /// Since the start or the last `reset`.
  [[nodiscard]] Moved of(Cargo cargo, std::size_t replica) const;
  void reset();

 private:
  struct Count {
    std::atomic<std::uint64_t> copies{0};
    std::atomic<std::uint64_t> bytes{0};
  };
  std::vector<std::array<Count, kCargoes>> counts_;
};

} // namespace lockstep::parallel

namespace lockstep {

/// How `DataParallel` uses devices.
struct DataParallelOptions {
  /// In the grammar of `parse_devices`, "cpu*2" or "cuda:1,3", or a vector of
  /// torch::Device. Empty: all CUDA devices, else all simulated ones if they
  /// are started, else the CPU, where calls pass straight through.
  DeviceSpec devices = {};
  /// Numbers of CUDA (or started simulated) devices, as in PyTorch, instead of
  /// `devices`.
  std::vector<std::int64_t> device_ids = {};
  /// Where results are gathered, with one device, too; the first if empty.
  DeviceSpec output_device = {};
  /// Dimension that is split and joined.
  std::int64_t dim = 0;
  /// Threads inside one operation of one replica. 0: the process's number
  /// divided by the replicas, at least 1.
  int threads_per_replica = 0;
  /// Makes replicas of a module that `make_module` did not make, that cannot be
  /// cloned and whose class has constructors with arguments. A class with none
  /// is constructed again, its layers' options compared; plain members are then
  /// as the constructor leaves them, parameters and buffers follow the module.
  ModuleFactory factory = {};
  /// Gradients of gradients through several replicas, at the price of speed:
  /// Note [Connected graph] in connected_graph.h.
  bool connected_graph = false;
  /// Sums gradients with NCCL, along the links between GPUs, instead of copying
  /// them to the first: parallel/internal/nccl_reduce.h. NCCL chooses the order
  /// of additions. Not with `connected_graph`, whose sums are autograd's.
  bool nccl = false;
  /// A promise: between two passes parameters change only in ways that
  /// LibTorch's version counters see. Then devices get a parameter only after
  /// it changed, and passes without a step between them (evaluation, gradient
  /// accumulation) copy none. Lockstep's optimizers and loaders keep it, as do
  /// operations on the parameters themselves; LibTorch's SGD, which writes
  /// through `p.data()`, and raw pointers do not. CPU replicas share the memory
  /// and need no promise.
  bool trust_versions = false;
};

/// What one replica returned, with its structure in words, which has to be the
/// same in all replicas.
using ReplicaOutputs = structure::CallOutputs;

/// Note [Replicas]
/// - Replica 0 is the module itself. With one device `forward` is a plain call;
///   a device that is not the CPU gets the module moved to it at the start, and
///   the inputs in each pass, where the module must still be there.
/// - Every pass starts from the module's buffers; what replicas 1.. do to their
///   own buffers is dropped, so BatchNorm keeps replica 0's statistics. Graphs
///   of earlier passes: Note [Buffers of earlier graphs] in broadcast.h.
/// - Replica 0 runs in the caller's thread, and so does each other replica
///   whose thread has not begun by then: Note [Waiting] in
///   worker_pool.h.
/// - Whatever happens to parameters and buffers between two passes, replicas
///   follow it: Note [Following the master] in replica_set.h.
/// - What forward does to an input in place the caller sees, as with one
///   device: Note [Inputs changed in place] in changed_inputs.h.
/// - Leaves that are neither parameters nor inputs get their gradient, or there
///   is an error: Note [Leaves of nobody] in replica_pass.h.
/// - Gradients are summed in replica order; hooks on parameters see the sum,
///   and none is called for a parameter that no replica used.
/// - Random operations: see Note [Replica streams] in random_stream.h for the
///   CPU; other devices draw from the device's own generator.
/// - Plain members changed after construction (a dropout rate) are seen by
///   replicas 1.. after `rebuild()` if the module has `clone()`, else if
///   `factory` sets them; parameters, buffers, `requires_grad`, `train()`,
///   replaced children and tensors are followed by themselves.
///
/// Note [Teams that spin]
/// After an operation of several threads OpenMP's team stays awake for the next
/// one: libgomp's, 300,000 pauses or 5 to 8 ms. CPU replicas leave it no core,
/// so a loss of 30 us, computed by two threads between forward and backward,
/// delays a replica by those milliseconds. `share_threads()` during the loop
/// keeps the caller from waking a team; so does a loss inside forward.
///
/// Threads: calls from several threads run one after the other.
class ReplicaGroup {
 public:
  /// Calls replica `index`, the module given, with its shards.
  /// Threads: all replicas use it at once.
  using Call = std::function<
      ReplicaOutputs(std::size_t index, torch::nn::Module&, const TensorList&)>;

  /// One replica on each of `devices`; the module lives on the first. What
  /// `options` say of devices, but for the output's, is the caller's affair.
  /// `default_factory` makes replicas where `clone()` does not work and there
  /// is no `factory`. Starts the threads; draws no random number.
  /// Errors: throws kInvalidArgument without devices or for devices of several
  /// types, kUnsupported for a module that cannot be copied; and as
  /// `NcclReduce`.
  ReplicaGroup(
      std::shared_ptr<torch::nn::Module> module,
      std::vector<c10::Device> devices,
      const DataParallelOptions& options = {},
      ModuleFactory default_factory = {});
  ~ReplicaGroup();
  ReplicaGroup(const ReplicaGroup&) = delete;
  ReplicaGroup& operator=(const ReplicaGroup&) = delete;

  /// Scatters `inputs`, runs the replicas, gathers each output. Without inputs
  /// the first replica runs alone; with undefined ones only, all do.
  /// Errors: throws ReplicaError for the lowest replica that threw, after all
  /// have ended, kMismatch if replicas return different structures or the
  /// module is not on the first device,
  /// kInvalidArgument inside one of its own replicas, kUnsupported for a graph
  /// that no replica can follow; and as `scatter` and `gather`.
  TensorList forward(const TensorList& inputs, const Call& call);

  [[nodiscard]] std::span<const c10::Device> devices() const;
  [[nodiscard]] structure::Placement placement() const noexcept {
    return placement_;
  }
  /// True if forward is the module's and no more: on the CPU alone.
  [[nodiscard]] bool is_plain() const noexcept {
    return is_plain_;
  }
  /// Replica `index`; 0 is the user's module.
  [[nodiscard]] torch::nn::Module& replica(std::size_t index) const;
  /// The replicas' threads, the caller's for replica 0, to lend to an optimizer
  /// between passes. None with one device. Ownership: they live as long as the
  /// group or the loan.
  [[nodiscard]] Workers workers() const;
  /// Gives the calling thread's own operations (the loss, its gradient) as many
  /// threads as a replica's have, while it lives: Note [Teams that spin].
  /// nullptr where replicas leave the caller its cores: with one device and
  /// with devices other than the CPU; and if `IntraOpThreadsGuard` is not
  /// available.
  [[nodiscard]] std::unique_ptr<parallel::IntraOpThreadsGuard> share_threads()
      const;
  /// What this group moved between devices; gradients of connected graphs are
  /// not counted.
  [[nodiscard]] parallel::Traffic& traffic() const;
  /// Makes replicas 1.. anew from the module.
  void rebuild();
  /// The next pass sends all parameters, whatever their versions say: with
  /// `trust_versions`, after writes that they may not count.
  void forget_sent();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
  structure::Placement placement_ = {};
  bool is_plain_ = false;
};

} // namespace lockstep
#pragma GCC visibility pop
