// SPDX-License-Identifier: BSD-3-Clause
//
// Arguments that forward fills in: the caller gets what one device would give,
// or an error.
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/parallel/data_parallel.h"
#include "tests/user/programs.h"
#include "tests/user/support.h"

namespace lockstep {
namespace {

namespace nn = torch::nn;
using Tensor = torch::Tensor;
using test::close;
using test::error_of;
using testing::HasSubstr;

class OutArguments : public test::OnDevices {
 protected:
  [[nodiscard]] Tensor batch() const {
    return here(torch::linspace(-1, 1, 24).view({6, 4}));
  }
  [[nodiscard]] static bool is_alone() {
    return std::string(GetParam()).find('*') == std::string::npos;
  }
};
INSTANTIATE_TEST_SUITE_P(
    Programs,
    OutArguments,
    testing::Values("cpu", "sim:0", "cpu*2", "sim*2", "sim*3"),
    [](const auto& param) {
      std::string name = test::name_of_devices(param.param);
      std::erase(name, ':');
      return name;
    });

using Pair = std::pair<Tensor, Tensor>;
using Named = std::map<std::string, Tensor>;

void fill(Tensor& out, const Tensor& hidden) {
  out = hidden * 2;
}
void fill(std::vector<Tensor>& out, const Tensor& hidden) {
  out.push_back(hidden * 2);
  out.push_back(hidden * 3);
}
void fill(std::optional<Tensor>& out, const Tensor& hidden) {
  out = hidden * 2;
}
void fill(Pair& out, const Tensor& hidden) {
  out = {hidden * 2, hidden * 3};
}
void fill(Named& out, const Tensor& hidden) {
  out["twice"] = hidden * 2;
}

/// Tells in `Out` what is inside.
template <class Out>
struct Filler : nn::Module {
  Filler() {
    torch::manual_seed(2);
    fc = register_module("fc", nn::Linear(4, 3));
  }
  Tensor forward(const Tensor& x, Out& out) {
    const Tensor hidden = torch::tanh(fc->forward(x));
    fill(out, hidden);
    return hidden.sum(1);
  }
  nn::Linear fc = nullptr;
};

template <class Out>
void expect_filled(const char* devices, const Tensor& batch) {
  const auto run = [&batch](auto& model, Filler<Out>& net) {
    Out out;
    const Tensor result = model.forward(batch, out);
    Tensor loss = result.sum();
    std::vector<Tensor> numbers{result.detach()};
    for (const Tensor& tensor : structure::flatten(out)) {
      loss = loss + tensor.square().sum();
      numbers.push_back(tensor.detach());
    }
    loss.backward();
    numbers.push_back(net.fc->weight.grad());
    return numbers;
  };
  auto alone = std::make_shared<Filler<Out>>();
  alone->to(batch.device());
  const auto expected = run(*alone, *alone);
  ASSERT_GT(expected.size(), 2U);
  auto net = std::make_shared<Filler<Out>>();
  net->to(batch.device());
  DataParallel model(net, {.devices = devices});
  const auto got = run(*model, *net);
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    EXPECT_TRUE(close(got[i], expected[i])) << i;
  }
}

TEST_P(OutArguments, AreFilledInAsOnOneDevice) {
  expect_filled<Tensor>(GetParam(), batch());
  expect_filled<std::vector<Tensor>>(GetParam(), batch());
  expect_filled<std::optional<Tensor>>(GetParam(), batch());
  expect_filled<Pair>(GetParam(), batch());
  expect_filled<Named>(GetParam(), batch());
}

struct Memory : nn::Module {
  Tensor forward(const Tensor& x, std::vector<Tensor>& states, Tensor& seen) {
    states[1] = states[1] + x;
    seen.copy_(x);
    return states[0] + states[1];
  }
};

TEST_P(OutArguments, WhatForwardLeavesAloneStaysTheCallers) {
  auto net = std::make_shared<Memory>();
  DataParallel model(net, {.devices = GetParam()});
  const Tensor first = torch::ones_like(batch());
  std::vector<Tensor> states{first, first * 2};
  Tensor seen = torch::zeros_like(first);
  const Tensor place = seen;
  for (int step = 1; step <= 2; ++step) {
    const Tensor sum = model->forward(batch(), states, seen);
    EXPECT_TRUE(states[0].is_same(first));
    EXPECT_TRUE(close(states[1], first * 2 + batch() * step));
    EXPECT_TRUE(close(sum, first * 3 + batch() * step));
  }
  EXPECT_TRUE(seen.is_same(place));
  EXPECT_TRUE(close(seen, batch()));
}

/// Moves, drops and sorts the tensors that it is given.
struct Mover : nn::Module {
  Tensor forward(
      const Tensor& x,
      std::vector<Tensor>& queue,
      Named& named,
      std::vector<Tensor>& last) {
    queue.erase(queue.begin());
    queue.push_back(x * 2);
    named["a"] = x * 3;
    last = {last.back()};
    return x * 4;
  }
};

TEST_P(OutArguments, MovedTensorsAreTheCallers) {
  auto net = std::make_shared<Mover>();
  DataParallel model(net, {.devices = GetParam()});
  const Tensor x = batch();
  std::vector<Tensor> given;
  for (int i = 0; i < 7; ++i) {
    given.push_back(torch::full_like(x, i));
  }
  std::vector<Tensor> queue{given[0], given[1], given[2]};
  Named named{{"b", given[3]}, {"c", given[4]}};
  std::vector<Tensor> last{given[5], given[6]};
  model->forward(x, queue, named, last);
  ASSERT_EQ(queue.size(), 3U);
  EXPECT_TRUE(queue[0].is_same(given[1]));
  EXPECT_TRUE(queue[1].is_same(given[2]));
  EXPECT_TRUE(close(queue[2], x * 2));
  ASSERT_EQ(named.size(), 3U);
  EXPECT_TRUE(close(named["a"], x * 3));
  EXPECT_TRUE(named["b"].is_same(given[3]));
  EXPECT_TRUE(named["c"].is_same(given[4]));
  ASSERT_EQ(last.size(), 1U);
  EXPECT_TRUE(last[0].is_same(given[6]));
}

/// Writes nothing, though it could.
struct Reader : nn::Module {
  Tensor forward(Tensor& x, std::vector<Tensor>& more, double& factor) {
    return (x + more.front()) * factor;
  }
};

TEST_P(OutArguments, ArgumentsThatAreOnlyReadMayBeReferences) {
  auto net = std::make_shared<Reader>();
  DataParallel model(net, {.devices = GetParam()});
  Tensor x = batch();
  std::vector<Tensor> more{batch()};
  double factor = 3;
  const Tensor kept = x;
  EXPECT_TRUE(close(model->forward(x, more, factor), batch() * 6));
  EXPECT_TRUE(x.is_same(kept));
  EXPECT_TRUE(
      close(model->forward(batch(), std::vector{batch()}, 3.0), batch() * 6));
}

struct Counter : nn::Module {
  Tensor forward(const Tensor& x, std::int64_t& rows, std::string& name) {
    rows += x.size(0);
    name += "x";
    return x * 2;
  }
};

TEST_P(OutArguments, AValueIsFilledInByOneDeviceAndRefusedBySeveral) {
  auto net = std::make_shared<Counter>();
  DataParallel model(net, {.devices = GetParam()});
  std::int64_t rows = 1;
  std::string name = "a";
  if (is_alone()) {
    model->forward(batch(), rows, name);
    EXPECT_EQ(rows, 7);
    EXPECT_EQ(name, "ax");
    return;
  }
  EXPECT_THAT(
      error_of([&] { model->forward(batch(), rows, name); }).message,
      HasSubstr("forward changed its argument 1"));
  EXPECT_EQ(rows, 1);
}

struct PointerFiller : nn::Module {
  Tensor forward(const Tensor& x, Tensor* out) {
    *out = x * 2;
    return x;
  }
};

TEST_P(OutArguments, APointerIsWrittenByOneDeviceAndRefusedBySeveral) {
  auto net = std::make_shared<PointerFiller>();
  DataParallel model(net, {.devices = GetParam()});
  Tensor out;
  if (is_alone()) {
    model->forward(batch(), &out);
    EXPECT_TRUE(close(out, batch() * 2));
    return;
  }
  EXPECT_THAT(
      error_of([&] { model->forward(batch(), &out); }).message,
      HasSubstr("argument 1 points to tensors"));
  EXPECT_FALSE(out.defined());
}

/// Fills in as many as its shard has rows.
struct UnevenFiller : nn::Module {
  Tensor forward(const Tensor& x, std::vector<Tensor>& out) {
    out = x.unbind(0);
    return x;
  }
};

TEST_P(OutArguments, ReplicasThatFillInDifferentlyAreRefused) {
  auto net = std::make_shared<UnevenFiller>();
  DataParallel model(net, {.devices = GetParam()});
  std::vector<Tensor> out;
  const Tensor x = batch().narrow(0, 0, 5);
  if (is_alone()) {
    model->forward(x, out);
    EXPECT_EQ(out.size(), 5U);
    return;
  }
  EXPECT_EQ(
      error_of([&] { model->forward(x, out); }).code,
      ErrorCode::kMismatch);
  EXPECT_TRUE(out.empty());
}

} // namespace
} // namespace lockstep
