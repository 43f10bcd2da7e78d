// SPDX-License-Identifier: BSD-3-Clause
//
// Tensors on simulated devices: they behave like CUDA's and compute like the
// CPU's.
#include <gmock/gmock.h>
#include <torch/torch.h>

#include "tests/sim/support.h"

namespace lockstep {
namespace {

using test::same_bits;
using test::sim;
using test::torch_error;
using ::testing::HasSubstr;

TEST(SimTensor, IsMadeOnItsDevice) {
  const auto x = torch::ones({2, 3}, sim(3));
  EXPECT_EQ(x.device(), sim(3));
  EXPECT_EQ(x.device().str(), "sim:3");
  EXPECT_EQ(torch::Device("sim:3"), sim(3));
  EXPECT_EQ(x.sum().item<float>(), 6.0F);
  EXPECT_EQ(torch::arange(4, sim(1)).device(), sim(1));
  EXPECT_EQ(torch::triu_indices(3, 3, 0, sim(2)).device(), sim(2));
  EXPECT_EQ(torch::tensor({1.0, 2.0}, sim(5)).device(), sim(5));
}

TEST(SimTensor, GuardChoosesTheDevice) {
  const auto any = torch::Device(torch::kPrivateUse1);
  EXPECT_EQ(torch::zeros({1}, any).device(), sim(0));
  {
    const c10::DeviceGuard guard(sim(2));
    EXPECT_EQ(torch::zeros({1}, any).device(), sim(2));
  }
  EXPECT_EQ(torch::zeros({1}, any).device(), sim(0));
  EXPECT_THAT(
      torch_error([] { torch::zeros({1}, sim(8)); }),
      HasSubstr("invalid device ordinal 8; this process has 8"));
}

TEST(SimTensor, CopiesBetweenDevices) {
  const auto x = torch::randn({5, 4});
  const auto on_one = x.to(sim(1));
  const auto on_two = on_one.to(sim(2));
  EXPECT_TRUE(same_bits(x, on_two));
  EXPECT_FALSE(on_two.is_alias_of(on_one));
  EXPECT_TRUE(on_one.to(sim(1)).is_same(on_one));
  auto target = torch::empty({2, 5, 4}, sim(4).type());
  target.copy_(on_two);
  EXPECT_TRUE(same_bits(target[1], x));
  EXPECT_TRUE(same_bits(on_one.to(torch::kDouble), x.to(torch::kDouble)));
  EXPECT_TRUE(same_bits(on_one.t().to(torch::kCPU), x.t()));
}

TEST(SimTensor, ViewsShareMemory) {
  auto x = torch::arange(12, sim(1)).reshape({3, 4});
  const std::vector<torch::Tensor> views{
      x.t(),
      x.select(0, 1),
      x.narrow(1, 1, 2),
      x.view({4, 3}),
      x.unfold(1, 2, 1),
      x.diagonal(),
      x.detach(),
      x.chunk(3, 0)[2],
      x.view(torch::kInt32),
      x.unsqueeze(0).expand({2, 3, 4})};
  for (const auto& view : views) {
    EXPECT_TRUE(view.is_alias_of(x));
    EXPECT_EQ(view.device(), sim(1));
  }
  views[1].fill_(7);
  EXPECT_TRUE(same_bits(x[1], torch::full({4}, 7, torch::kLong)));
  EXPECT_TRUE(x.t().is_view());
}

TEST(SimTensor, InPlaceReturnsItself) {
  auto x = torch::ones({3}, sim(0));
  EXPECT_TRUE(x.add_(1).is_same(x));
  EXPECT_TRUE(x.add_(x).is_same(x));
  EXPECT_TRUE(x.clamp_(0, 3).is_same(x));
  EXPECT_TRUE(same_bits(x, torch::full({3}, 3.0)));
  auto square = torch::arange(9, sim(0)).reshape({3, 3});
  square.t_();
  EXPECT_EQ(square.stride(0), 1);
  square.unsqueeze_(0);
  EXPECT_EQ(square.dim(), 3);
}

TEST(SimTensor, OutArgumentsGrow) {
  const auto a = torch::randn({40, 30});
  const auto b = torch::randn({30, 20});
  auto out = torch::empty({0}, sim(2));
  torch::mm_out(out, a.to(sim(2)), b.to(sim(2)));
  EXPECT_EQ(out.device(), sim(2));
  EXPECT_TRUE(same_bits(out, a.mm(b)));
  auto values = torch::empty({0}, sim(2));
  auto indices =
      torch::empty({0}, torch::TensorOptions(sim(2)).dtype(torch::kLong));
  torch::sort_out(values, indices, a.to(sim(2)), 1);
  const auto [by_cpu, places] = a.sort(1);
  EXPECT_TRUE(same_bits(values, by_cpu));
  EXPECT_TRUE(same_bits(indices, places));
  auto joined = torch::empty({0}, sim(2));
  torch::cat_out(joined, {a.to(sim(2)), a.to(sim(2))}, 1);
  EXPECT_EQ(joined.size(1), 60);
}

TEST(SimTensor, ResizesAndSetsStorage) {
  auto x = torch::arange(4, sim(3)).to(torch::kFloat);
  x.resize_({2, 4});
  EXPECT_EQ(x.device(), sim(3));
  EXPECT_TRUE(same_bits(x[0], torch::arange(4).to(torch::kFloat)));
  auto y = torch::empty({0}, sim(3));
  y.set_(x);
  EXPECT_TRUE(y.is_alias_of(x));
  y.set_(x.storage(), 1, {2}, {2});
  EXPECT_EQ(y[1].item<float>(), 3.0F);
  y.set_();
  EXPECT_EQ(y.numel(), 0);
  EXPECT_EQ(y.device(), sim(3));
  x.storage().unsafeGetStorageImpl();
  auto z = torch::ones({3}, sim(3));
  z.resize_({0}).resize_({5});
  EXPECT_EQ(z.device(), sim(3));
}

TEST(SimTensor, DifferentDevicesAreRefusedAsOnCuda) {
  const auto a = torch::ones({2, 2}, sim(0));
  const auto b = torch::ones({2, 2}, sim(1));
  const auto c = torch::ones({2, 2});
  EXPECT_EQ(
      torch_error([&] { a.add(b); }),
      "Expected all tensors to be on the same device, but found at least two "
      "devices, sim:0 and sim:1!");
  EXPECT_EQ(
      torch_error([&] { a.add(c); }),
      "Expected all tensors to be on the same device, but found at least two "
      "devices, sim:0 and cpu!");
  EXPECT_EQ(
      torch_error([&] { a.mm(b); }),
      "Expected all tensors to be on the same device, but got mat2 is on "
      "sim:1, different from other tensors on sim:0 (when checking argument in "
      "method wrapper_sim_mm)");
  for (const auto& other : {b, c}) {
    const std::vector<std::function<void()>> operations{
        [&] {
          torch::cat({a, other});
        },
        [&] { torch::linear(a, other); },
        [&] { torch::mse_loss(a, other); },
        [&] { torch::embedding(a, other.to(torch::kLong)); },
        [&] {
          torch::batch_norm(a, other[0], {}, {}, {}, true, 0.1, 1e-5, false);
        },
        [&] {
          torch::conv2d(a.reshape({1, 1, 2, 2}), other.reshape({1, 1, 2, 2}));
        },
        [&] { a.clone().addmm_(a, other); },
        [&] { torch::where(a > 0, a, other); }};
    for (std::size_t i = 0; i < operations.size(); ++i) {
      EXPECT_THAT(
          torch_error(operations[i]),
          HasSubstr("Expected all tensors to be on the same device"))
          << i;
    }
  }
}

TEST(SimTensor, CpuScalarsAndIndicesAreTaken) {
  const auto a = torch::arange(6, sim(2)).to(torch::kFloat);
  EXPECT_TRUE(same_bits(a * torch::tensor(2.0F), a + a));
  const auto rows = torch::tensor({1, 3});
  EXPECT_TRUE(same_bits(a.index({rows}), a.index_select(0, rows.to(sim(2)))));
  auto b = a.clone();
  b.index_put_({rows}, torch::tensor(9.0F));
  EXPECT_EQ(b[3].item<float>(), 9.0F);
  EXPECT_TRUE(same_bits(a.index({a > 2}), torch::tensor({3.0F, 4.0F, 5.0F})));
}

TEST(SimTensor, ListsOfTensors) {
  const auto a = torch::randn({4, 6});
  const auto parts = a.to(sim(1)).split(2, 1);
  ASSERT_EQ(parts.size(), 3U);
  EXPECT_TRUE(same_bits(torch::cat(parts, 1), a));
  EXPECT_TRUE(same_bits(torch::stack(parts)[2], a.narrow(1, 4, 2)));
  EXPECT_TRUE(same_bits(
      torch::einsum("ij,kj->ik", {parts[0], parts[1]}),
      torch::einsum("ij,kj->ik", {a.narrow(1, 0, 2), a.narrow(1, 2, 2)})));
  const auto norms = torch::_foreach_norm(parts);
  EXPECT_TRUE(same_bits(norms[1], a.narrow(1, 2, 2).norm()));
}

TEST(SimTensor, ComplexAndConjugateBits) {
  const auto a = torch::randn({3}, torch::kComplexFloat);
  const auto b = a.to(sim(0)).conj();
  EXPECT_TRUE(b.is_conj());
  EXPECT_TRUE(same_bits(b.resolve_conj(), a.conj().resolve_conj()));
  EXPECT_TRUE(same_bits(b.cpu().resolve_conj(), a.conj().resolve_conj()));
  EXPECT_TRUE(same_bits((b * b).abs(), (a * a).conj().abs()));
}

TEST(SimTensor, SparseIsRefusedInWords) {
  EXPECT_THAT(
      torch_error([] { torch::eye(3, sim(0)).to_sparse(); }),
      HasSubstr("simulated devices have dense tensors only"));
}

TEST(SimAutograd, CrossesDevices) {
  const auto w = torch::randn({4, 4}, torch::requires_grad());
  auto y = w.to(sim(1)).mm(torch::ones({4, 4}, sim(1)));
  auto z = y.to(sim(2)).tanh().cpu().sum() + y.sum().cpu();
  z.backward();
  const auto grad = w.grad().clone();
  const auto v = w.detach().clone().requires_grad_();
  auto u = v.mm(torch::ones({4, 4}));
  (u.tanh().sum() + u.sum()).backward();
  EXPECT_TRUE(same_bits(grad, v.grad()));
  EXPECT_TRUE(grad.is_cpu());
}

TEST(SimAutograd, DetectsInPlaceChanges) {
  auto x = torch::ones({3}, torch::TensorOptions(sim(1)).requires_grad(true));
  auto y = x.exp();
  y.mul_(2);
  EXPECT_THAT(
      torch_error([&] { y.sum().backward(); }),
      HasSubstr("modified by an inplace operation"));
}

TEST(SimAutograd, GradientOfGradient) {
  const auto value = torch::randn({5});
  const auto second = [&](const torch::Device& device) {
    auto x = value.to(device).detach().requires_grad_();
    auto first =
        torch::autograd::grad({x.pow(3).sum()}, {x}, {}, true, true)[0];
    return torch::autograd::grad({first.square().sum()}, {x})[0];
  };
  EXPECT_TRUE(same_bits(second(sim(3)), second(torch::kCPU)));
}

} // namespace
} // namespace lockstep
