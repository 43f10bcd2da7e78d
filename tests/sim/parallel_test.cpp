// SPDX-License-Identifier: BSD-3-Clause
//
// DataParallel over simulated devices: what a CPU replica cannot show, since
// here parameters, inputs and gradients really live in different places.
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/base/error.h"
#include "lockstep/device/device_list.h"
#include "lockstep/device/sim_control.h"
#include "lockstep/parallel/data_parallel.h"
#include "lockstep/parallel/replica_group.h"
#include "tests/parallel/nets.h"
#include "tests/sim/support.h"

namespace lockstep {
namespace {

namespace nn = torch::nn;
using test::same_bits;
using test::sim;
using ::testing::HasSubstr;

template <class F>
std::string message_of(F&& run) {
  try {
    run();
  } catch (const std::exception& e) {
    return e.what();
  }
  return "";
}

void expect_same(
    const std::vector<torch::Tensor>& a,
    const std::vector<torch::Tensor>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_TRUE(same_bits(a[i], b[i])) << i;
  }
}

struct Step {
  torch::Tensor output;
  std::vector<torch::Tensor> state = {};
  std::vector<torch::Tensor> gradients = {};
};

// Two steps of plain descent over the devices of `spec`.
Step two_steps(const std::string& spec) {
  torch::manual_seed(4);
  auto net = test::conv_net();
  const auto x = test::images(10);
  const auto y = test::labels(10);
  const auto devices = parse_devices(spec);
  net->to(devices.front());
  DataParallel model(net, {.devices = spec});
  Step step;
  for (int i = 0; i < 2; ++i) {
    net->zero_grad();
    step.output = model->forward(x);
    torch::cross_entropy_loss(step.output, y.to(devices.front())).backward();
    const torch::NoGradGuard no_grad;
    for (auto& parameter : net->parameters()) {
      parameter.sub_(parameter.grad(), 0.1);
    }
  }
  step.state = test::state_of(*net);
  step.gradients = test::gradients_of(*net);
  return step;
}

TEST(SimDataParallel, EqualsCpuReplicasBitForBit) {
  for (const int n : {2, 3, 4, 8}) {
    const std::string count = std::to_string(n);
    const Step cpu = two_steps("cpu*" + count);
    const Step device = two_steps("sim*" + count);
    EXPECT_TRUE(same_bits(cpu.output.detach(), device.output.detach())) << n;
    expect_same(cpu.gradients, device.gradients);
    expect_same(cpu.state, device.state);
    EXPECT_EQ(device.output.device(), sim(0));
    EXPECT_EQ(device.gradients.front().device(), sim(0));
  }
}

TEST(SimDataParallel, AnyDevicesInAnyOrder) {
  const Step expected = two_steps("cpu*3");
  const Step other = two_steps("sim:5,2,4");
  EXPECT_EQ(other.output.device(), sim(5));
  expect_same(expected.gradients, other.gradients);
}

// Where each replica's parameters and shard are, as tutorials print them.
struct WhereImpl : nn::Cloneable<WhereImpl> {
  WhereImpl() {
    reset();
  }
  void reset() override {
    weight = register_parameter("weight", torch::ones({1}));
  }
  torch::Tensor forward(const torch::Tensor& x) {
    EXPECT_EQ(x.device(), weight.device());
    EXPECT_EQ(
        c10::impl::VirtualGuardImpl(torch::kPrivateUse1).getDevice(),
        x.device());
    return x * 0 + static_cast<double>(x.device().index()) * weight;
  }
  torch::Tensor weight;
};
TORCH_MODULE(Where);

TEST(SimDataParallel, ReplicasRunOnTheirDevices) {
  Where net;
  net->to(sim(1));
  DataParallel model(net, {.devices = "sim:1,3", .output_device = "sim:6"});
  for (const auto& from : {torch::Device("cpu"), sim(1), sim(3), sim(7)}) {
    const auto out = model->forward(torch::zeros({4}, from));
    EXPECT_EQ(out.device(), sim(6));
    EXPECT_TRUE(
        same_bits(out.detach(), torch::tensor({1.0F, 1.0F, 3.0F, 3.0F})));
    net->zero_grad();
    out.sum().backward();
    EXPECT_EQ(net->weight.grad().device(), sim(1));
    EXPECT_EQ(net->weight.grad().item<float>(), 8.0F);
  }
}

TEST(SimDataParallel, InputGradientsReturnToTheInput) {
  Where net;
  net->to(sim(0));
  DataParallel model(net, {.devices = "sim*3"});
  for (const auto& from : {torch::Device("cpu"), sim(2)}) {
    auto x = torch::ones({5}, torch::TensorOptions(from).requires_grad(true));
    model->forward(x).sum().backward();
    EXPECT_EQ(x.grad().device(), from);
    EXPECT_EQ(x.grad().numel(), 5);
  }
}

TEST(SimDataParallel, ModuleElsewhereIsPyTorchsError) {
  Where net;
  net->to(sim(0));
  DataParallel model(net, {.devices = "sim:1,0"});
  EXPECT_THAT(
      message_of([&] { model->forward(torch::ones({4})); }),
      HasSubstr("module must have its parameters and buffers on device sim:1 "
                "(device_ids[0]) but found one of them on device: sim:0"));
  net->to(sim(1));
  EXPECT_NO_THROW(model->forward(torch::ones({4})));
}

// PyTorch looks there in each pass, though it moved the module at the start.
TEST(SimDataParallel, ModuleThatLeftItsOneDeviceIsPyTorchsError) {
  Where net;
  DataParallel model(net, {.devices = "sim:2"});
  net->to(torch::kCPU);
  EXPECT_THAT(
      message_of([&] { model->forward(torch::ones({4})); }),
      HasSubstr("module must have its parameters and buffers on device sim:2 "
                "(device_ids[0]) but found one of them on device: cpu"));
  net->to(sim(2));
  EXPECT_NO_THROW(model->forward(torch::ones({4})));
}

TEST(SimDataParallel, OneDeviceMovesModuleAndInput) {
  Where net;
  DataParallel model(net, {.device_ids = {2}});
  EXPECT_EQ(net->weight.device(), sim(2));
  const auto out = model->forward(torch::ones({3}));
  EXPECT_EQ(out.device(), sim(2));
  EXPECT_EQ(out[2].item<float>(), 2.0F);
}

struct StreamIdImpl : nn::Cloneable<StreamIdImpl> {
  void reset() override {}
  at::Tensor forward(const at::Tensor& x) {
    const c10::impl::VirtualGuardImpl impl(torch::kPrivateUse1);
    return x + static_cast<double>(impl.getStream(x.device()).id());
  }
};
TORCH_MODULE(StreamId);

TEST(SimDataParallel, ReplicasComputeInTheCallersStreams) {
  const c10::impl::VirtualGuardImpl impl(torch::kPrivateUse1);
  const auto side = impl.getStreamFromGlobalPool(sim(1));
  const auto standard = static_cast<double>(impl.getStream(sim(0)).id());
  DataParallel model(StreamId(), {.device_ids = {0, 1}});
  const c10::StreamGuard guard(side);
  const auto ids = model->forward(torch::zeros({2}, torch::kFloat64)).cpu();
  EXPECT_EQ(ids[0].item<double>(), standard);
  EXPECT_EQ(ids[1].item<double>(), static_cast<double>(side.id()));
}

// Collects the texts of LibTorch's warnings.
class Warnings : public c10::WarningHandler {
 public:
  Warnings() : guard_(this) {}
  void process(const c10::Warning& warning) override {
    text += warning.msg();
  }
  std::string text = {};

 private:
  c10::WarningUtils::WarningHandlerGuard guard_;
};

TEST(SimDataParallel, UnbalancedDevicesAreWarnedOf) {
  const auto warning = [](std::uint64_t bytes) {
    set_sim_memory_limit(0, 100 << 20);
    set_sim_memory_limit(1, bytes);
    Warnings warnings;
    Where net;
    net->to(sim(0));
    DataParallel model(net, {.device_ids = {0, 1}});
    set_sim_memory_limit(0, 0);
    set_sim_memory_limit(1, 0);
    return warnings.text;
  };
  EXPECT_THAT(
      warning(70 << 20),
      HasSubstr("exclude GPU 1 which has less than 75% of the memory or cores "
                "of GPU 0."));
  EXPECT_EQ(warning(80 << 20), "");
}

TEST(SimDataParallel, MixedTypesAreRefused) {
  EXPECT_THAT(
      message_of([] {
        const ReplicaGroup group(Where().ptr(), {sim(0), torch::Device("cpu")});
      }),
      HasSubstr("expected devices of one type"));
}

// Parameters travel once per change, in one transfer; buffers each pass.
TEST(SimDataParallel, SendsOnlyWhatChangedIfVersionsCanBeTrusted) {
  auto net = test::mlp();
  net->to(sim(0));
  DataParallel model(net, {.devices = "sim*2", .trust_versions = true});
  const auto x = test::images(8).to(sim(0));
  const auto bytes_of_step = [&] {
    reset_sim_counters(1);
    model->forward(x);
    return sim_counters(1).bytes_in;
  };
  const std::uint64_t shard = x.nbytes() / 2;
  std::uint64_t weights = 0;
  for (const auto& parameter : net->parameters()) {
    weights += parameter.nbytes();
  }
  bytes_of_step();
  EXPECT_EQ(bytes_of_step(), shard);
  EXPECT_EQ(sim_counters(1).copies_in, 1U);
  {
    const torch::NoGradGuard no_grad;
    for (auto& parameter : net->parameters()) {
      parameter.mul_(2);
    }
  }
  EXPECT_EQ(bytes_of_step(), shard + weights);
  EXPECT_EQ(sim_counters(1).copies_in, 2U);
  EXPECT_EQ(bytes_of_step(), shard);
  net->parameters()[1].set_data(torch::ones({32}, sim(0)));
  EXPECT_EQ(bytes_of_step(), shard + 32 * sizeof(float));
}

TEST(SimDataParallel, FollowsEveryKindOfChange) {
  auto net = test::mlp();
  net->to(sim(0));
  DataParallel model(net, {.devices = "sim*4"});
  const auto x = test::images(8).to(sim(0));
  const auto check = [&] {
    EXPECT_TRUE(torch::allclose(
        model->forward(x).detach(),
        net->forward(x).detach(),
        1e-5,
        1e-6));
  };
  check();
  net->parameters()[0].detach().mul_(0.5);
  check();
  net->parameters()[0].set_data(torch::randn({32, 64}, sim(0)));
  check();
  net->to(torch::kCPU);
  net->to(sim(0));
  check();
  net->parameters()[0].set_requires_grad(false);
  net->zero_grad();
  model->forward(x).sum().backward();
  EXPECT_FALSE(net->parameters()[0].grad().defined());
  EXPECT_TRUE(net->parameters()[1].grad().defined());
}

TEST(SimDataParallel, SeveralPassesInOneGraph) {
  auto net = test::mlp();
  net->to(sim(0));
  DataParallel first(net, {.devices = "sim:0,1,2"});
  auto other = test::mlp();
  other->to(sim(1));
  DataParallel second(other, {.devices = "sim:1,2,0"});
  const auto x = test::images(9);
  for (int repeat = 0; repeat < 20; ++repeat) {
    net->zero_grad();
    other->zero_grad();
    auto loss = first->forward(x).square().sum() + first->forward(x).sum() +
                second->forward(x).square().sum().to(sim(0));
    loss.backward();
  }
  const auto together = test::gradients_of(*net);
  net->zero_grad();
  (first->forward(x).square().sum() + first->forward(x).sum()).backward();
  expect_same(together, test::gradients_of(*net));
}

TEST(SimDataParallel, DropoutIsReproducible) {
  auto net = test::mlp(0.5);
  net->to(sim(0));
  DataParallel model(net, {.devices = "sim*4"});
  const auto x = test::images(16);
  const auto run = [&] {
    torch::manual_seed(8);
    net->zero_grad();
    const auto out = model->forward(x);
    out.square().sum().backward();
    auto result = test::gradients_of(*net);
    result.push_back(out.detach());
    return result;
  };
  const auto first = run();
  for (int repeat = 0; repeat < 10; ++repeat) {
    expect_same(first, run());
  }
}

TEST(SimDataParallel, FailedDeviceIsNamed) {
  auto net = test::mlp();
  net->to(sim(0));
  DataParallel model(net, {.devices = "sim*3"});
  const auto x = test::images(6);
  model->forward(x);
  // Operation 1 is the copy of the shard, the module's own come after.
  fail_sim_device(1, 3);
  try {
    model->forward(x);
    ADD_FAILURE() << "no error";
  } catch (const ReplicaError& e) {
    EXPECT_EQ(e.replica(), 1U);
    EXPECT_THAT(e.what(), HasSubstr("in replica 1 on device sim:1."));
    EXPECT_THAT(e.what(), HasSubstr("as scripted"));
  }
  fail_sim_device(1, 0);
  EXPECT_NO_THROW(model->forward(x).sum().backward());
  auto out = model->forward(x);
  fail_sim_device(2, 2);
  EXPECT_THAT(
      message_of([&] { out.sum().backward(); }),
      HasSubstr("device sim:2"));
  fail_sim_device(2, 0);
}

TEST(SimDataParallel, OutOfMemoryInOneReplica) {
  auto net = test::conv_net();
  net->to(sim(0));
  DataParallel model(net, {.devices = "sim*2"});
  const auto x = test::images(64);
  model->forward(x);
  reset_sim_counters(1);
  set_sim_memory_limit(1, sim_counters(1).used_bytes + 40000);
  const std::string text = message_of([&] { model->forward(x); });
  set_sim_memory_limit(1, 0);
  EXPECT_THAT(text, HasSubstr("in replica 1 on device sim:1."));
  EXPECT_THAT(text, HasSubstr("sim out of memory. Tried to allocate"));
  EXPECT_NO_THROW(model->forward(x));
}

} // namespace
} // namespace lockstep
