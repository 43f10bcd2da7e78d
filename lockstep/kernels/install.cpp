// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/kernels/install.h"

#include "lockstep/kernels/weight_gradient.h"
#include "lockstep/tensor/cpu_kernels.h"

namespace lockstep::kernels {

void install() {
  static const bool is_done = [] {
    replace_cpu_kernels(&add_weight_gradient);
    return true;
  }();
  static_cast<void>(is_done);
}

} // namespace lockstep::kernels
