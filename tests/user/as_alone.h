// SPDX-License-Identifier: BSD-3-Clause
//
// A net that is wrapped registers what it did and computes as it did.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/parallel/data_parallel.h"
#include "tests/user/programs.h"

namespace lockstep::test {

template <class T, class... Args>
std::shared_ptr<T> seeded(Args&&... args) {
  torch::manual_seed(3);
  return std::make_shared<T>(std::forward<Args>(args)...);
}

/// Parameters, then buffers.
inline std::vector<std::string> names_of(const torch::nn::Module& net) {
  std::vector<std::string> names = net.named_parameters().keys();
  const auto buffers = net.named_buffers().keys();
  names.insert(names.end(), buffers.begin(), buffers.end());
  return names;
}

/// Which of all parameters, one after another, are the same.
inline std::vector<std::size_t> ties_of(const torch::nn::Module& module) {
  const std::vector<Tensor> all = module.parameters();
  std::vector<std::size_t> ties;
  for (const Tensor& tensor : all) {
    std::size_t first = 0;
    while (!all[first].is_same(tensor)) {
      ++first;
    }
    ties.push_back(first);
  }
  return ties;
}

class AsAlone : public OnDevices {
 protected:
  [[nodiscard]] Tensor batch() const {
    return here(torch::linspace(-1, 1, 24).view({6, 4}));
  }

  template <class Model>
  std::vector<Tensor> numbers_of(Model& model, torch::nn::Module& net) const {
    net.zero_grad();
    const Tensor y = model.forward(batch());
    y.square().sum().backward();
    std::vector<Tensor> numbers{y.detach()};
    for (const Tensor& parameter : net.parameters()) {
      numbers.push_back(parameter.grad().clone());
    }
    return numbers;
  }

  template <class M>
  void expect_wrapped_as_alone(
      const std::shared_ptr<M>& net,
      const ModuleFactory& factory = {}) {
    SCOPED_TRACE(net->name());
    net->to(home());
    net->eval(); // statistics of a batch are those of a part
    const auto names = names_of(*net);
    const auto expected = numbers_of(*net, *net);
    DataParallel<M> model(net, {.devices = GetParam(), .factory = factory});
    EXPECT_EQ(names_of(*net), names);
    EXPECT_EQ(names_of(model->group().replica(1)), names);
    for (int pass = 0; pass < 2; ++pass) {
      const auto got = numbers_of(*model, *net);
      ASSERT_EQ(got.size(), expected.size());
      for (std::size_t i = 0; i < got.size(); ++i) {
        EXPECT_TRUE(close(got[i], expected[i])) << i;
      }
      model->group().rebuild();
      EXPECT_EQ(names_of(*net), names);
    }
  }

  /// And a copy registers the same.
  template <class M>
  void expect_as_alone(const std::shared_ptr<M>& net) {
    net->to(home());
    const auto names = names_of(*net);
    const ModuleCopy copy = copy_of(*net);
    EXPECT_EQ(names_of(*copy.module), names) << net->name();
    EXPECT_EQ(names_of(*net), names) << net->name();
    expect_wrapped_as_alone(net);
  }
};

} // namespace lockstep::test
