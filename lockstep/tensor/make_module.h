// SPDX-License-Identifier: BSD-3-Clause
//
// Modules that remember how they were made, so that DataParallel makes its
// replicas in the same way. Any class will do: it needs no Cloneable, no
// reset() and no factory.
//   struct Net : torch::nn::Module { Net(int in, int out); ... };
//   auto net = make_module<Net>(5, 2);
//   DataParallel model(net, {.devices = "cuda:0,1"});
//
// Note [What a made module remembers]
// The constructor's arguments, and the bytes of its own members after it. If
// those are still the same, the constructor says all, and copies are made by
// it. Else the program has set a member since (`net->alpha = 0.5`): a class
// with a clone() is then copied by that, as if make_module had not made it;
// others are constructed, and a warning says that copies lack the change. What
// forward leaves in a member counts as a change, what changes behind a pointer
// does not.
//
// Note [Ties between arguments]
// A module may be given twice, or two arguments may have a part in common: an
// embedding that is the encoder's and the decoder's. What is one object in the
// module is one object in its copy. So each call that makes a module again
// keeps which copy stands for which module and which parameter or buffer
// (`Copies`), also for the modules that it makes for that. Those that
// `make_module` made come first: another argument may be a part of one of them.
#pragma once

#include <concepts>
#include <cstddef>
#include <functional>
#include <memory>
#include <ostream>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#pragma GCC visibility push(default)
namespace lockstep {

// What takes a module in any form: a holder, a shared_ptr, or an object that
// lives elsewhere.

/// A LibTorch module holder, such as `torch::nn::Linear`.
template <class H>
concept IsModuleHolder = requires { typename H::ContainedType; };

/// The module's owner, or a pointer that owns nothing.
template <class M>
std::shared_ptr<M> share_module(M& module) {
  if (const auto owner = module.weak_from_this().lock()) {
    return std::dynamic_pointer_cast<M>(owner);
  }
  return std::shared_ptr<M>(&module, [](M*) {});
}

/// Makes a module with the same structure as another; its values are replaced.
using ModuleFactory = std::function<std::shared_ptr<torch::nn::Module>()>;

namespace internal {

/// What stands for modules, parameters and buffers in a module that is made
/// again: Note [Ties between arguments].
class Copies {
 public:
  /// `copy` stands for `module`, and so do its parts for the module's as far as
  /// both are built alike.
  void add(
      const torch::nn::Module& module,
      const std::shared_ptr<torch::nn::Module>& copy);
  /// Null if there is none.
  [[nodiscard]] std::shared_ptr<torch::nn::Module> find(
      const torch::nn::Module& module) const;
  /// Undefined if there is none.
  [[nodiscard]] at::Tensor find(const at::Tensor& tensor) const;

 private:
  void add_modules(
      const torch::nn::Module& module,
      const std::shared_ptr<torch::nn::Module>& copy);

  std::unordered_map<
      const torch::nn::Module*,
      std::shared_ptr<torch::nn::Module>>
      modules_ = {};
  std::unordered_map<const c10::TensorImpl*, at::Tensor> tensors_ = {};
};

/// Deletes a module and remembers how it was made: the deleter that all owners
/// of its shared_ptr have in common. Note [What a made module remembers].
class ModuleMaker {
 public:
  using Make = std::function<std::shared_ptr<torch::nn::Module>(Copies&)>;

  explicit ModuleMaker(Make make) : make_(std::move(make)) {}
  void operator()(torch::nn::Module* module) const {
    delete module;
  }
  [[nodiscard]] std::shared_ptr<torch::nn::Module> make() const {
    Copies copies;
    return make_(copies);
  }
  /// As a part of what is made with `copies`.
  [[nodiscard]] std::shared_ptr<torch::nn::Module> make(Copies& copies) const {
    return make_(copies);
  }
  /// Once, when the constructor is done. Units: bytes of the whole object.
  void remember_members(const torch::nn::Module& module, std::size_t size);
  [[nodiscard]] bool has_changed_members(const torch::nn::Module& module) const;

 private:
  Make make_;
  std::vector<std::byte> members_ = {};
  std::size_t size_ = 0;
};

/// Null for a module that `make_module` did not make.
const ModuleMaker* maker_of(const torch::nn::Module& module);

template <class M>
struct Implementation {
  using Type = M;
};
template <IsModuleHolder M>
struct Implementation<M> {
  using Type = typename M::ContainedType;
};

/// The module or the tensor that an argument is; null for another.
template <class T>
const torch::nn::Module* module_in(const T& /*argument*/) {
  return nullptr;
}
template <std::derived_from<torch::nn::Module> T>
const torch::nn::Module* module_in(const std::shared_ptr<T>& argument) {
  return argument.get();
}
template <IsModuleHolder T>
const torch::nn::Module* module_in(const T& argument) {
  return argument.is_empty() ? nullptr : argument.get();
}

/// Makes the module that an argument is again, if `make_module` made it.
void make_again(const torch::nn::Module* argument, Copies& copies);

/// What a copy's constructor gets for an argument: what stands for it, else the
/// same.
template <class T>
T again(const T& argument, const Copies& /*copies*/) {
  return argument;
}
inline at::Tensor again(const at::Tensor& argument, const Copies& copies) {
  const at::Tensor found = copies.find(argument);
  return found.defined() ? found : argument;
}
template <std::derived_from<torch::nn::Module> T>
std::shared_ptr<T> again(
    const std::shared_ptr<T>& argument,
    const Copies& copies) {
  const auto found = argument == nullptr ? nullptr : copies.find(*argument);
  return found == nullptr ? argument : std::dynamic_pointer_cast<T>(found);
}
template <IsModuleHolder T>
T again(const T& argument, const Copies& copies) {
  return argument.is_empty() ? argument : T(again(argument.ptr(), copies));
}

/// Whether anything stands for an argument.
template <class T>
bool has_copy(const T& argument, const Copies& copies) {
  const torch::nn::Module* const module = module_in(argument);
  return module != nullptr && copies.find(*module) != nullptr;
}
inline bool has_copy(const at::Tensor& argument, const Copies& copies) {
  return copies.find(argument).defined();
}

template <class Impl, class... Args>
std::shared_ptr<Impl> make_from(
    const std::shared_ptr<const std::tuple<Args...>>& args) {
  static_assert(
      std::is_constructible_v<Impl, const Args&...>,
      "make_module calls the constructor again for each copy: it must take "
      "these arguments, which stay as they are");
  const auto make = [args](Copies& copies) {
    return std::apply(
        [&](const Args&... given) {
          (make_again(module_in(given), copies), ...);
          // Copies that keep the same arguments share them: what these hold
          // counts as held by a member otherwise.
          return make_from<Impl>(
              (has_copy(given, copies) || ...)
                  ? std::make_shared<const std::tuple<Args...>>(
                        again(given, copies)...)
                  : args);
        },
        *args);
  };
  Impl* const made = std::apply(
      [](const Args&... given) { return new Impl(given...); },
      *args);
  std::shared_ptr<Impl> owner(made, ModuleMaker(make));
  std::get_deleter<ModuleMaker>(owner)->remember_members(*made, sizeof(Impl));
  return owner;
}

} // namespace internal

/// `M(args...)`, where `M` is a class of modules or a holder of one: a
/// shared_ptr, or the holder. Copies for replicas are made by the same
/// arguments and get the module's parameters and buffers.
/// Ownership: the module owns copies of `args`. A module among them is made
/// again for each copy if `make_module` made it; else all copies share it,
/// unless it is a part of one that is. What is given twice, or is in several of
/// them, is one object in a copy, too.
/// Errors: throws what the constructor throws.
template <class M, class... Args>
auto make_module(Args&&... args) {
  using Impl = typename internal::Implementation<M>::Type;
  static_assert(std::derived_from<Impl, torch::nn::Module>);
  auto made = internal::make_from<Impl>(
      std::make_shared<const std::tuple<std::decay_t<Args>...>>(
          std::forward<Args>(args)...));
  if constexpr (IsModuleHolder<M>) {
    return M(std::move(made));
  } else {
    return made;
  }
}

// What DataParallel and DistributedDataParallel have in common.

/// `Base`, what does not depend on the type, around an `M`.
template <class Base, class M>
class ModuleWrapper : public Base {
 public:
  /// The wrapped module, or, typed, what it is: `model->module<Net>()`.
  /// Errors: throws kInvalidArgument if it is no `T`.
  template <class T = M>
  [[nodiscard]] std::shared_ptr<T> module() const {
    auto typed = std::dynamic_pointer_cast<T>(module_);
    if (typed == nullptr) {
      Base::raise_wrong_type(*module_);
    }
    return typed;
  }

 protected:
  template <class... Args>
  explicit ModuleWrapper(std::shared_ptr<M> module, Args&&... args)
      : Base(module, std::forward<Args>(args)...), module_(std::move(module)) {}

  [[nodiscard]] M& wrapped() const {
    return *module_;
  }

 private:
  std::shared_ptr<M> module_;
};

/// Holder of an `Impl` around an `M`, used like any LibTorch module. Wraps a
/// module holder, a shared_ptr, or a module on the stack, which must outlive
/// it.
template <class Impl, class M, class Options>
class WrapperHolder : public torch::nn::ModuleHolder<Impl> {
 public:
  using Holder = torch::nn::ModuleHolder<Impl>;

  // NOLINTNEXTLINE(google-explicit-constructor): as LibTorch's holders
  WrapperHolder(std::nullptr_t) : Holder(nullptr) {}
  // NOLINTNEXTLINE(google-explicit-constructor): as LibTorch's holders
  WrapperHolder(std::shared_ptr<Impl> impl) : Holder(std::move(impl)) {}
  explicit WrapperHolder(
      const std::shared_ptr<M>& module,
      const Options& options = {})
      : Holder(std::make_shared<Impl>(module, options)) {}
  explicit WrapperHolder(
      const torch::nn::ModuleHolder<M>& module,
      const Options& options = {})
      : WrapperHolder(module.ptr(), options) {}
  explicit WrapperHolder(M& module, const Options& options = {})
      : WrapperHolder(share_module(module), options) {}

  /// `model(x)`: forward.
  template <class... Args>
  auto operator()(Args&&... args) {
    return (*this)->forward(std::forward<Args>(args)...);
  }
};

/// `std::cout << model`: as Python's `print(model)`.
template <class Impl, class M, class Options>
std::ostream& operator<<(
    std::ostream& stream,
    const WrapperHolder<Impl, M, Options>& model) {
  return stream << *model;
}

} // namespace lockstep
#pragma GCC visibility pop
