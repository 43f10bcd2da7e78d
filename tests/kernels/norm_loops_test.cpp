// SPDX-License-Identifier: BSD-3-Clause
//
// The loops of every instruction set of this processor beside float64.
#include "lockstep/kernels/internal/norm_loops.h"

#include <random>
#include <type_traits>

#include <gtest/gtest.h>
#include <torch/torch.h>

namespace lockstep::kernels {
namespace {

template <class T>
class NormLoopsOf : public testing::Test {
 public:
  static constexpr at::ScalarType kType =
      std::is_same_v<T, float> ? at::kFloat : at::kBFloat16;
  // Of results of this type, and of sums in float32.
  static constexpr double kNear = std::is_same_v<T, float> ? 1e-5 : 1e-2;

  // Part of a larger tensor, so that a row too many would be seen.
  static at::Tensor numbers(const TileSize& size) {
    return at::randn({size.rows + 2, size.stride}).to(kType);
  }
  static T* data(const at::Tensor& tensor) {
    return static_cast<T*>(tensor.data_ptr());
  }
  static float* floats(const at::Tensor& tensor) {
    return tensor.data_ptr<float>();
  }
};

using Types = testing::Types<float, Bfloat16Bits>;
TYPED_TEST_SUITE(NormLoopsOf, Types);

at::Tensor tile_of(const at::Tensor& whole, const TileSize& size) {
  return whole.narrow(0, 0, size.rows)
      .narrow(1, 0, size.columns)
      .to(at::kDouble);
}

// Over rows, or over the whole of a plane.
at::Tensor sum_of(const at::Tensor& tile, const TileSize& size) {
  return size.is_plane ? tile.sum().view({1}) : tile.sum(0);
}

bool is_near(const at::Tensor& found, const at::Tensor& exact, double near) {
  return at::allclose(found.to(at::kDouble), exact, near, near);
}

template <class Check>
void for_sizes(Check check) {
  std::mt19937 engine(31);
  const auto from = [&](int low, int high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(engine);
  };
  torch::manual_seed(31);
  for (int i = 0; i < 300; ++i) {
    TileSize size{.rows = from(1, 9), .columns = from(1, 70)};
    size.is_plane = from(0, 1) == 1;
    size.rows = size.is_plane ? 1 : size.rows;
    size.stride = size.columns + from(0, 3);
    check(size);
  }
}

TYPED_TEST(NormLoopsOf, Moments) {
  using Fixture = NormLoopsOf<TypeParam>;
  for (const auto* loops : usable_norm_loops<TypeParam>()) {
    for_sizes([&](const TileSize& size) {
      const at::Tensor x = Fixture::numbers(size);
      const std::int64_t results = size.is_plane ? 1 : size.columns;
      const at::Tensor sums = at::full({results}, NAN);
      const at::Tensor squares = at::full({results}, NAN);
      loops->moments(
          size,
          {.x = Fixture::data(x),
           .sums = Fixture::floats(sums),
           .squares = Fixture::floats(squares)});
      const at::Tensor tile = tile_of(x, size);
      const at::Tensor total = sum_of(tile, size);
      const std::int64_t summands = tile.numel() / results;
      const auto count = static_cast<double>(summands);
      EXPECT_TRUE(is_near(sums, total, 1e-4));
      EXPECT_TRUE(is_near(
          squares,
          sum_of((tile - total / count).square(), size),
          1e-4));
    });
  }
}

TYPED_TEST(NormLoopsOf, NormaliseAndLeaveTheRest) {
  using Fixture = NormLoopsOf<TypeParam>;
  for (const auto* loops : usable_norm_loops<TypeParam>()) {
    for_sizes([&](const TileSize& size) {
      const at::Tensor x = Fixture::numbers(size);
      const at::Tensor addend = Fixture::numbers(size);
      const at::Tensor y = at::full_like(x, 7);
      const std::int64_t columns = size.is_plane ? 1 : size.columns;
      const at::Tensor scale = at::randn({columns});
      const at::Tensor shift = at::randn({columns});
      loops->normalise(
          size,
          {.x = Fixture::data(x),
           .addend = Fixture::data(addend),
           .scale = Fixture::floats(scale),
           .shift = Fixture::floats(shift),
           .y = Fixture::data(y)});
      EXPECT_TRUE(is_near(
          tile_of(y, size),
          (tile_of(x, size) * scale + shift + tile_of(addend, size)).relu(),
          Fixture::kNear));
      const at::Tensor untouched = y.clone();
      untouched.narrow(0, 0, size.rows).narrow(1, 0, size.columns).fill_(7);
      EXPECT_TRUE(torch::equal(untouched, at::full_like(x, 7)));
    });
  }
}

TYPED_TEST(NormLoopsOf, ReduceAndGradient) {
  using Fixture = NormLoopsOf<TypeParam>;
  for (const auto* loops : usable_norm_loops<TypeParam>()) {
    for_sizes([&](const TileSize& size) {
      const at::Tensor x = Fixture::numbers(size);
      const at::Tensor grad = Fixture::numbers(size);
      const at::Tensor result = at::zeros_like(x);
      const std::int64_t columns = size.is_plane ? 1 : size.columns;
      const at::Tensor scale = at::randn({columns});
      const at::Tensor shift = at::randn({columns});
      const at::Tensor mean = at::randn({columns});
      const at::Tensor sums = at::full({columns}, NAN);
      const at::Tensor products = at::full({columns}, NAN);
      const typename NormLoops<TypeParam>::Passed passed{
          .grad = Fixture::data(grad),
          .x = Fixture::data(x),
          .scale = Fixture::floats(scale),
          .shift = Fixture::floats(shift),
          .floor = 0};
      loops->reduce(
          size,
          {.passed = passed,
           .mean = Fixture::floats(mean),
           .sums = Fixture::floats(sums),
           .products = Fixture::floats(products)});
      loops->gradient(
          size,
          {.passed = passed,
           .mean = Fixture::floats(mean),
           .by_grad = Fixture::floats(scale),
           .by_distance = Fixture::floats(shift),
           .constant = Fixture::floats(mean),
           .result = Fixture::data(result)});
      const at::Tensor tile = tile_of(x, size);
      const at::Tensor through =
          tile_of(grad, size) * (tile * scale + shift > 0);
      const at::Tensor distance = tile - mean;
      EXPECT_TRUE(is_near(sums, sum_of(through, size), 1e-4));
      EXPECT_TRUE(is_near(products, sum_of(through * distance, size), 1e-4));
      EXPECT_TRUE(is_near(
          tile_of(result, size),
          through * scale + distance * shift + mean,
          Fixture::kNear));
    });
  }
}

} // namespace
} // namespace lockstep::kernels
