// SPDX-License-Identifier: BSD-3-Clause
//
// LibTorch's own optimizers as ours: for schedulers, ZeRO and whatever else
// takes an `Optimizer`. Schedulers take LibTorch's themselves, too.
//   torch::optim::SGD sgd(net->parameters(), 0.1);
//   StepLR scheduler(sgd, {.step_size = 30}); // sets the lr of `sgd`
//   for (...) { ...; sgd.step(); scheduler.step(); }
#pragma once

#include <memory>
#include <vector>

#include "lockstep/optim/optimizer.h"

namespace torch::optim {
class Optimizer;
} // namespace torch::optim

namespace lockstep {

/// One of LibTorch's optimizers as ours: torch::optim::SGD, Adam, AdamW,
/// RMSprop, Adagrad or a class derived from one of them. Its groups are
/// Python's, with `initial_lr` and what else LibTorch has no place for, and so
/// is its state. Changed options in `param_groups()` count from `apply_options`
/// or the next `step` on, those that LibTorch has; so do changes of LibTorch's
/// groups, by its schedulers or by whoever kept a pointer.
///
/// What LibTorch has no place for is kept with LibTorch's optimizer itself, so
/// all that wrap one optimizer see one `initial_lr`, and `state_dict` of
/// torch_optim_state.h saves it. For that the first wrapper replaces the object
/// behind LibTorch's `defaults()` by an equal one of a derived class.
///
/// Ownership: takes a std::unique_ptr, or shares.
/// Errors: as `state_dict(const torch::optim::Optimizer&)`; kInvalidArgument
/// for null; `step` and `apply_options` throw kInvalidArgument if both sides
/// changed one option since the last of them.
std::unique_ptr<Optimizer> from_torch(
    std::shared_ptr<torch::optim::Optimizer> optimizer);
/// Ownership: `optimizer` must outlive what is returned. Steps are not counted,
/// since the caller makes them: schedulers do not warn of their order.
std::unique_ptr<Optimizer> from_torch(torch::optim::Optimizer& optimizer);

/// The parameters with the options that `state_dict(optimizer)` saves; copies.
/// Errors: as `state_dict(const torch::optim::Optimizer&)`.
std::vector<ParamGroup> param_groups(const torch::optim::Optimizer& optimizer);

} // namespace lockstep
