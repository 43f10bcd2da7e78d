// SPDX-License-Identifier: BSD-3-Clause
//
// Optimizer states between Python and C++. Python counts parameters through all
// groups and keys the state by that index; C++ `torch::save(optimizer)` keys it
// by the address each parameter had. The order of the parameters inside the
// groups is the same, and so one becomes the other.
//   auto cpp = optim_to_cpp(*file.root.find("optimizer"));
//   ckpt::save("optimizer.pt", cpp->root, {.format = "libtorch"});
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/ckpt/value.h"

#pragma GCC visibility push(default)
namespace lockstep::ckpt {

/// A converted state.
struct OptimState {
  Value root = {};
  /// "SGD", "Adam", "AdamW", "RMSprop", "Adagrad" or "LBFGS". AdamW is called
  /// "Adam" where the file does not tell them apart: those of C++, and of
  /// versions of PyTorch that did not save `decoupled_weight_decay`.
  std::string algorithm = {};
  /// Parameters in all groups, and those with a state.
  std::uint64_t parameters = 0;
  std::uint64_t states = 0;
  /// Options and entries the other side does not have, each once.
  std::vector<std::string> dropped = {};
  /// What had to be guessed, in words.
  std::vector<std::string> notes = {};
};

/// The state_dict of an optimizer in `root`: `root` itself, or what it has
/// under "optimizer" or "optimizer_state_dict". Null if there is none.
const Value* find_optim_state(const Value& root);

/// A state_dict of Python as C++ stores it, to be written as "libtorch". The
/// addresses are made up: C++ only compares them. Parameters may be called by
/// name, as `torch.distributed.checkpoint` does; if only the state has names,
/// they are in the order of `weights`, the model's state_dict, if it has them
/// all, else in that of the state, and `notes` says so.
/// Errors: kUnsupported (E_OPTIMIZER) for an optimizer C++ does not have, or an
/// option it would ignore (`maximize`); kCorrupt (E_OPTIMIZER) for a state that
/// does not fit its groups.
Result<OptimState> optim_to_cpp(
    const Value& state,
    const Value* weights = nullptr);

/// The content of an archive of C++ `torch::save(optimizer)` as a state_dict of
/// Python, with the options Python has beyond C++ at their defaults.
/// Errors: as above.
Result<OptimState> optim_to_python(const Value& archive);

} // namespace lockstep::ckpt
#pragma GCC visibility pop
