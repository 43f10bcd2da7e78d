// SPDX-License-Identifier: BSD-3-Clause
//
// One process, eight simulated devices, started before any test: LibTorch makes
// its device threads in the process's first backward pass. Tests of the start
// run this program again.
#include <cstdlib>
#include <string_view>

#include <ATen/Parallel.h>
#include <gmock/gmock.h>

#include "lockstep/device/sim_control.h"
#include "tests/user/child.h"

int main(int argc, char** argv) {
  if (argc == 3 && std::string_view(argv[1]) == "--child") {
    return lockstep::test::run_child(argv[2]);
  }
  ::testing::InitGoogleMock(&argc, argv);
  // NOLINTBEGIN(concurrency-mt-unsafe): no other thread runs yet
  setenv("LOCKSTEP_PLUGIN_PATH", LOCKSTEP_BINARY_DIR "/bin", 1);
  unsetenv("LOCKSTEP_SIM_DEVICES");
  unsetenv("LOCKSTEP_VISIBLE_DEVICES");
  // NOLINTEND(concurrency-mt-unsafe)
  at::set_num_threads(1);
  lockstep::start_sim({.devices = 8});
  return RUN_ALL_TESTS();
}
