// SPDX-License-Identifier: BSD-3-Clause
//
// What a user's program sees besides values: errors and warnings.
#pragma once

#include <string>

#include <c10/util/Exception.h>

#include "tests/sim/support.h" // error_of

namespace lockstep::test {

/// Collects the texts of LibTorch's warnings while it lives.
class Warnings : public c10::WarningHandler {
 public:
  Warnings() : guard_(this) {}
  void process(const c10::Warning& warning) override {
    text += warning.msg() + "\n";
  }
  std::string text = {};

 private:
  c10::WarningUtils::WarningHandlerGuard guard_;
};

} // namespace lockstep::test
