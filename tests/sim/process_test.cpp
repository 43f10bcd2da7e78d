// SPDX-License-Identifier: BSD-3-Clause
//
// How a process starts its devices; each test needs a process of its own.
#include <cstdio>
#include <iostream>
#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/base/error.h"
#include "lockstep/device/device_list.h"
#include "lockstep/device/sim_control.h"
#include "tests/sim/child.h"

namespace lockstep {
namespace test {
namespace {

void print_visible() {
  for (const c10::Device device : parse_devices("sim")) {
    std::cout << device.str() << "=" << sim_counters(device.index()).physical
              << " ";
  }
}

void start_late() {
  torch::ones({1}, torch::requires_grad()).mul(2).backward();
  start_sim({.devices = 2});
}

} // namespace

int run_child(std::string_view task) {
  try {
    task == "visible" ? print_visible() : start_late();
  } catch (const Exception& e) {
    std::cout << e.what();
  }
  return 0;
}

} // namespace test

namespace {

using ::testing::HasSubstr;

// Output of this program run with `environment` and `task`.
std::string run(const std::string& environment, const std::string& task) {
  const std::string command =
      "env LOCKSTEP_PLUGIN_PATH=" LOCKSTEP_BINARY_DIR "/bin " + environment +
      " \"$(readlink -f /proc/" + std::to_string(getpid()) +
      "/exe)\" --child " + task;
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(
      popen(command.c_str(), "r"), // NOLINT(cert-env33-c): our own words
      &pclose);
  std::string text;
  for (int c = std::fgetc(pipe.get()); c != EOF; c = std::fgetc(pipe.get())) {
    text.push_back(static_cast<char>(c));
  }
  return text;
}

TEST(SimProcess, VisibleDevicesAreRenumbered) {
  EXPECT_EQ(
      run("LOCKSTEP_SIM_DEVICES=4 LOCKSTEP_VISIBLE_DEVICES=1,3", "visible"),
      "sim:0=1 sim:1=3 ");
  EXPECT_EQ(run("LOCKSTEP_SIM_DEVICES=2", "visible"), "sim:0=0 sim:1=1 ");
  EXPECT_EQ(run("LOCKSTEP_VISIBLE_DEVICES=2", "visible"), "sim:0=2 ");
}

TEST(SimProcess, BadEnvironmentIsNamed) {
  EXPECT_THAT(
      run("LOCKSTEP_SIM_DEVICES=many", "visible"),
      HasSubstr("LOCKSTEP_SIM_DEVICES=many is not understood"));
  EXPECT_THAT(
      run("LOCKSTEP_VISIBLE_DEVICES=", "visible"),
      HasSubstr("expected 1 simulated device, this process has 0"));
}

TEST(SimProcess, LateStartIsAnError) {
  const std::string text = run("", "late");
  EXPECT_THAT(text, HasSubstr("after the process's first backward pass"));
  EXPECT_THAT(text, HasSubstr("Hint: call start_sim first"));
}

} // namespace
} // namespace lockstep
