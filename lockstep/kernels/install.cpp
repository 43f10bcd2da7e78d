// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/kernels/install.h"

#include "lockstep/kernels/batch_norm.h"
#include "lockstep/kernels/convolution.h"
#include "lockstep/tensor/replace_kernels.h"

namespace lockstep::kernels {

void install(const InstallOptions& options) {
  static const bool are_added = [] {
    replace_kernels(&add_convolutions);
    return true;
  }();
  static_cast<void>(are_added);
  use_batch_norms(options.batch_norm);
  use_convolutions(
      options.convolution ? Convolutions::kProducts : Convolutions::kSameBits);
}

void uninstall() {
  use_batch_norms(false);
  use_convolutions(Convolutions::kTorch);
}

void install_choice(std::string_view choice) {
  if (choice == "torch") {
    uninstall();
  } else {
    const bool are_ours = choice == "lockstep";
    install({.convolution = are_ours, .batch_norm = are_ours});
  }
}

} // namespace lockstep::kernels
