// SPDX-License-Identifier: BSD-3-Clause
//
// What a user's program sees besides values: errors and warnings.
#pragma once

#include <string>

#include <c10/util/Exception.h>

#include "lockstep/base/error.h"

namespace lockstep::test {

/// What `run` throws; "no error" if nothing.
template <class F>
Error error_of(F&& run) {
  try {
    run();
  } catch (const Exception& e) {
    return e.error();
  }
  return {.message = "no error"};
}

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
