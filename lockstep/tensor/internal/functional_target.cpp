// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/tensor/internal/functional_target.h"

namespace lockstep {
namespace {

using torch::nn::FunctionalImpl;

// An explicit instantiation may name private members.
template <auto kMember>
struct FunctionOf {
  friend const FunctionalImpl::Function& private_function_of(
      const FunctionalImpl& module) {
    return module.*kMember;
  }
};
template struct FunctionOf<&FunctionalImpl::function_>;
const FunctionalImpl::Function& private_function_of(
    const FunctionalImpl& module);

} // namespace

const FunctionalImpl::Function& function_of(const FunctionalImpl& module) {
  return private_function_of(module);
}

} // namespace lockstep
