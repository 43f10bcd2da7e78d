// SPDX-License-Identifier: BSD-3-Clause
//
// A program that was started with another LibTorch than it was built with hears
// so from the first call into the library, and again from the next.
#include <string>

#include <ATen/Version.h>
#include <gmock/gmock.h>
#include <torch/nn/modules/linear.h>

#include "lockstep/base/error.h"
#include "lockstep/parallel/data_parallel.h"
#include "lockstep/tensor/checkpoint.h"
#include "lockstep/tensor/state_dict.h"

// Only this program's: the linker takes it before LibTorch's.
std::string at::show_config() {
  return "Build settings: TORCH_"
         "VERSION=9.9.0, USE_CUDA=0";
}

namespace lockstep {
namespace {

template <class F>
std::string text_of(F&& call) {
  try {
    call();
  } catch (const Exception& error) {
    EXPECT_EQ(error.error().code, ErrorCode::kUnavailable);
    return error.what();
  }
  return "";
}

TEST(TorchVersion, IsCheckedWhereProgramsEnter) {
  torch::nn::Linear net(2, 3);
  const auto says_so = testing::HasSubstr("got 9.9.0 (library)");
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(
        text_of([&] { DataParallel model(net, {.devices = "cpu*2"}); }),
        says_so);
    EXPECT_THAT(text_of([&] { state_dict(*net); }), says_so);
    EXPECT_THAT(text_of([&] { load_state_dict(*net, StateDict()); }), says_so);
    EXPECT_THAT(text_of([] { load("absent.pt"); }), says_so);
    EXPECT_THAT(text_of([] { save(ckpt::Value(), "no.pt"); }), says_so);
  }
}

} // namespace
} // namespace lockstep
