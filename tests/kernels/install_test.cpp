// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/kernels/install.h"

#include <cstdlib>

#include <ATen/core/dispatch/Dispatcher.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

namespace lockstep::kernels {
namespace {

bool is_replaced(const char* name = "aten::convolution_backward") {
  const auto operation = c10::Dispatcher::singleton().findSchema({name, ""});
  return operation && operation->hasKernelForDispatchKey(c10::DispatchKey::CPU);
}

bool are_norms_replaced() {
  return is_replaced("aten::_batch_norm_impl_index");
}

at::Tensor weight_gradient_of_a_layer() {
  torch::manual_seed(2);
  torch::nn::Conv2d layer(
      torch::nn::Conv2dOptions(64, 64, 3).padding(1).bias(false));
  layer->forward(torch::randn({32, 64, 1, 1})).square().sum().backward();
  return layer->weight.grad();
}

// From 2x2 maps to one pixel: the sums of a product have another order.
at::Tensor output_of_a_layer() {
  torch::manual_seed(3);
  torch::nn::Conv2d layer(
      torch::nn::Conv2dOptions(128, 128, 3).stride(2).padding(1));
  return layer->forward(torch::randn({64, 128, 2, 2})).detach();
}

// Status 0 if all is as documented, else the number of the first surprise.
int before_and_after() {
  if (is_replaced() || are_norms_replaced()) {
    return 1;
  }
  const at::Tensor stock = weight_gradient_of_a_layer();
  const at::Tensor stock_output = output_of_a_layer();
  install();
  install();
  if (!is_replaced() || are_norms_replaced()) {
    return 2;
  }
  // The first call of a shape may be a comparison, the second its result.
  for (int call = 0; call < 2; ++call) {
    if (!torch::equal(weight_gradient_of_a_layer(), stock)) {
      return 3;
    }
  }
  if (!torch::equal(output_of_a_layer(), stock_output)) {
    return 4;
  }
  install({.convolution = true});
  if (torch::equal(output_of_a_layer(), stock_output)) {
    return 5;
  }
  install();
  if (!torch::equal(output_of_a_layer(), stock_output)) {
    return 6;
  }
  install({.convolution = true, .batch_norm = true});
  if (!are_norms_replaced()) {
    return 7;
  }
  uninstall();
  if (is_replaced() || are_norms_replaced()) {
    return 8;
  }
  return torch::equal(output_of_a_layer(), stock_output) ? 0 : 9;
}

TEST(Install, ReplacesWhenAskedToAndTheLastCallDecides) {
  GTEST_FLAG_SET(death_test_style, "threadsafe"); // a process of its own
  EXPECT_EXIT(std::_Exit(before_and_after()), testing::ExitedWithCode(0), "");
}

} // namespace
} // namespace lockstep::kernels
