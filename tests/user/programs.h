// SPDX-License-Identifier: BSD-3-Clause
//
// What the programs of these tests share: where they run, and modules that are
// what a test says.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/device/device_list.h"
#include "lockstep/parallel/data_parallel.h"
#include "tests/sim/support.h"

namespace lockstep::test {

using torch::Tensor;

/// A program that runs on the devices that its parameter names.
class OnDevices : public testing::TestWithParam<const char*> {
 protected:
  [[nodiscard]] torch::Device home() const {
    return parse_devices(GetParam()).front();
  }
  [[nodiscard]] Tensor here(const Tensor& tensor) const {
    return tensor.to(home());
  }
};

inline torch::nn::Linear linear(int in = 4, int out = 3) {
  torch::manual_seed(5);
  return torch::nn::Linear(in, out);
}

inline bool close(const Tensor& a, const Tensor& b) {
  return a.defined() && b.defined() &&
         torch::allclose(a.cpu(), b.cpu(), 1e-4, 1e-5);
}
/// A module that is what a test says.
struct AnyImpl : torch::nn::Module {
  using Forward = std::function<Tensor(AnyImpl&, const Tensor&)>;
  explicit AnyImpl(Forward forward_) : call(std::move(forward_)) {
    weight = register_parameter("weight", torch::full({1}, 2.0));
  }
  Tensor forward(const Tensor& x) {
    return call(*this, x);
  }
  Forward call;
  Tensor weight;
  /// For what a test keeps between passes.
  Tensor kept = {};
};

inline std::shared_ptr<AnyImpl> any(
    const AnyImpl::Forward& forward,
    const torch::Device& device) {
  auto net = std::make_shared<AnyImpl>(forward);
  net->to(device);
  return net;
}

/// Runs `program` over one device and over several; both give the same numbers.
inline void expect_same(
    const char* devices,
    const AnyImpl::Forward& forward,
    const std::function<std::vector<Tensor>(
        const std::function<Tensor(const Tensor&)>& forward,
        AnyImpl& net)>& program) {
  const auto home = parse_devices(devices).front();
  const auto alone = any(forward, home);
  const auto expected =
      program([&](const Tensor& x) { return alone->forward(x); }, *alone);
  const auto net = any(forward, home);
  DataParallel model(net, {.devices = devices, .factory = [&] {
                             return any(forward, home);
                           }});
  const auto got =
      program([&](const Tensor& x) { return model->forward(x); }, *net);
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i].defined(), expected[i].defined()) << i;
    EXPECT_TRUE(!got[i].defined() || close(got[i], expected[i]))
        << i << "\n"
        << got[i] << "\n"
        << expected[i];
  }
}

inline Tensor times_weight(AnyImpl& net, const Tensor& x) {
  return x * net.weight;
}

} // namespace lockstep::test
