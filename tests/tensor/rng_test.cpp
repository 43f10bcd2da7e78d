// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/tensor/rng.h"

#include <fstream>
#include <sstream>

#include <gmock/gmock.h>

#include "tests/support/python.h"
#include "tests/support/scratch_dir.h"
#include "tests/tensor/modules.h"

namespace lockstep {
namespace {

std::string draws() {
  std::ostringstream out;
  for (int i = 0; i < 3; ++i) {
    out << torch::randint(0, std::int64_t{1} << 62, {}, torch::kLong)
               .item<std::int64_t>()
        << "\n";
  }
  return out.str();
}

TEST(RngState, IsExchangedWithPythonBothWays) {
  const test::ScratchDir dir;
  torch::manual_seed(7);
  (void)torch::randn({5}); // leaves a spare normal number behind
  const at::Tensor state = get_rng_state();
  EXPECT_EQ(state.sizes(), (std::vector<std::int64_t>{5056}));
  {
    std::ofstream file(dir / "state", std::ios::binary);
    file.write(static_cast<const char*>(state.const_data_ptr()), state.numel());
  }
  const std::string ours = draws();
  EXPECT_EQ(
      ours,
      test::run_python("tensor_rng.py", {dir / "state", dir / "after"}));
  // Python wrote the state after its draws.
  std::ifstream file(dir / "after", std::ios::binary);
  at::Tensor after = torch::empty({5056}, torch::kByte);
  file.read(static_cast<char*>(after.mutable_data_ptr()), after.numel());
  EXPECT_TRUE(torch::equal(after, get_rng_state()));
  set_rng_state(after);
  const std::string next = draws();
  EXPECT_EQ(
      next,
      test::run_python("tensor_rng.py", {dir / "after", dir / "more"}));
}

TEST(RngState, RefusesAnotherShapeOrType) {
  const Error error =
      test::error_of([] { set_rng_state(torch::zeros({16}, torch::kByte)); });
  EXPECT_EQ(error.code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(
      error.message,
      "expected torch.Size([5056]) of uint8, got torch.Size([16]) of Byte");
  EXPECT_EQ(
      test::error_of([] { set_rng_state(torch::zeros({5056})); }).code,
      ErrorCode::kInvalidArgument);
}

TEST(RngStateGuard, PutsTheGeneratorBack) {
  torch::manual_seed(1);
  const at::Tensor before = get_rng_state();
  {
    const RngStateGuard guard;
    (void)torch::randn({3});
    EXPECT_FALSE(torch::equal(get_rng_state(), before));
  }
  EXPECT_TRUE(torch::equal(get_rng_state(), before));
}

} // namespace
} // namespace lockstep
