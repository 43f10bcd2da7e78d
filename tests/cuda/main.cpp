// SPDX-License-Identifier: BSD-3-Clause
//
// `cuda_test --rank N FOLDER` is a rank of a job that a test has started.
#include <cstdlib>
#include <string>
#include <string_view>

#include <gmock/gmock.h>

#include "tests/cuda/rank.h"

int main(int argc, char** argv) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): no other thread runs yet
  setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", 1); // one order of sums
  if (argc == 4 && std::string_view(argv[1]) == "--rank") {
    return lockstep::test::run_rank(std::stoi(argv[2]), argv[3]);
  }
  ::testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}
