// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/device/device_list.h"

#include <gmock/gmock.h>

#include "lockstep/base/error.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;

Error error_of(std::string_view spec) {
  try {
    parse_devices(spec);
  } catch (const Exception& e) {
    return e.error();
  }
  return {.code = ErrorCode::kInternal, .message = "no error"};
}

TEST(ParseDevices, CpuIsOneDevice) {
  const auto devices = parse_devices("cpu");
  ASSERT_EQ(devices.size(), 1U);
  EXPECT_EQ(devices[0], c10::Device(c10::kCPU));
}

TEST(ParseDevices, StarGivesReplicas) {
  const auto devices = parse_devices("cpu*3");
  ASSERT_EQ(devices.size(), 3U);
  EXPECT_TRUE(devices[2].is_cpu());
}

TEST(ParseDevices, CountsOutsideTheRangeAreRefused) {
  for (const char* spec :
       {"cpu*0", "cpu*-1", "cpu*", "cpu*two", "cpu*100000"}) {
    const Error error = error_of(spec);
    EXPECT_EQ(error.code, ErrorCode::kInvalidArgument) << spec;
    EXPECT_THAT(error.message, HasSubstr("expected a count from 1 to 256"));
  }
}

TEST(ParseDevices, CpuHasNoNumbers) {
  const Error error = error_of("cpu:0,1");
  EXPECT_THAT(error.message, HasSubstr("the CPU is one device"));
  EXPECT_THAT(error.hint, HasSubstr("cpu*2"));
}

TEST(ParseDevices, UnknownTypeNamesTheNearest) {
  const Error error = error_of("cuds:0");
  EXPECT_EQ(error.code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(error.message, HasSubstr("unknown device type \"cuds\""));
  EXPECT_THAT(error.hint, HasSubstr("\"cuda\""));
  EXPECT_THAT(error_of("").hint, HasSubstr("cpu*2"));
}

TEST(ParseDevices, BadNumbersAreRefused) {
  EXPECT_THAT(error_of("cuda:1,,2").message, HasSubstr("got \"\""));
  EXPECT_THAT(error_of("cuda:x").message, HasSubstr("got \"x\""));
  EXPECT_THAT(
      error_of("cuda:1,1").message,
      HasSubstr("device 1 is named twice"));
}

TEST(ParseDevices, AbsentBackendSaysWhatToDo) {
  if (device_count("cuda") == 0) {
    const Error error = error_of("cuda");
    EXPECT_EQ(error.code, ErrorCode::kUnavailable);
    EXPECT_THAT(error.message, HasSubstr("no CUDA device is available"));
    EXPECT_THAT(error.hint, HasSubstr("cpu*2"));
  } else {
    const Error error = error_of("cuda:99");
    EXPECT_EQ(error.code, ErrorCode::kUnavailable);
    EXPECT_THAT(error.message, HasSubstr("cuda:99 is not present"));
  }
}

TEST(DeviceListText, IsReadBack) {
  EXPECT_EQ(to_string(parse_devices("cpu")), "cpu");
  EXPECT_EQ(to_string(parse_devices("cpu*4")), "cpu*4");
  const std::vector<c10::Device> cuda{
      c10::Device(c10::kCUDA, 1),
      c10::Device(c10::kCUDA, 3)};
  EXPECT_EQ(to_string(cuda), "cuda:1,3");
  EXPECT_EQ(to_string(std::span<const c10::Device>()), "");
}

} // namespace
} // namespace lockstep
