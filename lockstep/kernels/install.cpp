// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/kernels/install.h"

#include "lockstep/base/strings.h"
#include "lockstep/kernels/internal/batch_norm.h"
#include "lockstep/kernels/internal/convolution.h"
#include "lockstep/tensor/internal/kernel_choice.h"
#include "lockstep/tensor/internal/replaced_operators.h"
#include "lockstep/tensor/norm_relu.h"

namespace lockstep::kernels {
namespace {

OperatorSwitch convolutions{kConvolutionOperators, &add_convolutions};
OperatorSwitch batch_norms{kBatchNormOperators, &add_batch_norms};

void choose(std::string_view choice) {
  if (choice == "torch") {
    uninstall();
  } else {
    const bool are_ours = choice == "lockstep";
    install({.convolution = are_ours, .batch_norm = are_ours});
  }
}

// A change of the rules by which ways are chosen, or of the order of a norm's
// sums, changes its part: the same program may compute other bits, and a run
// keeps what it began with.
constexpr OwnKernels kOwnKernels{
    .choose = &choose,
    .rules = "products 4, direct 3, winograd 2, norms 1"};

} // namespace

void install(const InstallOptions& options) {
  set_own_kernels(kOwnKernels);
  if (options.batch_norm) {
    batch_norms.turn_on();
  } else {
    batch_norms.turn_off();
  }
  set_norms_take_epilogues(options.batch_norm);
  const std::string found = signature_differences(kConvolutionOperators);
  if (!options.convolution && !found.empty()) {
    TORCH_WARN_ONCE(format(
        "LibTorch's own convolutions are used, in the same bits: {}",
        found));
    return;
  }
  use_products(options.convolution);
  convolutions.turn_on();
}

void uninstall() {
  batch_norms.turn_off();
  set_norms_take_epilogues(false);
  convolutions.turn_off();
}

} // namespace lockstep::kernels
