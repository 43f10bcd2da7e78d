// SPDX-License-Identifier: BSD-3-Clause
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>

#include "lockstep/tensor/internal/replaced_operators.h"
#include "lockstep/tensor/modules.h"

namespace lockstep {
namespace {

// That of kStandInOperators.
constexpr c10::DispatchKey kStandInKey =
    c10::DispatchKey::TESTING_ONLY_GenericMode;

// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables)
thread_local const StandIns* stand_ins_here = nullptr;
using Tell = void (*)(const at::Tensor&);
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables)
thread_local Tell tell_here = nullptr;

void include_key() {
  c10::impl::tls_set_dispatch_key_included(
      kStandInKey,
      stand_ins_here != nullptr || tell_here != nullptr);
}

void take_own(at::Tensor& tensor) {
  const auto known = stand_ins_here->find(tensor.unsafeGetTensorImpl());
  if (known != stand_ins_here->end()) {
    tensor = known->second.own;
  }
}

void take_own(c10::IValue& value) {
  if (value.isTensor()) {
    at::Tensor tensor = value.toTensor();
    take_own(tensor);
    value = std::move(tensor);
  } else if (value.isTensorList()) {
    std::vector<at::Tensor> tensors = value.toTensorVector();
    for (at::Tensor& tensor : tensors) {
      take_own(tensor);
    }
    value = std::move(tensors);
  } else if (value.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> tensors;
    for (std::optional<at::Tensor> tensor : value.toOptionalTensorVector()) {
      if (tensor) {
        take_own(*tensor);
      }
      tensors.push_back(std::move(tensor));
    }
    value = std::move(tensors);
  }
}

void tell_results(std::size_t count, torch::jit::Stack& stack) {
  for (std::size_t i = 0; i < count; ++i) {
    const c10::IValue& value = torch::jit::peek(stack, i, count);
    if (value.isTensor()) {
      tell_here(value.toTensor());
    } else if (value.isTensorList()) {
      for (const at::Tensor& tensor : value.toTensorVector()) {
        tell_here(tensor);
      }
    }
  }
}

void call_with_stand_ins(
    const c10::OperatorHandle& operation,
    torch::jit::Stack* stack) {
  if (stand_ins_here != nullptr) {
    const std::size_t count = operation.schema().arguments().size();
    for (std::size_t i = 0; i < count; ++i) {
      take_own(torch::jit::peek(*stack, i, count));
    }
  }
  {
    const c10::impl::ExcludeDispatchKeyGuard below(kStandInKey);
    operation.callBoxed(stack);
  }
  if (tell_here != nullptr) {
    tell_results(operation.schema().returns().size(), *stack);
  }
}

} // namespace

void install_stand_ins() {
  static OperatorSwitch all_operators{
      kStandInOperators,
      [](torch::Library& library) {
        library.fallback(
            torch::CppFunction::makeFromBoxedFunction<&call_with_stand_ins>());
      }};
  all_operators.turn_on();
}

void watch_results(void (*tell)(const at::Tensor&)) {
  tell_here = tell;
  include_key();
}

StandInGuard::StandInGuard(const StandIns& stand_ins) : outer_(stand_ins_here) {
  stand_ins_here = stand_ins.empty() ? outer_ : &stand_ins;
  include_key();
}

StandInGuard::~StandInGuard() {
  stand_ins_here = outer_;
  include_key();
}

} // namespace lockstep
