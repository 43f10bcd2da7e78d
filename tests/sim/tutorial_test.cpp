// SPDX-License-Identifier: BSD-3-Clause
//
// What Python's data-parallel tutorials say about devices, with their device
// numbers.
#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/base/error.h"
#include "lockstep/device/device_list.h"
#include "lockstep/optim/optimizers.h"
#include "lockstep/parallel/data_parallel.h"
#include "tests/sim/support.h"

namespace lockstep {
namespace {

namespace nn = torch::nn;
using test::same_bits;
using test::sim;

TEST(SimTutorial, WrapBeforeOrAfterTheMove) {
  torch::manual_seed(0);
  nn::Linear net(5, 2);
  const auto x = torch::randn({30, 5});
  const auto expected = net->forward(x);
  net->to(sim(2));
  DataParallel moved(net, {.device_ids = {2, 4, 5}});
  EXPECT_TRUE(torch::allclose(moved->forward(x).cpu(), expected));
  DataParallel wrapped(net, {.device_ids = {1, 3}});
  wrapped->to(sim(1));
  EXPECT_TRUE(torch::allclose(wrapped->forward(x).cpu(), expected));
}

TEST(SimTutorial, TheControllerCollectsResultsAndGradients) {
  nn::Linear net(5, 2);
  net->to(sim(1));
  DataParallel model(net, {.device_ids = {1, 3}});
  const auto output = model->forward(torch::ones({10, 5}));
  EXPECT_EQ(output.device(), sim(1));
  EXPECT_EQ(output.sizes(), (at::IntArrayRef{10, 2}));
  output.sum().backward();
  EXPECT_EQ(net->weight.grad().device(), sim(1));
  EXPECT_EQ(net->weight.grad()[0][0].item<float>(), 10.0F);
}

TEST(SimTutorial, DataOnAnyDeviceGivesTheSameOutput) {
  nn::Linear net(5, 2);
  net->to(sim(1));
  DataParallel model(net, {.device_ids = {1, 3}});
  const auto x = torch::randn({30, 5});
  const auto expected = model->forward(x);
  for (const int device : {0, 1, 3, 7}) {
    EXPECT_TRUE(same_bits(model->forward(x.to(sim(device))), expected))
        << device;
  }
}

TEST(SimTutorial, AModuleOnADeviceThatIsNotListedIsNamed) {
  nn::Linear net(5, 2);
  net->to(sim(0)); // what `.cuda()` without a number means
  DataParallel model(net, {.device_ids = {1, 3}});
  try {
    model->forward(torch::ones({4, 5}));
    FAIL() << "no error";
  } catch (const Exception& e) {
    EXPECT_EQ(
        e.error().message,
        "module must have its parameters and buffers on device sim:1 "
        "(device_ids[0]) but found one of them on device: sim:0");
    EXPECT_EQ(
        e.error().hint,
        "weight is there; call module->to(torch::Device(\"sim:1\"))");
  }
}

// Losses of three steps with a tutorial's settings.
std::vector<double> losses(const char* devices) {
  torch::manual_seed(3);
  nn::Linear net(5, 2);
  DataParallel model(net, {.devices = devices});
  model->to(model->devices().front());
  const auto x = torch::randn({31, 5});
  const auto y = torch::randn({31, 2}).to(model->devices().front());
  const DataParallelOptimizer optimizer(std::make_shared<SGD>(
      model->parameters(),
      SGDOptions{.lr = 1e-2, .momentum = 0.9, .weight_decay = 1e-3}));
  std::vector<double> values;
  for (int step = 0; step < 3; ++step) {
    optimizer->module()->zero_grad();
    const auto loss = nn::functional::mse_loss(model->forward(x), y);
    loss.backward();
    optimizer->module()->step();
    values.push_back(loss.item<double>());
  }
  return values;
}

TEST(SimTutorial, TrainingOnThreeDevicesEqualsOne) {
  const auto one = losses("sim:2");
  const auto three = losses("sim:2,4,5");
  for (std::size_t step = 0; step < one.size(); ++step) {
    EXPECT_NEAR(three[step], one[step], 1e-6); // sums in another order
  }
  EXPECT_LT(one[2], one[0]);
}

TEST(SimTutorial, TheAcceleratorIsTheDefaultDevice) {
  EXPECT_EQ(accelerator_type(), "sim");
  EXPECT_EQ(default_device().device, sim(0));
  EXPECT_EQ(default_device().warning, "");
  const DefaultDevice cpu = default_device({.use_accelerator = false});
  EXPECT_TRUE(cpu.device.is_cpu());
  EXPECT_EQ(
      cpu.warning,
      "WARNING: It looks like you have a SIM device, but aren't using SIM.\n"
      "Run with --sim for optimal training speed.");
}

TEST(SimTutorial, TheDefaultDtypeHoldsOnDevicesToo) {
  const auto before = c10::get_default_dtype();
  c10::set_default_dtype(caffe2::TypeMeta::Make<double>());
  const auto made = torch::ones({2}, sim(1));
  c10::set_default_dtype(before);
  EXPECT_EQ(made.scalar_type(), torch::kDouble);
  EXPECT_EQ(torch::ones({2}, sim(1)).scalar_type(), torch::kFloat);
}

} // namespace
} // namespace lockstep
