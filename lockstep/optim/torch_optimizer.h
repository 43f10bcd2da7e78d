// SPDX-License-Identifier: BSD-3-Clause
//
// LibTorch's own optimizers as ours: for schedulers, ZeRO and whatever else
// takes an `Optimizer`. Schedulers take LibTorch's themselves, too.
//   torch::optim::SGD sgd(net->parameters(), 0.1);
//   StepLR scheduler(sgd, {.step_size = 30}); // sets the lr of `sgd`
//   for (...) { ...; sgd.step(); scheduler.step(); }
//
// State dictionaries of LibTorch's own optimizers, as Python writes them: what
// one side saves, the other side's `load_state_dict` takes and goes on with.
//   torch::optim::Adam optimizer(net->parameters(), 1e-3);
//   save(optimizer, "optimizer.pth");
//   load_state(optimizer, load("optimizer.pth"));
#pragma once

#include <concepts>
#include <memory>
#include <vector>

#include "lockstep/ckpt/value.h"
#include "lockstep/optim/optimizer.h"
#include "lockstep/tensor/checkpoint.h"

#pragma GCC visibility push(default)
namespace torch::optim {
class Optimizer;
} // namespace torch::optim

namespace lockstep {

/// One of LibTorch's optimizers as ours: torch::optim::SGD, Adam, AdamW,
/// RMSprop, Adagrad or a class derived from one of them. Its groups are
/// Python's, with `initial_lr` and what else LibTorch has no place for, and so
/// is its state. Changed options in `param_groups()` count from `apply_options`
/// or the next `step` on, those that LibTorch has; so do changes of LibTorch's
/// groups, of their parameters and options, by its schedulers or by whoever
/// kept a pointer. Parameters are not changed in `param_groups()`.
///
/// What LibTorch has no place for is kept with LibTorch's optimizer itself, so
/// all that wrap one optimizer see one `initial_lr`, and `state_dict` saves it.
/// For that the first wrapper replaces the object behind LibTorch's
/// `defaults()` by an equal one of a derived class.
///
/// Ownership: takes a std::unique_ptr, or shares.
/// Errors: as `state_dict(const torch::optim::Optimizer&)`; kInvalidArgument
/// for null; `step` and `apply_options` throw kInvalidArgument if both sides
/// changed one option since the last of them, or ours the parameters.
std::unique_ptr<Optimizer> from_torch(
    std::shared_ptr<torch::optim::Optimizer> optimizer);
/// Ownership: `optimizer` must outlive what is returned. Steps are not counted,
/// since the caller makes them: schedulers do not warn of their order.
std::unique_ptr<Optimizer> from_torch(torch::optim::Optimizer& optimizer);

/// The parameters with the options that `state_dict(optimizer)` saves; copies.
/// Errors: as `state_dict(const torch::optim::Optimizer&)`.
std::vector<ParamGroup> param_groups(const torch::optim::Optimizer& optimizer);

} // namespace lockstep

namespace torch::optim {
class Optimizer;
} // namespace torch::optim

namespace lockstep {

/// `{'state': {...}, 'param_groups': [...]}` of torch::optim::SGD, Adam, AdamW,
/// RMSprop, Adagrad or a class derived from one of them. Options that only
/// Python has get Python's defaults; `step` becomes a tensor. State is in the
/// order of the parameters, since LibTorch does not keep that of first use.
/// What a scheduler on it keeps in the groups, `initial_lr` and the like, is
/// saved.
///
/// Ownership: tensors alias the live state; save or copy before `step`.
/// Errors: throws kUnsupported for another optimizer and for sparse state;
/// kInvalidArgument for a group with options of another class.
ckpt::Value state_dict(const torch::optim::Optimizer& optimizer);

/// Takes over saved state and options, by position, as Python does: tensors are
/// copied to their parameter's device and dtype. Returns the groups with all
/// options as Python would have them now, also what LibTorch has no place for:
/// `initial_lr` and the like, names of parameters, `foreach` and `fused`, which
/// choose how a step is computed and not what it computes. Schedulers and
/// `state_dict` find that later, as `from_torch` says.
///
/// Errors: throws kMismatch with PyTorch's text (number of groups, sizes of
/// groups), for shapes and for another optimizer's state; kUnsupported for
/// another optimizer than above and for options that LibTorch's would not
/// follow (`maximize`, `capturable`, `differentiable`, in Adam
/// `decoupled_weight_decay`); as `state_dict`. The optimizer is unchanged then.
std::vector<ParamGroup> load_state_dict(
    torch::optim::Optimizer& optimizer,
    const ckpt::Value& state);

/// For `save` and `load_state`, as if these were members.
template <std::convertible_to<const torch::optim::Optimizer&> T>
  requires(!internal::HasState<T>)
struct ckpt::ToValue<T> {
  static ckpt::Value get(const torch::optim::Optimizer& optimizer) {
    return state_dict(optimizer);
  }
};
void load_state(torch::optim::Optimizer& optimizer, const ckpt::Value& state);

/// Gives the groups of `optimizer` those options of `groups`, one for each,
/// that LibTorch has. Errors: throws kInvalidArgument for one that is no
/// number, and for more or fewer groups.
void set_options(
    torch::optim::Optimizer& optimizer,
    const std::vector<ParamGroup>& groups);

} // namespace lockstep
#pragma GCC visibility pop
