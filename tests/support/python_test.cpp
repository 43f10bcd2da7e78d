// SPDX-License-Identifier: BSD-3-Clause
#include "tests/support/python.h"

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include "tests/support/scoped_variable.h"

namespace lockstep::test {
namespace {

// Nobody reads the second request: its writer lives on, and says so.
TEST(RunPython, FailsTheTestIfPythonHasEnded) {
  const ScopedVariable python("LOCKSTEP_PYTHON", "/bin/true");
  for (int request = 0; request < 2; ++request) {
    EXPECT_NONFATAL_FAILURE(
        run_python("models_print.py"),
        "models_print.py was not run: the Python server has ended");
  }
}

} // namespace
} // namespace lockstep::test
