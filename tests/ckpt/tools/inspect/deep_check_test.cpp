// SPDX-License-Identifier: BSD-3-Clause
//
// `verify --deep`: what the elements of tensors tell.
#include <complex>
#include <limits>

#include <gmock/gmock.h>

#include "lockstep/ckpt/inspect.h"
#include "lockstep/ckpt/tensor.h"
#include "tests/ckpt/value_fixture.h"

namespace lockstep::ckpt {
namespace {

TEST(DeepCheck, CountsWhatIsNotFinite) {
  const float inf = std::numeric_limits<float>::infinity();
  const Value root = Value::dict(
      {{"good", tensor_of<float>(DType::kFloat32, {1, 2}, {2})},
       {"bad",
        tensor_of<float>(DType::kFloat32, {inf, inf - inf, -inf, 0}, {4})},
       {"complex",
        tensor_of<std::complex<float>>(
            DType::kComplex64,
            {{1, 2}, {0, -inf}, {inf, inf - inf}},
            {3})},
       {"ints", tensor_of<std::int64_t>(DType::kInt64, {7}, {})}});
  const auto deep = check_elements(root);
  ASSERT_TRUE(deep) << to_string(deep.error());
  EXPECT_EQ(deep->elements, 10U);
  EXPECT_EQ(deep->digest.size(), 64U);
  ASSERT_EQ(deep->not_finite.size(), 2U);
  EXPECT_EQ(deep->not_finite[0].name, "bad");
  EXPECT_EQ(deep->not_finite[0].nan_count, 1U);
  EXPECT_EQ(deep->not_finite[0].inf_count, 2U);
  EXPECT_EQ(deep->not_finite[1].name, "complex");
  EXPECT_EQ(deep->not_finite[1].nan_count, 1U);
  EXPECT_EQ(deep->not_finite[1].inf_count, 1U);
  const auto stats = tensor_stats(*root.find("complex")->as_tensor());
  ASSERT_TRUE(stats);
  EXPECT_EQ(stats->nan_count, 1U);
  EXPECT_EQ(stats->inf_count, 1U);
  EXPECT_FALSE(stats->max);
}

TEST(TensorStats, OfANegativeViewAreWhatPythonShows) {
  Tensor tensor = floats({2, -4});
  tensor.is_neg = true;
  const auto stats = tensor_stats(tensor);
  ASSERT_TRUE(stats) << to_string(stats.error());
  EXPECT_EQ(stats->min, -2);
  EXPECT_EQ(stats->max, 4);
  EXPECT_THAT(stats->head, testing::ElementsAre("-2.0", "4.0"));
}

} // namespace
} // namespace lockstep::ckpt
