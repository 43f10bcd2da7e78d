// SPDX-License-Identifier: BSD-3-Clause
//
// The modules of tests/oracle/tensor_modules.py, and verbs for error tests.
#pragma once

#include <functional>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "lockstep/base/error.h"
#include "lockstep/tensor/state_dict.h"

namespace lockstep::test {

struct MyModule : torch::nn::Module {
  explicit MyModule(std::int64_t out = 5) {
    fc = register_module("fc", torch::nn::Linear(3, out));
  }
  torch::nn::Linear fc = nullptr;
};

/// Children are registered before own tensors, one child is tied.
struct Net : torch::nn::Module {
  Net() {
    namespace nn = torch::nn;
    register_module(
        "conv1",
        nn::Conv2d(nn::Conv2dOptions(1, 2, 3).bias(false)));
    register_module("bn", nn::BatchNorm2d(2));
    layer = register_module(
        "layer",
        nn::Sequential(nn::Linear(2, 2), nn::BatchNorm1d(2)));
    register_buffer("offset", torch::zeros({3}, torch::kLong));
    scale = register_parameter("scale", torch::zeros({}));
    register_module("tied", layer);
    register_parameter("absent", at::Tensor(), /*requires_grad=*/false);
  }
  torch::nn::Sequential layer = nullptr;
  at::Tensor scale;
};

struct Expanded : torch::nn::Module {
  Expanded() {
    first = register_parameter("first", torch::zeros({2}));
    register_buffer("wide", torch::zeros({1}).expand({3}));
  }
  at::Tensor first;
};

/// Wraps as DataParallel does.
struct Wrapper : torch::nn::Module {
  explicit Wrapper(std::shared_ptr<torch::nn::Module> inner)
      : torch::nn::Module("DataParallel") {
    register_module("module", std::move(inner));
  }
};

/// Sets the i-th entry to i + 1 everywhere.
template <class M>
std::shared_ptr<M> fill(std::shared_ptr<M> module) {
  const torch::NoGradGuard no_grad;
  int value = 0;
  for (auto& [key, tensor] : state_dict(*module).entries) {
    tensor.fill_(++value);
  }
  return module;
}

/// True if both have equal keys in equal order, and equal bits.
inline bool equal(const StateDict& a, const StateDict& b) {
  bool is_equal = a.entries.size() == b.entries.size();
  for (std::size_t i = 0; is_equal && i < a.entries.size(); ++i) {
    is_equal = a.entries[i].first == b.entries[i].first &&
               a.entries[i].second.scalar_type() ==
                   b.entries[i].second.scalar_type() &&
               torch::equal(a.entries[i].second, b.entries[i].second);
  }
  return is_equal;
}

/// The error that `action` throws; fails the test if it throws none.
inline Error error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Exception& exception) {
    return exception.error();
  }
  ADD_FAILURE() << "no error";
  return {};
}

} // namespace lockstep::test
