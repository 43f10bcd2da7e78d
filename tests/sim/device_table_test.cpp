// SPDX-License-Identifier: BSD-3-Clause
//
// What the device table counts, and the two costs of data parallelism that it
// shows: memory on the first device, copies in every step.
#include "lockstep/parallel/device_table.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "lockstep/device/sim_control.h"
#include "lockstep/parallel/replica_group.h"
#include "tests/sim/support.h"

namespace lockstep {
namespace {

namespace nn = torch::nn;
using parallel::Cargo;
using test::sim;
using testing::HasSubstr;

parallel::Moved moved(const DeviceTable& table, std::size_t row, Cargo cargo) {
  return table.rows.at(row).moved.at(static_cast<std::size_t>(cargo));
}

constexpr std::int64_t kRows = 64;
constexpr std::int64_t kClasses = 5000;
constexpr std::uint64_t kFloat = 4;

TEST(DeviceTable, CountsWhatEachDeviceHoldsAndMoves) {
  nn::Linear net(100, kClasses);
  net->to(sim(0));
  DataParallel model(net, {.device_ids = {0, 1}});
  const auto x = torch::randn({kRows, 100}, sim(0));
  DeviceMeter meter(*model);
  for (int step = 0; step < 2; ++step) {
    model->forward(x).sum().backward();
    meter.count_step();
  }
  const DeviceTable table = meter.table();
  const std::uint64_t parameters = (100 + 1) * kClasses * kFloat;
  ASSERT_EQ(table.rows.size(), 2U);
  EXPECT_EQ(table.steps, 2U);
  for (const DeviceRow& row : table.rows) {
    EXPECT_EQ(row.parameters, parameters);
    EXPECT_GE(row.peak, row.parameters);
  }
  EXPECT_EQ(table.rows[0].gradients, parameters);
  EXPECT_EQ(table.rows[1].gradients, 0U);
  const std::uint64_t shard = kRows / 2 * 100 * kFloat;
  EXPECT_EQ(moved(table, 1, Cargo::kInputs).bytes, shard);
  EXPECT_EQ(
      moved(table, 1, Cargo::kOutputs).bytes,
      kRows / 2 * kClasses * kFloat);
  EXPECT_EQ(moved(table, 1, Cargo::kGradients).bytes, parameters);
  EXPECT_EQ(moved(table, 0, Cargo::kInputs).copies, 0U);
  EXPECT_GT(table.imbalance, 0);
  const std::string text = to_text(table);
  EXPECT_THAT(text, HasSubstr("sim:1"));
  EXPECT_THAT(text, HasSubstr("imbalance"));
}

// The devices' own counters see no copy beside those of the table.
TEST(DeviceTable, MissesNoCopy) {
  nn::Sequential net(nn::Linear(100, 10), nn::BatchNorm1d(10));
  net->to(sim(0));
  DataParallel model(net, {.device_ids = {0, 1}});
  const auto x = torch::randn({kRows, 100}, sim(0)).requires_grad_();
  const auto weights = torch::randn({kRows, 10}, sim(0));
  DeviceMeter meter(*model);
  reset_sim_counters(1);
  (model->forward(x) * weights).sum().backward();
  const SimCounters counters = sim_counters(1);
  const DeviceTable table = meter.table();
  parallel::Moved sum;
  for (const parallel::Moved& of_cargo : table.rows[1].moved) {
    EXPECT_GT(of_cargo.bytes, 0U);
    sum.copies += of_cargo.copies;
    sum.bytes += of_cargo.bytes;
  }
  EXPECT_EQ(sum.bytes, counters.bytes_in + counters.bytes_out);
  EXPECT_EQ(sum.copies, counters.copies_in + counters.copies_out);
  EXPECT_EQ(
      moved(table, 1, Cargo::kBatchGradients).bytes,
      kRows / 2 * (100 + 10) * kFloat);
}

// Sent when the replicas are first used and after a change, not in each step.
TEST(DeviceTable, ParametersTravelInEachPass) {
  nn::Linear net(10, 10);
  net->to(sim(0));
  DataParallel model(net, {.device_ids = {0, 1}});
  const auto x = torch::randn({4, 10}, sim(0));
  DeviceMeter meter(*model);
  model->forward(x);
  model->forward(x);
  const parallel::Moved all = moved(meter.table(), 1, Cargo::kParameters);
  EXPECT_EQ(all.bytes, 2 * 440U);
  EXPECT_EQ(all.copies, 2U); // weight and bias together
}

TEST(DeviceTable, ParametersTravelOncePerChangeIfVersionsCanBeTrusted) {
  nn::Linear net(10, 10);
  net->to(sim(0));
  DataParallel model(net, {.device_ids = {0, 1}, .trust_versions = true});
  const auto x = torch::randn({4, 10}, sim(0));
  model->forward(x);
  DeviceMeter meter(*model);
  model->forward(x);
  EXPECT_EQ(moved(meter.table(), 1, Cargo::kParameters).bytes, 0U);
  {
    const torch::NoGradGuard no_grad;
    net->weight.mul_(2);
  }
  model->forward(x);
  EXPECT_EQ(moved(meter.table(), 1, Cargo::kParameters).bytes, 400U);
  DataParallel on_cpu(nn::Linear(10, 10), {.devices = "cpu*2"});
  DeviceMeter cpu_meter(*on_cpu);
  on_cpu->forward(torch::randn({4, 10})).sum().backward();
  const DeviceTable table = cpu_meter.table();
  for (std::size_t r = 0; r < 2; ++r) {
    for (const parallel::Moved& of_cargo : table.rows[r].moved) {
      EXPECT_EQ(of_cargo.bytes, 0U);
    }
  }
  EXPECT_EQ(table.rows[0].parameters, 440U);
  EXPECT_EQ(table.rows[1].parameters, 0U);
}

struct LossInsideImpl : nn::Cloneable<LossInsideImpl> {
  LossInsideImpl() {
    reset();
  }
  void reset() override {
    fc = register_module("fc", nn::Linear(100, kClasses));
  }
  at::Tensor forward(const at::Tensor& x) {
    return fc->forward(x);
  }
  at::Tensor forward(const at::Tensor& x, const at::Tensor& targets) {
    return nn::functional::cross_entropy(fc->forward(x), targets);
  }
  nn::Linear fc = nullptr;
};
TORCH_MODULE(LossInside);

// One number per device comes back instead of all outputs, and the loss's
// memory is spread: the first device's surplus shrinks.
TEST(DeviceTable, LossInsideForwardRemovesTheImbalance) {
  LossInside net;
  net->to(sim(0));
  DataParallel model(net, {.device_ids = {0, 1}});
  const auto x = torch::randn({kRows, 100});
  const auto targets = torch::randint(kClasses, {kRows}, torch::kLong);
  // Without backward, whose devices run in threads of their own: which of their
  // peaks coincide, and when they let go of their last tensors, is chance.
  const auto surplus = [&](auto&& loss_of) {
    loss_of(); // sends the parameters
    DeviceMeter meter(*model);
    const at::Tensor loss = loss_of();
    meter.count_step();
    const DeviceTable table = meter.table();
    return std::pair(
        table.rows[0].activations - table.rows[1].activations,
        moved(table, 1, Cargo::kOutputs).bytes);
  };
  const auto outside = surplus([&] {
    return nn::functional::cross_entropy(model->forward(x), targets.to(sim(0)));
  });
  const auto inside =
      surplus([&] { return model->forward(x, targets).mean(); });
  EXPECT_EQ(outside.second, kRows / 2 * kClasses * kFloat);
  EXPECT_EQ(inside.second, kFloat);
  EXPECT_LT(inside.first, outside.first / 2);
}

} // namespace
} // namespace lockstep
