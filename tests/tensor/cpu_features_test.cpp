// SPDX-License-Identifier: BSD-3-Clause
//
// What the processor is asked, against what the kernel of Linux says of it.
#include "lockstep/tensor/internal/cpu_features.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>

#include <ATen/Version.h>
#include <gmock/gmock.h>

#include "lockstep/base/strings.h"

namespace lockstep {
namespace {

// The fields of the first processor; empty on others than x86.
std::map<std::string, std::string> processor_fields() {
  std::map<std::string, std::string> fields;
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line) && !line.empty();) {
    const auto colon = line.find(':');
    const auto end = line.find_last_not_of("\t ", colon - 1);
    if (colon + 2 <= line.size()) {
      fields[line.substr(0, end + 1)] = line.substr(colon + 2);
    }
  }
  return fields;
}

TEST(CpuFeatures, AreThoseThatLinuxSees) {
  auto fields = processor_fields();
  if (!fields.contains("vendor_id")) {
    GTEST_SKIP() << "not an x86 processor";
  }
  EXPECT_EQ(cpu_model().vendor, fields["vendor_id"]);
  EXPECT_EQ(std::to_string(cpu_model().family), fields["cpu family"]);
  const auto flags = split(fields["flags"], ' ');
  const auto has = [&](const char* flag) {
    return std::ranges::find(flags, flag) != flags.end();
  };
  EXPECT_EQ(
      to_string(bfloat16_products()),
      has("amx_bf16")      ? "amx_bf16"
      : has("avx512_bf16") ? "avx512_bf16"
                           : "none");
  const VectorWidth widest = has("avx512bw") && has("avx512vl")
                                 ? VectorWidth::kAvx512
                             : has("avx2") && has("fma") ? VectorWidth::kAvx2
                                                         : VectorWidth::kPlain;
  EXPECT_EQ(widest_vectors(), widest);
}

// A process of its own: LibTorch asks once.
TEST(CpuFeatures, ObeyTheVariableOfLibTorch) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const VectorWidth widest = widest_vectors();
  const auto expect_at_most = [&](const char* name, VectorWidth most) {
    setenv("ATEN_CPU_CAPABILITY", name, 1);
    const auto code = static_cast<int>(std::min(widest, most));
    EXPECT_EXIT(
        std::_Exit(static_cast<int>(widest_vectors())),
        ::testing::ExitedWithCode(code),
        "");
  };
  expect_at_most("default", VectorWidth::kPlain);
  expect_at_most("avx2", VectorWidth::kAvx2);
  expect_at_most("avx512", VectorWidth::kAvx512);
  unsetenv("ATEN_CPU_CAPABILITY");
}

} // namespace
} // namespace lockstep
