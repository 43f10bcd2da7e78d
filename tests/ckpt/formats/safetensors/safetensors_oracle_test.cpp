// SPDX-License-Identifier: BSD-3-Clause
//
// The safetensors package is the judge: what PyTorch saved as .pt comes out of
// our writer as the package writes it, byte by byte.
#include <gtest/gtest.h>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/load.h"
#include "tests/ckpt/oracle_support.h"
#include "tests/ckpt/value_fixture.h"
#include "tests/support/python.h"
#include "tests/support/scratch_dir.h"

namespace lockstep::ckpt {
namespace {

class SafetensorsPackageOracle : public testing::TestWithParam<bool> {};

TEST_P(SafetensorsPackageOracle, WritesTheSameBytes) {
  const test::ScratchDir dir;
  const auto cases =
      test::python_lines("ckpt_safetensors.py", {"make", dir.path()});
  ASSERT_GE(cases.size(), 6U);
  for (const std::string& name : cases) {
    const auto wanted = read_text(real_fs(), dir / (name + ".safetensors"));
    ASSERT_TRUE(wanted);
    for (const char* extension : {".pt", ".safetensors"}) {
      const auto file =
          load(dir / (name + extension), {.use_mmap = GetParam()});
      ASSERT_TRUE(file) << name << ": " << to_string(file.error());
      const Status status =
          save(dir / "ours", file->root, {.format = "safetensors"});
      ASSERT_TRUE(status) << name << ": " << to_string(status.error());
      const auto got = read_text(real_fs(), dir / "ours");
      ASSERT_TRUE(got);
      EXPECT_TRUE(*got == *wanted) << name << extension;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Both,
    SafetensorsPackageOracle,
    testing::Bool(),
    test::mode_name);

TEST(SafetensorsPackageOracle, ReadsTheVersionsOfModulesAndSoDoesPyTorch) {
  const test::ScratchDir dir;
  test::run_python("ckpt_safetensors.py", {"state", dir.path()});
  const auto state = load(dir / "state.pt");
  ASSERT_TRUE(state) << to_string(state.error());
  ASSERT_TRUE(
      save(dir / "state.safetensors", state->root, {.format = "safetensors"}));
  const auto converted = load(dir / "state.safetensors");
  ASSERT_TRUE(converted) << to_string(converted.error());
  ASSERT_TRUE(save(dir / "back.pt", converted->root));
  EXPECT_EQ(
      test::run_python("ckpt_safetensors.py", {"versions", dir.path()}),
      "True\nTrue\n");
}

TEST(SafetensorsPackageOracle, ReadsOurShards) {
  const test::ScratchDir dir;
  const Value tree = Value::dict(
      {{"a", tensor_of<float>(DType::kFloat32, {1, 2}, {1, 2})},
       {"b", tensor_of<std::int64_t>(DType::kInt64, {-1}, {})},
       {"c", tensor_of<std::uint16_t>(DType::kBFloat16, {0x3f80}, {1})}});
  ASSERT_TRUE(save(
      dir / "model.safetensors",
      tree,
      {.format = "safetensors", .shard_bytes = 9}));
  EXPECT_EQ(
      test::run_python(
          "ckpt_safetensors.py",
          {"read", dir / "model.safetensors.index.json"}),
      "a torch.float32 [1, 2] 0000803f00000040\n"
      "b torch.int64 [] ffffffffffffffff\n"
      "c torch.bfloat16 [1] 803f\n");
}

} // namespace
} // namespace lockstep::ckpt
