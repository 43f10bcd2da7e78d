// SPDX-License-Identifier: BSD-3-Clause
//
// Whole modules: printed as Python prints them, laid out in a memory format,
// copied; layers that were replaced behind LibTorch's back.
//   std::cout << to_string(*net) << '\n'; // our models print so by themselves
//   to_memory_format(*net, at::MemoryFormat::ChannelsLast);
//   auto copy = clone_module(*net);
//
// LibTorch's silent trap: `net->conv1 = torch::nn::Conv2d(...)` gives forward a
// new layer and leaves the old one registered, so state_dict, optimizers and
// replicas keep that. The sign: a registered child that nothing else refers to.
//   net->conv1 = net->replace_module("conv1", torch::nn::Conv2d(...)); // right
//
// LibTorch's own `clone()` builds the copy by `reset()`, which draws random
// numbers, turns `requires_grad` on, loses the names inside a Sequential, fails
// for a ParameterList and gives away what the module was given:
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

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/MemoryFormat.h>
#include <c10/util/ArrayRef.h>
#include <torch/nn/module.h>

#pragma GCC visibility push(default)
namespace lockstep {

/// PyTorch 2.13's `repr(module)`: class name, options, children indented by
/// two. Options show for all layers of LibTorch, but for what LibTorch does not
/// keep of them (layer_text.h); any other module shows its class name and
/// children.
std::string to_string(const torch::nn::Module& module);

/// Elements of all parameters, frozen ones too; tied ones count once.
std::int64_t count_parameters(const torch::nn::Module& module);

/// `repr(str)`: 'a', or "it's" where the text holds a single quote.
std::string python_repr(std::string_view text);

/// `repr(list of str)`: ['a', 'b'].
std::string python_repr(std::span<const std::string> texts);

/// Sizes as PyTorch prints them: torch.Size([5, 3]).
std::string size_text(c10::IntArrayRef sizes);

/// A tuple of integers: (3, 3), or (3,) for one.
std::string tuple_text(c10::IntArrayRef values);

/// Lays out the parameters and buffers of `module` in `format`: ChannelsLast
/// those of four dimensions, ChannelsLast3d of five, others both. Values, names
/// and the parameters' identity stay. Call it before optimizers and replicas
/// are made. The file written from either layout holds the same values.
void to_memory_format(torch::nn::Module& module, at::MemoryFormat format);

/// Python's `tensor.to(memory_format=...)`: the tensor itself if it lies so.
/// With one channel `contiguous` is another thing: packed numbers have channels
/// last, too, but kernels that ask for a tensor's format take it for packed.
at::Tensor in_memory_format(const at::Tensor& tensor, at::MemoryFormat format);

/// Names ("layer1.0.conv1") of the registered children to which nothing but
/// their registration refers; empty for every LibTorch container and layer. A
/// module none of whose several children is referred to keeps them in its
/// registry alone and is not listed; one with a single child is, though nothing
/// may be wrong.
/// Threads: nobody may change the module meanwhile; a reference that another
/// thread holds for a moment hides a child.
std::vector<std::string> replaced_children(const torch::nn::Module& module);

/// Names ("decoder.weight") of the registered parameters and buffers to which
/// nothing but their registration refers: `b->weight = a->weight` leaves one. A
/// module that finds them by name only is listed though nothing is wrong, but
/// for LibTorch's ParameterList and ParameterDict.
/// Threads: as `replaced_children`.
std::vector<std::string> replaced_tensors(const torch::nn::Module& module);

/// What to write instead, for the first of `replaced_children`; empty without
/// any.
std::string replaced_children_hint(const torch::nn::Module& module);

/// The same as a warning of LibTorch, once for each child.
/// Threads: safe to call from several threads.
void warn_of_replaced_children(const torch::nn::Module& module);

/// A copy with its own storages, the same ties (`tie_alike`), the same
/// `requires_grad` flags and the same train or eval mode; on `device` if given.
/// `module` stays as it is, bit for bit.
/// Threads: no other thread may use the module or draw from the default
/// generator meanwhile; the generator's state is the same afterwards.
/// Errors: what `module.clone()` throws; c10::Error if that makes another
/// class, as for a class that inherits it, if members of the copy would hold
/// the module's tensors or children, and if they would hold what it displaces.
std::shared_ptr<torch::nn::Module> clone_module(
    const torch::nn::Module& module,
    const std::optional<c10::Device>& device = std::nullopt);

/// What a clone() registers that begins as the object's copy, as that of
/// `Composite` does (models/model.h): at first the module's tensors and
/// children. Ownership: `copy` outlives it. Threads: as `clone_module`.
class OwnRegistrations {
 public:
  /// Registers copies in their place, on `device` if given.
  /// Errors: as `clone_module`.
  OwnRegistrations(
      torch::nn::Module& copy,
      const std::optional<c10::Device>& device);
  /// The copy of `child`, a child of the module: one object however often it is
  /// asked for.
  std::shared_ptr<torch::nn::Module> of(const torch::nn::Module& child);

 private:
  std::optional<c10::Device> device_;
  std::unordered_map<
      const torch::nn::Module*,
      std::shared_ptr<torch::nn::Module>>
      children_ = {};
};

/// What is one object in several places of `module` becomes one in `copy`, a
/// copy of it that has one for each place: children, parameters of lists, and
/// memory that several tensors share. Where a place cannot be given the other's
/// child it becomes a child with the same tensors. Left apart: a tensor that a
/// class registers itself beside a child's. `clone_module` has done it.
/// Threads: as `clone_module`.
void tie_alike(const torch::nn::Module& module, torch::nn::Module& copy);

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
#pragma GCC visibility pop
