// SPDX-License-Identifier: BSD-3-Clause
//
// Networks for segmentation on several devices and in several ranks: parts of a
// batch give the gradients of the batch.
#include "lockstep/models/segmentation.h"

#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/device/device_list.h"
#include "lockstep/distributed/distributed_data_parallel.h"
#include "lockstep/models/model.h"
#include "lockstep/parallel/data_parallel.h"
#include "tests/parallel/nets.h"
#include "tests/sim/support.h"
#include "tests/support/thread_ranks.h"

namespace lockstep {
namespace {

namespace nn = torch::nn;
using test::same_bits;

constexpr std::int64_t kMaskBatch = 4;
constexpr std::int64_t kMaskClasses = 3;

at::Tensor segmentation_images() {
  torch::manual_seed(21);
  return torch::randn({kMaskBatch, 3, 32, 24});
}

at::Tensor segmentation_masks() {
  torch::manual_seed(22);
  return torch::randint(kMaskClasses, {kMaskBatch, 32, 24}, torch::kLong);
}

// Without dropout; with norms that do not depend on the batch, if asked for.
void set_modes(nn::Module& net, bool are_norms_frozen) {
  for (const auto& module : net.modules()) {
    if (module->as<nn::Dropout>() != nullptr ||
        (are_norms_frozen && module->as<nn::BatchNorm2d>() != nullptr)) {
      module->eval();
    }
  }
}

std::shared_ptr<Model> segmentation_net(
    const std::string& name,
    bool are_norms_frozen) {
  torch::manual_seed(20);
  auto net = make_model(name, {.num_classes = kMaskClasses});
  set_modes(*net, are_norms_frozen);
  return net;
}

std::vector<at::Tensor> copies_on_cpu(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> copies;
  copies.reserve(tensors.size());
  for (const at::Tensor& tensor : tensors) {
    copies.push_back(tensor.cpu());
  }
  return copies;
}

// Of one step on the devices of `spec`; empty: without a wrapper.
std::vector<at::Tensor> gradients_on(
    const std::string& name,
    const std::string& spec,
    bool are_norms_frozen) {
  const auto net = segmentation_net(name, are_norms_frozen);
  const at::Tensor x = segmentation_images();
  const at::Tensor y = segmentation_masks();
  if (spec.empty()) {
    torch::cross_entropy_loss(net->forward(x), y).backward();
    return test::gradients_of(*net);
  }
  const c10::Device first = parse_devices(spec).front();
  net->to(first);
  DataParallel model(net, {.devices = spec});
  const at::Tensor scores = model->forward(x.to(first));
  EXPECT_EQ(
      scores.sizes(),
      (at::IntArrayRef{kMaskBatch, kMaskClasses, 32, 24}));
  torch::cross_entropy_loss(scores, y.to(first)).backward();
  return copies_on_cpu(test::gradients_of(*net));
}

// Relative to the largest number of each: other orders of sums.
void expect_close(
    const std::vector<at::Tensor>& found,
    const std::vector<at::Tensor>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto largest = expected[i].abs().max().item<double>();
    EXPECT_LE(
        (found[i] - expected[i]).abs().max().item<double>(),
        1e-3 * largest + 1e-7)
        << i;
  }
}

class SegmentationParts : public testing::TestWithParam<std::string> {};

TEST_P(SegmentationParts, OfABatchAreTheBatch) {
  const auto expected = gradients_on(GetParam(), "", true);
  for (const char* spec : {"cpu*2", "sim*2"}) {
    SCOPED_TRACE(spec);
    expect_close(gradients_on(GetParam(), spec, true), expected);
  }
}

TEST_P(SegmentationParts, OnDevicesAreTheCpusBitForBit) {
  const auto cpu = gradients_on(GetParam(), "cpu*2", false);
  const auto device = gradients_on(GetParam(), "sim*2", false);
  ASSERT_EQ(cpu.size(), device.size());
  for (std::size_t i = 0; i < cpu.size(); ++i) {
    EXPECT_TRUE(same_bits(cpu[i], device[i])) << i;
  }
}

TEST_P(SegmentationParts, OfRanksAreTheBatch) {
  const auto expected = gradients_on(GetParam(), "", true);
  const std::vector<std::shared_ptr<Model>> nets{
      segmentation_net(GetParam(), true),
      segmentation_net(GetParam(), true)};
  const auto images = segmentation_images().chunk(2);
  const auto masks = segmentation_masks().chunk(2);
  const auto errors =
      dist::run_thread_ranks(2, [&](const dist::ProcessGroup& group) {
        const auto rank = static_cast<std::size_t>(group.rank());
        const std::shared_ptr<Model>& net = nets.at(rank);
        DistributedDataParallel model(net, {.process_group = group});
        const at::Tensor x = images.at(rank);
        const at::Tensor y = masks.at(rank);
        torch::cross_entropy_loss(model->forward(x), y).backward();
        expect_close(test::gradients_of(*net), expected);
      });
  EXPECT_THAT(errors, testing::Each(testing::IsEmpty()));
}

INSTANTIATE_TEST_SUITE_P(
    Models,
    SegmentationParts,
    testing::Values("fcn_resnet18", "deeplabv3_resnet18", "unet_small"),
    [](const auto& one) { return one.param; });

/// Gives wrappers both outputs.
class BothHeads : public Composite<BothHeads> {
 public:
  explicit BothHeads(std::shared_ptr<FCN> fcn) : net(std::move(fcn)) {
    register_children();
  }
  std::tuple<at::Tensor, at::Tensor> forward(const at::Tensor& x) {
    return net->forward_with_aux(x);
  }
  template <class Visit>
  void each_child(Visit visit) {
    visit("net", net);
  }
  nn::ModuleHolder<FCN> net;
};

at::Tensor loss_of_both(
    const std::tuple<at::Tensor, at::Tensor>& outputs,
    const at::Tensor& masks) {
  const auto& [out, aux] = outputs;
  return torch::cross_entropy_loss(out, masks) +
         0.5 * torch::cross_entropy_loss(aux, masks);
}

TEST(SegmentationHeads, AreTrainedTogetherByReplicas) {
  const auto made = [] {
    torch::manual_seed(20);
    auto net = fcn_resnet18({.num_classes = kMaskClasses, .aux_loss = true});
    set_modes(*net, true);
    return net;
  };
  const auto alone = made();
  loss_of_both(
      alone->forward_with_aux(segmentation_images()),
      segmentation_masks())
      .backward();
  const auto net = made();
  DataParallel model(std::make_shared<BothHeads>(net), {.devices = "cpu*2"});
  loss_of_both(model->forward(segmentation_images()), segmentation_masks())
      .backward();
  expect_close(test::gradients_of(*net), test::gradients_of(*alone));
}

} // namespace
} // namespace lockstep
