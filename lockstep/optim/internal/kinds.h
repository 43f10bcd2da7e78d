// SPDX-License-Identifier: BSD-3-Clause
//
// State, options and rules of Python's optimizers: the same for our classes
// and for LibTorch's.
#pragma once

#include <vector>

#include "lockstep/optim/optimizer.h"
#include "lockstep/optim/optimizers.h"

namespace lockstep::internal {

extern const OptimizerKind kSGD;
extern const OptimizerKind kAdam;
extern const OptimizerKind kAdamW;
extern const OptimizerKind kRMSprop;
extern const OptimizerKind kAdagrad;

/// All options of a group, in Python's order.
std::vector<NamedOption> python_options(const SGDOptions& options);
/// The same for Adam and, if `is_decoupled`, for AdamW.
std::vector<NamedOption> python_options(
    const AdamOptions& options,
    bool is_decoupled);
/// The same with Python's defaults.
std::vector<NamedOption> rmsprop_defaults();
std::vector<NamedOption> adagrad_defaults();

} // namespace lockstep::internal
