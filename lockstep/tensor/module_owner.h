// SPDX-License-Identifier: BSD-3-Clause
//
// What wrappers of modules need to take one in any form: a holder, a
// shared_ptr, or an object that lives elsewhere.
#pragma once

#include <memory>

namespace lockstep {

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

} // namespace lockstep
