// SPDX-License-Identifier: BSD-3-Clause
//
// The cases of PyTorch's test_data_parallel.py that concern scatter, gather,
// replicate, parallel_apply and dtypes, under the same names, on simulated
// devices. docs/torch_tests.md lists all names.
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "lockstep/base/error.h"
#include "lockstep/parallel/data_parallel.h"
#include "lockstep/parallel/functional.h"
#include "lockstep/parallel/replica_group.h"
#include "tests/sim/support.h"

namespace lockstep {
namespace {

namespace nn = torch::nn;
using parallel::gather;
using parallel::parallel_apply;
using parallel::replicate;
using parallel::scatter;
using test::same_bits;
using test::sim;
using testing::HasSubstr;

const std::vector<c10::Device> kTwo{sim(0), sim(1)};

TEST(TestDataParallel, test_parallel_apply) {
  for (const auto& devices :
       {kTwo, std::vector<c10::Device>(2, torch::Device("cpu"))}) {
    std::vector<std::shared_ptr<nn::LinearImpl>> nets;
    std::vector<at::Tensor> plain;
    std::vector<std::tuple<at::Tensor>> tuples;
    std::vector<at::Tensor> expected;
    for (const c10::Device& device : devices) {
      nets.push_back(nn::Linear(10, 5).ptr());
      nets.back()->to(device);
      plain.push_back(torch::randn({2, 10}, device));
      tuples.emplace_back(plain.back());
      expected.push_back(nets.back()->forward(plain.back()));
    }
    const auto a = parallel_apply(nets, plain, devices);
    const auto b = parallel_apply(nets, tuples, devices);
    for (std::size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(a[i].device(), devices[i]);
      EXPECT_TRUE(torch::allclose(a[i], expected[i]));
      EXPECT_TRUE(same_bits(a[i], b[i]));
    }
  }
}

TEST(TestDataParallel, test_parallel_apply_autocast) {
  const test::Autocast autocast;
  std::vector<std::shared_ptr<nn::LinearImpl>> nets;
  std::vector<at::Tensor> inputs;
  for (const c10::Device& device : kTwo) {
    nets.push_back(nn::Linear(10, 5).ptr());
    nets.back()->to(device);
    inputs.push_back(torch::randn({2, 10}, device));
  }
  for (const at::Tensor& out : parallel_apply(nets, inputs, kTwo)) {
    EXPECT_EQ(out.dtype(), torch::kBFloat16);
  }
}

struct NeedsKeyImpl : nn::Module {
  at::Tensor forward(const std::map<std::string, at::Tensor>& in) {
    return in.at("wonderful");
  }
};

TEST(TestDataParallel, test_parallel_apply_passes_exception) {
  using Input = std::map<std::string, at::Tensor>;
  const std::vector<std::shared_ptr<NeedsKeyImpl>> nets(
      2,
      std::make_shared<NeedsKeyImpl>());
  const std::vector<Input> inputs{
      {{"wonderful", torch::ones({1})}},
      {{"other", torch::ones({1})}}};
  try {
    parallel_apply(nets, inputs, kTwo);
    FAIL() << "no error";
  } catch (const ReplicaError& e) {
    EXPECT_EQ(e.replica(), 1U);
    EXPECT_THAT(e.what(), HasSubstr("in replica 1 on device sim:1."));
    EXPECT_THROW(std::rethrow_exception(e.cause()), std::out_of_range);
  }
}

// Splits `x`, checks values and devices, then first and second gradients.
void check_scatter(const at::Tensor& x) {
  x.set_requires_grad(true);
  const auto parts = scatter(x, kTwo);
  ASSERT_EQ(parts.size(), 2U);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(parts[static_cast<std::size_t>(i)].device(), sim(i));
    EXPECT_TRUE(same_bits(
        parts[static_cast<std::size_t>(i)],
        x.slice(0, 2L * i, 2L * i + 2)));
  }
  const auto cubes =
      parts[0].pow(3).sum().cpu() + (2 * parts[1].pow(3).sum()).cpu();
  const auto first =
      torch::autograd::grad({cubes}, {x}, {}, true, /*create_graph=*/true);
  const auto weights =
      torch::cat({torch::ones({2, 4}), torch::full({2, 4}, 2.0)})
          .to(torch::kFloat64);
  EXPECT_EQ(first[0].device(), x.device());
  EXPECT_TRUE(
      torch::allclose(first[0].cpu(), 3 * weights * x.detach().cpu().pow(2)));
  const auto second = torch::autograd::grad({first[0].sum()}, {x});
  EXPECT_TRUE(torch::allclose(second[0].cpu(), 6 * weights * x.detach().cpu()));
}

TEST(TestDataParallel, test_scatter_cpu) {
  check_scatter(torch::randn({4, 4}, torch::kFloat64));
}

TEST(TestDataParallel, test_scatter_gpu) {
  check_scatter(torch::randn({4, 4}, torch::kFloat64).to(sim(0)));
}

// Joins two parts on `target`; gradients return to the parts, twice; scalars
// become a vector.
void check_gather(c10::Device target) {
  const auto part = [](int device) {
    return torch::randn({2, 4}, torch::kFloat64)
        .to(sim(device))
        .requires_grad_();
  };
  const std::vector<at::Tensor> parts{part(0), part(1)};
  const auto joined = gather(parts, target);
  EXPECT_EQ(joined.device(), target);
  EXPECT_EQ(joined.sizes(), (std::vector<std::int64_t>{4, 4}));
  EXPECT_TRUE(same_bits(joined.slice(0, 0, 2), parts[0]));
  EXPECT_TRUE(same_bits(joined.slice(0, 2, 4), parts[1]));
  const auto first = torch::autograd::grad(
      {joined.pow(3).sum()},
      parts,
      {},
      true,
      /*create_graph=*/true);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(first[i].device(), parts[i].device());
    EXPECT_TRUE(torch::allclose(first[i], 3 * parts[i].pow(2)));
    const auto second =
        torch::autograd::grad({first[i].sum()}, {parts[i]}, {}, true);
    EXPECT_TRUE(torch::allclose(second[0], 6 * parts[i].detach()));
  }
  const auto scalars = gather(
      std::vector<at::Tensor>{
          torch::tensor(1.0).to(sim(0)),
          torch::tensor(2.0).to(sim(1))},
      target);
  EXPECT_TRUE(torch::equal(scalars.cpu(), torch::tensor({1.0, 2.0})));
}

TEST(TestDataParallel, test_gather_cpu) {
  check_gather(torch::Device("cpu"));
}

TEST(TestDataParallel, test_gather_gpu) {
  check_gather(sim(0));
}

TEST(TestDataParallel, test_gather_different_len_dicts) {
  using Dict = std::map<std::string, at::Tensor>;
  const auto one = torch::ones({1}, sim(0));
  const std::vector<Dict> outputs{
      {{"a", one}},
      {{"a", torch::ones({1}, sim(1))}, {"b", torch::ones({1}, sim(1))}}};
  try {
    gather(outputs, sim(0));
    FAIL() << "no error";
  } catch (const Exception& e) {
    EXPECT_EQ(e.error().code, ErrorCode::kMismatch);
    EXPECT_THAT(e.error().message, HasSubstr("{a: tensor, b: tensor}"));
  }
}

TEST(TestDataParallel, test_replicate) {
  nn::Linear net(10, 5);
  net->to(sim(0));
  const auto x = torch::randn({2, 10}, sim(0));
  const auto expected = net->forward(x);
  const auto replicas = replicate(net.ptr(), kTwo);
  for (int i = 0; i < 2; ++i) {
    const auto& replica = replicas.at(static_cast<std::size_t>(i));
    for (const at::Tensor& parameter : replica->parameters()) {
      EXPECT_EQ(parameter.device(), sim(i));
    }
    EXPECT_TRUE(same_bits(replica->forward(x.to(sim(i))), expected));
  }
  replicas[1]->forward(x.to(sim(1))).sum().backward();
  EXPECT_TRUE(net->weight.grad().defined());
}

struct BatchNormNetImpl : nn::Cloneable<BatchNormNetImpl> {
  BatchNormNetImpl() {
    reset();
  }
  void reset() override {
    bn = register_module("bn", nn::BatchNorm2d(10));
  }
  at::Tensor forward(const at::Tensor& x) {
    return bn->forward(x);
  }
  nn::BatchNorm2d bn = nullptr;
};
TORCH_MODULE(BatchNormNet);

TEST(TestDataParallel, test_replicate_buffers) {
  BatchNormNet net;
  net->to(sim(0));
  const auto replicas = replicate(net.ptr(), kTwo);
  for (int i = 0; i < 2; ++i) {
    const auto& replica = replicas.at(static_cast<std::size_t>(i));
    EXPECT_EQ(replica->buffers().size(), 3U);
    for (const at::Tensor& buffer : replica->buffers()) {
      EXPECT_EQ(buffer.device(), sim(i));
    }
  }
}

// Python warns that zero_grad has no effect; in C++ nobody is there to warn,
// and the module's gradients stay.
TEST(TestDataParallel, test_zero_grad) {
  nn::Linear net(2, 2);
  net->to(sim(0));
  net->forward(torch::ones({1, 2}, sim(0))).sum().backward();
  const auto replicas = replicate(net.ptr(), kTwo);
  replicas[1]->zero_grad();
  EXPECT_TRUE(net->weight.grad().defined());
}

TEST(TestDataParallel, test_autocast) {
  nn::Linear net(8, 8);
  net->to(sim(0));
  DataParallel model(net, {.device_ids = {0, 1}});
  const test::Autocast autocast;
  const auto out = model->forward(torch::randn({8, 8}, sim(0)));
  EXPECT_EQ(out.dtype(), torch::kBFloat16);
}

TEST(TestDataParallel, test_save_replica_module) {
  for (const bool detach : {true, false}) {
    nn::Linear net(10, 10);
    net->to(sim(0));
    const auto replicas = replicate(net.ptr(), kTwo, {.detach = detach});
    std::stringstream stream;
    torch::serialize::OutputArchive archive;
    replicas[1]->save(archive);
    archive.save_to(stream);
    nn::Linear loaded(10, 10);
    torch::load(loaded, stream);
    EXPECT_TRUE(same_bits(loaded->weight, net->weight)) << detach;
  }
}

// Gradients have the memory layout of their parameters.
TEST(TestDataParallel, test_strided_grad_layout) {
  for (const auto dtype : {torch::kFloat32, torch::kBFloat16}) {
    nn::Sequential net(
        nn::Conv2d(nn::Conv2dOptions(8, 16, 3).padding(1).bias(false)),
        nn::Conv2d(nn::Conv2dOptions(16, 8, 3).padding(1).bias(false)));
    net->to(sim(0), dtype);
    {
      const torch::NoGradGuard no_grad;
      auto first = net->parameters()[0];
      first.set_data(first.contiguous(at::MemoryFormat::ChannelsLast));
    }
    const auto single =
        std::dynamic_pointer_cast<nn::SequentialImpl>(net->clone());
    DataParallel model(net, {.device_ids = {0, 1}});
    const auto x = torch::randn({6, 8, 4, 4})
                       .to(sim(0), dtype)
                       .contiguous(at::MemoryFormat::ChannelsLast);
    model->forward(x).pow(2).sum().backward();
    single->forward(x).pow(2).sum().backward();
    const double tolerance = dtype == torch::kFloat32 ? 1e-5 : 2e-2;
    for (std::size_t i = 0; i < 2; ++i) {
      const auto parameter = net->parameters()[i];
      EXPECT_EQ(parameter.grad().strides(), parameter.strides()) << i;
      EXPECT_TRUE(torch::allclose(
          parameter.grad().cpu().to(torch::kFloat32),
          single->parameters()[i].grad().cpu().to(torch::kFloat32),
          tolerance,
          tolerance * 10));
    }
  }
}

// LibTorch's clone() refuses both, hence the factories.
TEST(TestDataParallel, test_parameter_list_dict_replica) {
  const auto value = [] {
    return torch::randn({2, 2}, sim(0)).requires_grad_();
  };
  const auto make_list = [&value] {
    nn::ParameterList list;
    for (int i = 0; i < 3; ++i) {
      list->append(value());
    }
    return list.ptr();
  };
  const auto make_dict = [&value] {
    nn::ParameterDict dict;
    for (const char* key : {"a", "b", "c"}) {
      dict->insert(key, value());
    }
    return dict.ptr();
  };
  const auto check = [](const nn::Module& replica) {
    ASSERT_EQ(replica.parameters().size(), 3U);
    for (const at::Tensor& parameter : replica.parameters()) {
      EXPECT_TRUE(parameter.requires_grad());
      EXPECT_NE(parameter.grad_fn(), nullptr);
      EXPECT_EQ(parameter.device(), sim(1));
    }
  };
  check(*replicate(make_list(), kTwo, {.factory = make_list})[1]);
  check(*replicate(make_dict(), kTwo, {.factory = make_dict})[1]);
}

struct EchoImpl : nn::Cloneable<EchoImpl> {
  EchoImpl() {
    reset();
  }
  void reset() override {
    fc = register_module("fc", nn::Linear(5, 3));
  }
  template <class Default = std::tuple<>>
  at::Tensor forward(const at::Tensor& x, const Default& rest = {}) {
    EXPECT_TRUE(structure::flatten(rest).empty());
    return fc->forward(x);
  }
  nn::Linear fc = nullptr;
};
TORCH_MODULE(Echo);

class TestDataParallelDeviceType : public testing::Test {
 protected:
  // A wrapped net gives what the net gives, in each dtype.
  template <class... Rest>
  static void check(const Rest&... rest) {
    for (const auto dtype :
         {torch::kFloat32, torch::kFloat64, torch::kBFloat16}) {
      Echo net;
      net->to(sim(0), dtype);
      DataParallel model(net, {.device_ids = {0, 1}});
      const auto x = torch::randn({10, 5}).to(sim(0), dtype);
      const auto out = model->forward(x, rest...);
      EXPECT_EQ(out.device(), sim(0));
      EXPECT_TRUE(torch::allclose(
          out.cpu().to(torch::kFloat64),
          net->forward(x).cpu().to(torch::kFloat64),
          dtype == torch::kBFloat16 ? 1e-2 : 1e-6,
          dtype == torch::kBFloat16 ? 1e-2 : 1e-6));
    }
  }
};

TEST_F(TestDataParallelDeviceType, test_data_parallel_module) {
  check();
}

TEST_F(TestDataParallelDeviceType, test_data_parallel_module_kwargs_only) {
  check(std::optional<at::Tensor>());
}

TEST_F(
    TestDataParallelDeviceType,
    test_data_parallel_module_kwargs_only_empty_list) {
  check(std::vector<at::Tensor>());
}

TEST_F(
    TestDataParallelDeviceType,
    test_data_parallel_module_kwargs_only_empty_dict) {
  check(std::map<std::string, at::Tensor>());
}

TEST_F(
    TestDataParallelDeviceType,
    test_data_parallel_module_kwargs_only_empty_tuple) {
  check(std::tuple<>());
}

} // namespace
} // namespace lockstep
