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
#pragma once

#include <concepts>
#include <cstddef>
#include <functional>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <torch/nn/module.h>

#include "lockstep/tensor/module_owner.h"

namespace lockstep {

/// Makes a module with the same structure as another; its values are replaced.
using ModuleFactory = std::function<std::shared_ptr<torch::nn::Module>()>;

namespace internal {

/// Deletes a module and remembers how it was made: the deleter that all owners
/// of its shared_ptr have in common. Note [What a made module remembers].
class ModuleMaker {
 public:
  explicit ModuleMaker(ModuleFactory make) : make_(std::move(make)) {}
  void operator()(torch::nn::Module* module) const {
    delete module;
  }
  [[nodiscard]] const ModuleFactory& make() const {
    return make_;
  }
  /// Once, when the constructor is done. Units: bytes of the whole object.
  void remember_members(const torch::nn::Module& module, std::size_t size);
  [[nodiscard]] bool has_changed_members(const torch::nn::Module& module) const;

 private:
  ModuleFactory make_;
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

/// What a copy's constructor gets for an argument: of a module that
/// `make_module` made another one, else the same.
template <class T>
T again(const T& argument) {
  return argument;
}
template <std::derived_from<torch::nn::Module> T>
std::shared_ptr<T> again(const std::shared_ptr<T>& argument) {
  const ModuleMaker* const maker =
      argument == nullptr ? nullptr : maker_of(*argument);
  return maker == nullptr ? argument
                          : std::dynamic_pointer_cast<T>(maker->make()());
}
template <IsModuleHolder T>
T again(const T& argument) {
  return argument.is_empty() ? argument : T(again(argument.ptr()));
}

template <class Impl, class... Args>
std::shared_ptr<Impl> make_from(const Args&... args) {
  static_assert(
      std::is_constructible_v<Impl, const Args&...>,
      "make_module calls the constructor again for each copy: it must take "
      "these arguments, which stay as they are");
  const auto kept = std::make_shared<const std::tuple<Args...>>(args...);
  const auto make = [kept] {
    return std::apply(
        [](const Args&... given) {
          return make_from<Impl, Args...>(again(given)...);
        },
        *kept);
  };
  std::shared_ptr<Impl> made(new Impl(args...), ModuleMaker(make));
  std::get_deleter<ModuleMaker>(made)->remember_members(*made, sizeof(Impl));
  return made;
}

} // namespace internal

/// `M(args...)`, where `M` is a class of modules or a holder of one: a
/// shared_ptr, or the holder. Copies for replicas are made by the same
/// arguments and get the module's parameters and buffers.
/// Ownership: the module owns copies of `args`. A module among them is made
/// again for each copy if `make_module` made it; else all copies share it.
/// Errors: throws what the constructor throws.
template <class M, class... Args>
auto make_module(Args&&... args) {
  using Impl = typename internal::Implementation<M>::Type;
  static_assert(std::derived_from<Impl, torch::nn::Module>);
  auto made = internal::make_from<Impl, std::decay_t<Args>...>(
      std::forward<Args>(args)...);
  if constexpr (IsModuleHolder<M>) {
    return M(std::move(made));
  } else {
    return made;
  }
}

} // namespace lockstep
