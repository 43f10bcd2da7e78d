// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/tensor/internal/replaced_operators.h"

#include <algorithm>
#include <array>
#include <utility>

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/neg.h>
#include <gmock/gmock.h>
#include <torch/csrc/jit/frontend/function_schema_parser.h>
#include <torch/torch.h>

#include "lockstep/base/error.h"

namespace lockstep {
namespace {

constexpr std::array kCpu{c10::DispatchKey::CPU};

// scripts/torch_matrix.sh asks every version that Lockstep supports.
TEST(OperatorSets, AreThoseOfThisLibTorch) {
  for (const OperatorSet* set : operator_sets()) {
    EXPECT_EQ(signature_differences(*set), "") << set->purpose;
  }
}

// Inference mode leaves out autograd's keys; else they come first.
TEST(OperatorSets, ReplaceWhatLibTorchComposesInInferenceModeToo) {
  for (const OperatorSet* set : operator_sets()) {
    for (const std::string_view signature : set->signatures) {
      const auto schema = torch::jit::parseSchema(std::string(signature));
      const auto found =
          c10::Dispatcher::singleton().findSchema(schema.operator_name());
      if (!found || !found->hasKernelForDispatchKey(
                        c10::DispatchKey::CompositeImplicitAutograd)) {
        continue;
      }
      for (const auto& [device, autograd] :
           {std::pair(c10::DispatchKey::CPU, c10::DispatchKey::AutogradCPU),
            std::pair(c10::DispatchKey::CUDA, c10::DispatchKey::AutogradCUDA),
            std::pair(
                c10::DispatchKey::PrivateUse1,
                c10::DispatchKey::AutogradPrivateUse1)}) {
        EXPECT_EQ(
            std::ranges::count(set->keys, device),
            std::ranges::count(set->keys, autograd))
            << signature << " for " << c10::toString(device);
      }
    }
  }
}

constexpr std::array<std::string_view, 3> kWrongSignatures{
    "aten::relu(Tensor self, float slope) -> Tensor",
    "aten::neg(Tensor self) -> Tensor",
    "aten::no_such(Tensor self) -> Tensor"};
constexpr OperatorSet kWrong{
    .purpose = "this test",
    .signatures = kWrongSignatures,
    .keys = kCpu};
constexpr std::string_view kDifferences =
    "aten::relu: expected 'aten::relu(Tensor self, float slope) -> Tensor', "
    "got 'aten::relu(Tensor self) -> Tensor'; aten::no_such: expected "
    "'aten::no_such(Tensor self) -> Tensor', got no such operator";

TEST(OperatorSets, NameWhatIsExpectedAndWhatThereIs) {
  EXPECT_EQ(signature_differences(kWrong), kDifferences);
}

// Else a kernel would take its arguments for others.
TEST(ReplacedOperators, RefuseOperatorsOfOtherSignatures) {
  bool was_asked_for_kernels = false;
  static bool* asked = &was_asked_for_kernels;
  try {
    const ReplacedOperators replaced(kWrong, [](torch::Library& /*library*/) {
      *asked = true;
    });
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Exception& exception) {
    EXPECT_EQ(exception.error().code, ErrorCode::kUnsupported);
    EXPECT_EQ(exception.error().detail, "E_OPERATORS");
    EXPECT_EQ(
        exception.error().message,
        "this LibTorch has other operators than this test needs: " +
            std::string(kDifferences));
  }
  EXPECT_FALSE(was_asked_for_kernels);
}

constexpr std::array<std::string_view, 1> kReluSignature{
    "aten::relu(Tensor self) -> Tensor"};
constexpr OperatorSet kRelu{
    .purpose = "this test",
    .signatures = kReluSignature,
    .keys = kCpu};

at::Tensor negated(const at::Tensor& x) {
  return at::neg(x);
}

void add_negated(torch::Library& library) {
  library.impl("relu", &negated);
}

std::string kernels_of_relu() {
  const auto relu = c10::Dispatcher::singleton().findSchema({"aten::relu", ""});
  return relu ? relu->dumpState() : "";
}

double relu_of_one() {
  return torch::relu(torch::ones({1})).item<double>();
}

TEST(ReplacedOperators, LeaveLibTorchsOwnBehind) {
  const std::string before = kernels_of_relu();
  {
    const ReplacedOperators replaced(kRelu, &add_negated);
    EXPECT_EQ(relu_of_one(), -1);
    EXPECT_NE(kernels_of_relu(), before);
  }
  EXPECT_EQ(relu_of_one(), 1);
  EXPECT_EQ(kernels_of_relu(), before);
}

TEST(OperatorSwitch, IsOnOrOffHoweverOftenItIsTurned) {
  const std::string before = kernels_of_relu();
  OperatorSwitch relu(kRelu, &add_negated);
  for (int turn = 0; turn < 2; ++turn) {
    relu.turn_on();
    relu.turn_on();
    EXPECT_EQ(relu_of_one(), -1);
    relu.turn_off();
    EXPECT_EQ(kernels_of_relu(), before);
    relu.turn_off();
    EXPECT_EQ(relu_of_one(), 1);
  }
}

} // namespace
} // namespace lockstep
