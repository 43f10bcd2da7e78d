// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/tensor/internal/kernel_choice.h"

#include <atomic>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"

namespace lockstep {
namespace {

std::atomic<const OwnKernels*> kernels_of_program{nullptr};

} // namespace

const OwnKernels* own_kernels() {
  return kernels_of_program;
}

void set_own_kernels(const OwnKernels& kernels) {
  kernels_of_program = &kernels;
}

void choose_kernels(std::string_view choice) {
  if (const OwnKernels* const own = own_kernels(); own != nullptr) {
    own->choose(choice);
  } else if (choice == "lockstep") {
    raise(
        {.code = ErrorCode::kUnavailable,
         .op = "tensor.choose_kernels",
         .message = format(
             "kernels '{}': expected a program with kernels of Lockstep's, got "
             "one that has LibTorch's only",
             choice),
         .hint = "link lockstep::kernels and call lockstep::kernels::install() "
                 "first, or choose exact"});
  }
}

} // namespace lockstep
