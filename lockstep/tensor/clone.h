// SPDX-License-Identifier: BSD-3-Clause
//
// Deep copies of modules without side effects. LibTorch's own `clone()` builds
// the copy by `reset()`, which draws random numbers, turns `requires_grad` on,
// loses the names inside a Sequential, fails for a ParameterList and gives away
// what the module was given:
//
// Note [What a module was given]
// clone() copies the members, empties what is registered and calls `reset()`.
// Where that registers what the constructor was given (Embedding's `_weight`,
// the weight of a loss, `register_buffer("pe", pe)`, a backbone), it registers
// the module's own: a frozen parameter takes gradients again, a tensor moves to
// the copy's device, a child's tensors are replaced. So
// - children are exchanged for stand-ins while clone() runs
// (module_children.h),
//   and every tensor gets its memory and its flag back;
// - the copy registers tensors and children of its own in their place;
// - members of LibTorch's modules that hold them get the copy's;
// - members of other classes cannot be reached. Whether there are any, the
//   reference counts tell. The copy's forward uses the module's tensors then,
//   and works under a StandInGuard;
// - such a member that is a child is one object in both: what its forward keeps
//   (a hidden state, a cache, a counter) is one, too. LibTorch's own classes
//   keep nothing; of others `ModuleCopy::shared` tells.
// What members hold of parts that `reset()` makes: Note [Displaced parts] in
// held_parts.h.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

namespace lockstep {

/// A module's tensor, and the copy's.
struct StandIn {
  /// Held, so that its address is no other tensor's.
  at::Tensor original = {};
  at::Tensor own = {};
};
using StandIns = std::unordered_map<const c10::TensorImpl*, StandIn>;

/// Lets LibTorch look for stand-ins, for the rest of the process: before the
/// first guard that has some. Further calls do nothing.
/// Threads: while no other thread calls operations.
void install_stand_ins();

/// From now on `tell` gets each tensor that an operation of this thread returns
/// to who called it; nobody does if it is null. After `install_stand_ins`.
void watch_results(void (*tell)(const at::Tensor& tensor));

/// While it lives, LibTorch's operations in this thread take the stand-ins of
/// their arguments. What asks a tensor itself (`w.device()`, `w.data_ptr()`)
/// sees the original. Costs nothing if `stand_ins` is empty, else a look at the
/// arguments of each operation.
/// Ownership: `stand_ins` outlives it.
/// Threads: operations of threads that forward starts see the originals.
class StandInGuard {
 public:
  explicit StandInGuard(const StandIns& stand_ins);
  ~StandInGuard();
  StandInGuard(const StandInGuard&) = delete;
  StandInGuard& operator=(const StandInGuard&) = delete;

 private:
  const StandIns* outer_ = nullptr;
};

} // namespace lockstep

namespace torch::nn {
class Module;
} // namespace torch::nn

namespace lockstep {

/// A copy with its own storages, the same `requires_grad` flags and the same
/// train or eval mode; on `device` if given. `module` stays as it is, bit for
/// bit.
/// Threads: no other thread may use the module or draw from the default
/// generator meanwhile; the generator's state is the same afterwards.
/// Errors: what `module.clone()` throws; c10::Error if that makes another
/// class, as for a class that inherits it, if members of the copy would hold
/// the module's tensors or children, and if they would hold what it displaces.
std::shared_ptr<torch::nn::Module> clone_module(
    const torch::nn::Module& module,
    const std::optional<c10::Device>& device = std::nullopt);

/// A copy, which may need a `StandInGuard`: Note [What a module was given].
struct ModuleCopy {
  std::shared_ptr<torch::nn::Module> module = {};
  /// For a guard around the copy's forward; empty if it needs none.
  StandIns stand_ins = {};
  /// What members of the copy hold: "pe", "backbone".
  std::vector<std::string> borrowed = {};
  /// Tensors of members that are not registered, and have other values in each
  /// copy: "Float [4, 4]". Note [Tensors of members] in made_tensors.h.
  std::vector<std::string> unlike = {};
  /// The constructor made it, and the program has changed members of the module
  /// since: Note [What a made module remembers] in make_module.h.
  bool lacks_changes = false;
  /// Given children with code of the user's, which are one object in the copy
  /// and in the module, and their classes: "'backbone' (Backbone)".
  std::vector<std::string> shared = {};
};

/// As `clone_module`, but no error where the copy needs stand-ins. A module
/// that `make_module` made is made again.
ModuleCopy copy_of(
    const torch::nn::Module& module,
    const std::optional<c10::Device>& device = std::nullopt);

/// The same for what `make` returns in place of clone(). Where that is not
/// built like `module` it is left as it is.
ModuleCopy copy_made_by(
    const std::function<std::shared_ptr<torch::nn::Module>()>& make,
    const torch::nn::Module& module);

/// The same, and a note of unlike members; nullopt if what `make` returns is
/// not built like `module`: other parameters, buffers or options of layers.
std::optional<ModuleCopy> copy_constructed_by(
    const std::function<std::shared_ptr<torch::nn::Module>()>& make,
    const torch::nn::Module& module);

} // namespace lockstep
