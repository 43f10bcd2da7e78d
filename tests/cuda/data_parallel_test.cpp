// SPDX-License-Identifier: BSD-3-Clause
//
// DataParallel on one GPU: what the plain module computes there, bit for bit.
#include "lockstep/parallel/data_parallel.h"

#include "lockstep/device/autocast.h"
#include "lockstep/device/device_list.h"
#include "lockstep/parallel/device_table.h"
#include "tests/cuda/support.h"
#include "tests/parallel/nets.h"

namespace lockstep {
namespace {

using test::equal_bits;
using test::kGpu;
using test::kHost;
using test::thrown_by;
using ::testing::ElementsAre;
using ::testing::Gt;
using ::testing::HasSubstr;

class DataParallel_CUDA : public test::CudaTest {};
class DeviceList_CUDA : public test::CudaTest {};

/// What some steps leave behind.
struct Trained {
  at::Tensor output = {};
  std::vector<at::Tensor> gradients = {};
  std::vector<at::Tensor> state = {};
};

/// Three steps of descent; `forward` is the net or what wraps it.
template <class Forward>
Trained three_steps(
    torch::nn::Sequential& net,
    const at::Tensor& images,
    Forward&& forward) {
  const at::Tensor labels = torch::arange(images.size(0)).remainder(10);
  torch::optim::SGD sgd(
      net->parameters(),
      torch::optim::SGDOptions(0.1).momentum(0.9).weight_decay(1e-4));
  Trained found;
  for (int step = 0; step < 3; ++step) {
    sgd.zero_grad();
    found.output = forward(images);
    torch::cross_entropy_loss(found.output, labels.to(found.output.device()))
        .backward();
    sgd.step();
  }
  found.gradients = test::gradients_of(*net);
  found.state = test::copies(test::state_of(*net));
  return found;
}

void expect_equal(const Trained& a, const Trained& b) {
  EXPECT_TRUE(equal_bits(a.output.detach(), b.output.detach()));
  test::expect_same(a.gradients, b.gradients);
  test::expect_same(a.state, b.state);
}

torch::nn::Sequential seeded_net() {
  torch::manual_seed(7);
  return test::conv_net();
}

Trained plain(const at::Tensor& images) {
  auto net = seeded_net();
  net->to(kGpu);
  return three_steps(net, images, [&](const at::Tensor& x) {
    return net->forward(x.to(kGpu));
  });
}

Trained wrapped(const at::Tensor& images, DataParallelOptions options) {
  auto net = seeded_net();
  DataParallel model(net, std::move(options)); // moves it, as in Python
  test::expect_on(test::state_of(*net), kGpu);
  EXPECT_THAT(model->devices(), ElementsAre(kGpu));
  return three_steps(net, images, [&](const at::Tensor& x) {
    return model->forward(x);
  });
}

TEST_F(DataParallel_CUDA, EqualsThePlainModuleHoweverTheDeviceIsNamed) {
  const at::Tensor images = test::images(12);
  const Trained expected = plain(images);
  EXPECT_EQ(expected.output.device(), kGpu);
  expect_equal(wrapped(images, {.devices = "cuda:0"}), expected);
  expect_equal(wrapped(images, {.device_ids = {0}}), expected);
  expect_equal(wrapped(images, {.devices = {kGpu}}), expected);
  expect_equal(wrapped(images, {.devices = "cuda*1"}), expected);
  if (device_count("cuda") == 1) {
    expect_equal(wrapped(images, {.devices = "cuda"}), expected);
    expect_equal(wrapped(images, {}), expected); // all devices
  }
}

TEST_F(DataParallel_CUDA, TakesInputFromAnywhere) {
  const at::Tensor images = test::images(12);
  const Trained expected = plain(images);
  expect_equal(wrapped(images.to(kGpu), {.devices = "cuda:0"}), expected);
  expect_equal(wrapped(images.pin_memory(), {.devices = "cuda:0"}), expected);
  expect_equal(wrapped(images, {.devices = "cuda:0"}), expected);
}

TEST_F(DataParallel_CUDA, OptionsForSeveralDevicesDoNoHarm) {
  const at::Tensor images = test::images(12);
  const Trained expected = plain(images);
  expect_equal(wrapped(images, {.devices = "cuda:0", .nccl = true}), expected);
  expect_equal(
      wrapped(images, {.devices = "cuda:0", .trust_versions = true}),
      expected);
  expect_equal(
      wrapped(images, {.devices = "cuda:0", .connected_graph = true}),
      expected);
}

TEST_F(DataParallel_CUDA, InputGradientsReturnToTheHost) {
  auto net = seeded_net();
  DataParallel model(net, {.devices = "cuda:0"});
  for (const c10::Device& from : {kHost, kGpu}) {
    const at::Tensor x = test::images(6).to(from).requires_grad_();
    model->forward(x).sum().backward();
    EXPECT_EQ(x.grad().device(), from);
    EXPECT_EQ(x.grad().sizes(), x.sizes());
  }
}

TEST_F(DataParallel_CUDA, EvaluationNeedsNoGradients) {
  auto net = seeded_net();
  DataParallel model(net, {.devices = "cuda:0"});
  model->eval();
  const torch::NoGradGuard no_grad;
  const at::Tensor x = test::images(5);
  EXPECT_TRUE(equal_bits(model->forward(x), net->forward(x.to(kGpu))));
}

// Python's forward looks at every parameter and buffer, also with one device.
TEST_F(DataParallel_CUDA, AModuleThatWentAwayIsPyTorchsError) {
  auto net = seeded_net();
  DataParallel model(net, {.device_ids = {0}});
  net->to(kHost);
  EXPECT_THAT(
      thrown_by([&] { model->forward(test::images(4)); }).message,
      HasSubstr("module must have its parameters and buffers on device cuda:0 "
                "(device_ids[0]) but found one of them on device: cpu"));
  net->to(kGpu);
  EXPECT_NO_THROW(model->forward(test::images(4)));
}

TEST_F(DataParallel_CUDA, AbsentDevicesAreNamed) {
  const std::int64_t count = device_count("cuda");
  const auto wrap = [](DataParallelOptions options) {
    return thrown_by(
        [&] { const DataParallel model(test::mlp(), std::move(options)); });
  };
  const Error by_id = wrap({.device_ids = {count}});
  EXPECT_EQ(by_id.code, ErrorCode::kUnavailable);
  EXPECT_THAT(
      by_id.message,
      HasSubstr("cuda:" + std::to_string(count) + " is not present"));
  EXPECT_THAT(
      wrap({.devices = "cuda:77"}).message,
      HasSubstr("cuda:77 is not present; this process has"));
  EXPECT_EQ(wrap({.devices = "cuda*200"}).code, ErrorCode::kUnavailable);
}

TEST_F(DataParallel_CUDA, AutocastReachesTheModule) {
  auto net = seeded_net();
  DataParallel model(net, {.devices = "cuda:0"});
  at::Tensor out;
  {
    const Autocast autocast(at::kCUDA, at::kBFloat16);
    out = model->forward(test::images(8));
  }
  EXPECT_EQ(out.scalar_type(), at::kBFloat16);
  out.sum().backward();
  for (const at::Tensor& gradient : test::gradients_of(*net)) {
    EXPECT_EQ(gradient.scalar_type(), at::kFloat);
  }
}

TEST_F(DataParallel_CUDA, TheTableOfDevicesCountsTheMemoryOfTheGpu) {
  auto net = seeded_net();
  DataParallel model(net, {.devices = "cuda:0"});
  DeviceMeter meter(*model);
  model->forward(test::images(64)).sum().backward();
  meter.count_step();
  const DeviceTable table = meter.table();
  ASSERT_EQ(table.rows.size(), 1U);
  EXPECT_THAT(table.rows[0].parameters, Gt(0U));
  EXPECT_THAT(table.rows[0].gradients, Gt(0U));
  EXPECT_THAT(table.rows[0].peak, Gt(table.rows[0].parameters));
  EXPECT_THAT(to_text(table), HasSubstr("cuda:0"));
}

TEST_F(DeviceList_CUDA, NamesTheGpu) {
  const auto all = parse_devices("cuda");
  EXPECT_EQ(static_cast<std::int64_t>(all.size()), device_count("cuda"));
  EXPECT_EQ(all.front(), kGpu);
  EXPECT_EQ(to_string(parse_devices("cuda:0")), "cuda:0");
  EXPECT_THAT(
      DeviceSpec(c10::Device(c10::DeviceType::CUDA)).resolve(),
      ElementsAre(kGpu));
  EXPECT_EQ(accelerator_type(), "cuda");
  EXPECT_EQ(default_device().device, kGpu);
  EXPECT_EQ(default_device().warning, "");
  const DefaultDevice unused = default_device({.use_accelerator = false});
  EXPECT_EQ(unused.device, kHost);
  EXPECT_THAT(unused.warning, HasSubstr("you have a CUDA device"));
}

} // namespace
} // namespace lockstep
