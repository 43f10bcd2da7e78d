// SPDX-License-Identifier: BSD-3-Clause
//
// What the tests of batch normalisation share.
#pragma once

#include "lockstep/kernels/install.h"

namespace lockstep::kernels {

/// Ours while it lives.
class Ours {
 public:
  Ours() {
    install({.batch_norm = true});
  }
  Ours(const Ours&) = delete;
  Ours& operator=(const Ours&) = delete;
  ~Ours() {
    uninstall();
  }
};

/// What comes after a layer.
enum class After { kNothing, kRelu, kAddRelu };

} // namespace lockstep::kernels
