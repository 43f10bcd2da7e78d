// SPDX-License-Identifier: BSD-3-Clause
//
// DistributedDataParallel for C++: each process trains its own copy of a module
// on its own part of the data; while backward runs, gradients are averaged over
// all processes. On c10d's Reducer, as Python's: ranks of both languages train
// one model together, and their parameters stay equal to the bit.
//   dist::init_process_group();
//   DistributedDataParallel model(net);
//   loss(model->forward(images), targets).backward();  // gradients averaged
//   sgd.step();                                        // the same on each rank
//
// BatchNorm over the batches of all ranks. LibTorch's layers stay what and
// where they are: members like `torch::nn::BatchNorm2d bn{nullptr}`, names and
// files do not change.
//   convert_sync_batchnorm(*net);          // all ranks
//   DistributedDataParallel model(net);
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/util/Logging.h>
#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include "lockstep/distributed/comm_hook.h"
#include "lockstep/distributed/process_group.h"
#include "lockstep/tensor/make_module.h"
#include "lockstep/tensor/modules.h"
#include "lockstep/tensor/out_arguments.h"
#include "lockstep/tensor/structure.h"

#pragma GCC visibility push(default)
namespace lockstep {

/// Which parameters are averaged together, bucket by bucket, in the order in
/// which they lie there: numbers among those that are trained.
using BucketLayout = std::vector<std::vector<std::int64_t>>;

/// How `DistributedDataParallel` works; names and defaults are PyTorch's. All
/// ranks give the same.
struct DistributedDataParallelOptions {
  /// The default group if empty.
  dist::ProcessGroup process_group = {};
  /// Units: MiB of gradients that are averaged at once. Not given: 25, and 1
  /// for the first, which is ready first.
  std::optional<double> bucket_cap_mb = {};
  /// Some parameters may have no part in a loss; which ones may change.
  bool find_unused_parameters = false;
  /// Gradients are views of the memory in which they are averaged: one copy
  /// less.
  bool gradient_as_bucket_view = false;
  /// The same parameters are used in the same way in every pass. Parameters may
  /// then be used several times, or not at all.
  bool static_graph = false;
  /// Buffers (BatchNorm's statistics) are rank 0's at the start of every
  /// forward pass. Backward of an earlier pass that wrote and used a buffer
  /// throws LibTorch's "modified by an inplace operation" where rank 0's value
  /// is another one; on the CPU only, since a device would have to wait.
  bool forward_sync_buffers = true;
  /// Parameters and buffers are rank 0's at the start. False if they are equal
  /// already.
  bool init_sync = true;
  /// Names of parameters and buffers that are each rank's own affair.
  std::vector<std::string> ignored = {};
};

/// How `join` works; names and defaults are PyTorch's. All ranks give the same.
struct JoinOptions {
  /// Divide gradients by the number of all ranks, so that each sample counts
  /// the same; else by the number of those that still have inputs.
  bool divide_by_initial_world_size = true;
  /// False: the inputs are known to be even, nothing happens.
  bool enable = true;
  /// All ranks throw when the first has no more inputs.
  bool throw_on_early_termination = false;
  /// What all ranks do together after each backward pass that averages, such as
  /// the `step` of a ZeroRedundancyOptimizer: called on ranks without inputs,
  /// which have the others' gradients then.
  std::function<void()> after_backward = {};
};

/// What does not depend on the module's type. Holds the user's module as its
/// child `module`, so keys of the state dictionary start with "module.".
class DistributedDataParallelBase : public torch::nn::Module {
 public:
  /// Compares the ranks, takes over rank 0's parameters and buffers, and makes
  /// the buckets: all ranks construct at the same time.
  /// Errors: throws kInvalidArgument for a module that cannot be wrapped (in
  /// PyTorch's words), kMismatch on every rank if options or models differ;
  /// those of the collectives.
  DistributedDataParallelBase(
      const std::shared_ptr<torch::nn::Module>& module,
      const DistributedDataParallelOptions& options);
  ~DistributedDataParallelBase() override;
  DistributedDataParallelBase(const DistributedDataParallelBase&) = delete;
  DistributedDataParallelBase& operator=(const DistributedDataParallelBase&) =
      delete;

  /// While it lives, gradients add up on each rank and are not averaged; the
  /// first backward pass after it averages the sums. The forward passes must be
  /// inside, too.
  class [[nodiscard]] NoSync {
   public:
    explicit NoSync(DistributedDataParallelBase& model);
    ~NoSync();
    NoSync(const NoSync&) = delete;
    NoSync& operator=(const NoSync&) = delete;

   private:
    DistributedDataParallelBase& model_;
    bool before_ = true;
  };
  ///   const auto no_sync = model->no_sync();
  NoSync no_sync() {
    return NoSync(*this);
  }

  /// Averages what backward passes inside `no_sync` have added up, without
  /// another pass, and takes over rank 0's buffers: for steps that a rank may
  /// have to begin again before the others go on. All ranks call it together.
  /// Hooks on parameters are called once more, with zeros.
  /// Errors: as forward and backward passes that average; throws kUnsupported
  /// (E_AVERAGE) with sparse gradients, a static graph, inside `join`, and for
  /// a parameter without a gradient unless `find_unused_parameters` is on.
  void average_gradients();

  /// Calls `train`, a training loop whose number of steps may differ between
  /// the ranks. A rank whose loop has ended takes part in the others' steps
  /// without inputs; at the end all have the model of the rank that was last.
  ///   model->join([&] { for (auto& batch : loader) { step(batch); } });
  /// Collectives of the program's own may not be inside.
  /// Errors: what `train` throws, at once. With `throw_on_early_termination`:
  /// kMismatch in PyTorch's words, on all ranks.
  void join(
      const std::function<void()>& train,
      const JoinOptions& options = {});

  /// Brings gradients together with `hook` instead of averaging them: once,
  /// before the first step, and on all ranks.
  /// Errors: throws kInvalidArgument (E_COMM_HOOK) otherwise, in PyTorch's
  /// words; the first step throws kMismatch if the ranks' hooks differ.
  void register_comm_hook(dist::CommHook hook);

  /// What c10d has written down of this model: options, bucket sizes, and,
  /// sampled, the times of forward, backward and communication. The keys are
  /// those of Python's `model._get_ddp_logging_data()`.
  [[nodiscard]] c10::DDPLoggingData get_ddp_logging_data() const;

  [[nodiscard]] const dist::ProcessGroup& process_group() const;

  /// The buckets that the first backward pass led to; empty before it. Of three
  /// ranks or more the place of a number decides the last bits of its average:
  /// a run that shall go on exactly saves this. All ranks call it together,
  /// between steps.
  [[nodiscard]] BucketLayout bucket_layout();
  /// Goes on with the buckets of an earlier run of the same model. All ranks
  /// call it before their first forward pass.
  /// Errors: throws kMismatch if they are another model's, kInvalidArgument if
  /// Python ranks take part, which would not know them.
  void set_bucket_layout(const BucketLayout& layout);

 protected:
  [[noreturn]] static void raise_wrong_type(const torch::nn::Module& module);
  /// Where the module's parameters are.
  [[nodiscard]] c10::Device device() const;
  void before_forward();
  /// `outputs`, behind the node that some options need.
  TensorList after_forward(const TensorList& outputs);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// `std::cout << *model`: as Python's `print(model)`.
inline std::ostream& operator<<(
    std::ostream& stream,
    const DistributedDataParallelBase& model) {
  return stream << to_string(model);
}

/// DistributedDataParallel around an `M`.
template <class M>
class DistributedDataParallelImpl
    : public ModuleWrapper<DistributedDataParallelBase, M> {
 public:
  explicit DistributedDataParallelImpl(
      std::shared_ptr<M> module,
      const DistributedDataParallelOptions& options = {})
      : ModuleWrapper<DistributedDataParallelBase, M>(
            std::move(module),
            options) {}
  /// A module that no shared_ptr owns, on the stack for example.
  /// Ownership: it outlives this wrapper.
  explicit DistributedDataParallelImpl(
      M& module,
      const DistributedDataParallelOptions& options = {})
    requires std::derived_from<M, torch::nn::Module>
      : DistributedDataParallelImpl(share_module(module), options) {}

  /// Calls the module's forward. Tensors in `args` are moved to the module's
  /// device if it is not the CPU. What forward puts into an argument `T&`:
  /// Note [Arguments that forward fills in] in out_arguments.h. Every rank
  /// calls it as often as the others.
  template <class... Args>
  auto forward(Args&&... args) {
    const c10::Device device = this->device();
    structure::CallerArguments<M, Args...> caller(
        {.is_direct = device.is_cpu()},
        args...);
    this->before_forward();
    TensorList inputs = caller.tensors();
    if (!device.is_cpu()) {
      for (at::Tensor& tensor : inputs) {
        tensor = tensor.to(device);
      }
    }
    structure::CallOutputs outputs;
    auto result = caller.call(this->wrapped(), /*index=*/0, inputs, outputs);
    return structure::rebuild(
        std::move(result),
        caller.take(this->after_forward(outputs.tensors)));
  }
};

/// Holder of `DistributedDataParallelImpl`.
template <class M>
class DistributedDataParallel : public WrapperHolder<
                                    DistributedDataParallelImpl<M>,
                                    M,
                                    DistributedDataParallelOptions> {
 public:
  using DistributedDataParallel::WrapperHolder::WrapperHolder;
};

template <class M>
DistributedDataParallel(std::shared_ptr<DistributedDataParallelImpl<M>>)
    -> DistributedDataParallel<M>;
template <class M>
DistributedDataParallel(std::shared_ptr<M>, DistributedDataParallelOptions = {})
    -> DistributedDataParallel<M>;
template <IsModuleHolder H>
DistributedDataParallel(const H&, DistributedDataParallelOptions = {})
    -> DistributedDataParallel<typename H::ContainedType>;
template <std::derived_from<torch::nn::Module> M>
DistributedDataParallel(M&, DistributedDataParallelOptions = {})
    -> DistributedDataParallel<M>;

/// From now on the BatchNorm layers in `module`, when they train, take the mean
/// and variance of the batches of all ranks of `group` (the default group if
/// empty), of whatever sizes; forward, gradients and running statistics are
/// those of one layer that sees all of it. Every rank then makes the same
/// forward and backward passes, second gradients (`create_graph`) included. On
/// any device, and for inputs and weights of half types, too. A batch may be
/// empty; if those of all ranks are, the running statistics stay as they are.
/// Those of an exported program (`load_program`) are layers, too.
/// Returns the number of layers.
/// Ownership: `group` must live as long as the layers train. A clone of a layer
/// is a plain one.
/// Threads: call it before other threads use BatchNorm.
/// Errors: throws kUnsupported (E_SYNC_BATCH_NORM) for a layer without weights
/// and without running statistics, and for one of a program whose graph was
/// decomposed; LibTorch itself refuses, on the rank
/// concerned, a batch with one value per channel; E_OPERATORS if LibTorch's
/// aten::batch_norm is another than ours was written for.
std::int64_t convert_sync_batchnorm(
    torch::nn::Module& module,
    const dist::ProcessGroup& group = {});

/// Layers in `module` that it has converted. Threads: any.
[[nodiscard]] std::int64_t count_sync_batchnorms(
    const torch::nn::Module& module);

/// LibTorch's own aten::batch_norm again: every converted layer of the process
/// is a plain one. Threads: as `convert_sync_batchnorm`.
void uninstall_sync_batchnorm();

} // namespace lockstep
#pragma GCC visibility pop
