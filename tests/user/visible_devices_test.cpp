// SPDX-License-Identifier: BSD-3-Clause
//
// LOCKSTEP_VISIBLE_DEVICES takes what CUDA_VISIBLE_DEVICES takes in PyTorch.
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <iostream>
#include <map>
#include <string>
#include <utility>

#include <gmock/gmock.h>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/device/device_list.h"
#include "lockstep/device/sim_control.h"
#include "tests/sim/child.h"
#include "tests/support/python.h"
#include "tests/support/shell.h"
#include "tests/user/support.h"

namespace lockstep {
namespace test {
namespace {

void list_devices() {
  for (const c10::Device device : parse_devices("sim")) {
    std::cout << device.str() << "=" << sim_counters(device.index()).physical
              << " ";
  }
}

void ask_for_second() {
  start_sim();
  parse_devices("sim:1");
}

void change_late() {
  Warnings warnings;
  start_sim({.devices = 2});
  parse_devices("sim");
  std::cout << "[" << warnings.text << "]";
  // NOLINTNEXTLINE(concurrency-mt-unsafe): what a script may do
  setenv("LOCKSTEP_VISIBLE_DEVICES", "2", 1);
  std::cout << parse_devices("sim").size() << " devices ";
  parse_devices("sim:0");
  std::cout << warnings.text;
}

constexpr std::array kTasks{
    std::pair{std::string_view("list"), &list_devices},
    std::pair{std::string_view("second"), &ask_for_second},
    std::pair{std::string_view("late"), &change_late}};

} // namespace

int run_child(std::string_view task) {
  for (const auto& [name, run] : kTasks) {
    try {
      if (name == task) {
        run();
      }
    } catch (const Exception& e) {
      std::cout << e.what();
    }
  }
  return 0;
}

} // namespace test

namespace {

using ::testing::HasSubstr;

// What this program prints when it is run with `environment` and `task`.
std::string of_child(const std::string& environment, const std::string& task) {
  return test::run_shell(
             "env LOCKSTEP_PLUGIN_PATH=" LOCKSTEP_BINARY_DIR "/bin " +
             environment + " /proc/" + std::to_string(getpid()) +
             "/exe --child " + task)
      .out;
}

std::string bytes_of(const std::string& hex) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  }
  return bytes;
}

TEST(VisibleDevices, AreReadAsPyTorchReadsThem) {
  std::map<std::string, std::string> different;
  std::size_t lines = 0;
  for (const std::string& line : test::python_lines("visible_devices.py")) {
    const std::size_t colon = line.find(':');
    const std::string text = bytes_of(line.substr(0, colon));
    std::string numbers;
    for (const std::int32_t number : visible_sim_devices(text, 64)) {
      numbers += (numbers.empty() ? "" : " ") + std::to_string(number);
    }
    ++lines;
    if (numbers != line.substr(colon + 1)) {
      different[text] = numbers + ", Python: " + line.substr(colon + 1);
    }
  }
  EXPECT_THAT(different, ::testing::IsEmpty());
  EXPECT_GT(lines, 4000U);
}

TEST(VisibleDevices, AreRenumberedInAProgram) {
  const std::string four = "LOCKSTEP_SIM_DEVICES=4 LOCKSTEP_VISIBLE_DEVICES=";
  EXPECT_EQ(of_child(four + "'1, 3'", "list"), "sim:0=1 sim:1=3 ");
  EXPECT_EQ(of_child(four + "3,,2", "list"), "sim:0=3 ");
  EXPECT_EQ(of_child(four + "1gpu,2", "list"), "sim:0=1 sim:1=2 ");
  EXPECT_EQ(of_child(four + "2,9,1", "list"), "sim:0=2 ");
  // As many as are named, where nothing says how many exist.
  EXPECT_EQ(
      of_child("LOCKSTEP_VISIBLE_DEVICES='5, 2'", "list"),
      "sim:0=5 sim:1=2 ");
}

TEST(VisibleDevices, AShortListIsExplained) {
  const std::string text = of_child(
      "LOCKSTEP_SIM_DEVICES=4 LOCKSTEP_VISIBLE_DEVICES=1,,2",
      "second");
  EXPECT_THAT(text, HasSubstr("sim:1 is not present"));
  EXPECT_THAT(
      text,
      HasSubstr("LOCKSTEP_VISIBLE_DEVICES was \"1,,2\" at the start and left 1 "
                "of 4 devices"));
  for (const char* nothing : {"", "a,1", "1,1", "GPU-aa"}) {
    EXPECT_THAT(
        of_child(
            "LOCKSTEP_SIM_DEVICES=4 LOCKSTEP_VISIBLE_DEVICES='" +
                std::string(nothing) + "'",
            "list"),
        HasSubstr(format(
            "LOCKSTEP_VISIBLE_DEVICES was \"{}\" at the start and left 0 of 4 "
            "devices",
            nothing)));
  }
}

TEST(VisibleDevices, AChangeAfterTheStartIsWarnedOfOnce) {
  EXPECT_EQ(
      of_child("LOCKSTEP_VISIBLE_DEVICES=1,3", "late"),
      "[]2 devices LOCKSTEP_VISIBLE_DEVICES is \"2\" now and was \"1,3\" when "
      "the simulated devices started; it is read only then\n");
  EXPECT_THAT(
      of_child("", "late"),
      HasSubstr("is \"2\" now and was not set when"));
}

} // namespace
} // namespace lockstep
