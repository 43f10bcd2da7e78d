// SPDX-License-Identifier: BSD-3-Clause
//
// Values of programs beside tensors: numbers of replicas and of samples.
#include <cstdint>
#include <vector>

#include <gmock/gmock.h>
#include <torch/types.h>

#include "lockstep/data/loader.h"
#include "lockstep/data/made_dataset.h"
#include "lockstep/parallel/functional.h"
#include "lockstep/program/program.h"
#include "tests/program/program_cases.h"

namespace lockstep {

struct HeldValue {
  ProgramValue value = {};
};
template <>
struct Structure<HeldValue> : Fields<&HeldValue::value> {};

namespace {

using test::error_of;
using testing::HasSubstr;

ProgramValue result(ProgramValue beside) {
  return ProgramValue::tuple({torch::ones({2}), std::move(beside)});
}

TEST(ProgramValue, NumbersOfReplicasAreNotJoined) {
  for (const ProgramValue& number :
       {ProgramValue(3), ProgramValue(0.5), ProgramValue(true)}) {
    const ProgramValue one = result(ProgramValue::dict({{"rows", number}}));
    EXPECT_THAT(
        error_of([&] {
          parallel::gather(std::vector{one, one}, c10::kCPU);
        }),
        HasSubstr("replica 0 returned " + number.describe()));
    EXPECT_EQ(
        parallel::gather(std::vector{one}, c10::kCPU).describe(),
        one.describe());
  }
  for (const ProgramValue& other : {ProgramValue(), ProgramValue("text")}) {
    const std::vector both{result(other), result(other)};
    const ProgramValue joined = parallel::gather(both, c10::kCPU);
    EXPECT_EQ(joined.describe(), both.front().describe());
    EXPECT_EQ(joined[0].tensor().size(0), 4);
  }
}

TEST(ProgramValue, NumbersOfSamplesBecomeTensors) {
  const auto data = make_dataset(4, [](std::int64_t i) {
    return ProgramValue::dict(
        {{"image", torch::full({2}, static_cast<double>(i))},
         {"label",
          ProgramValue::tuple({7, i, 0.5 * static_cast<double>(i), i > 0})}});
  });
  Loader loader(data, {.batch_size = 4});
  loader.start_epoch({0, 1, 2, 3}, 0);
  const ProgramValue batch = loader.next().value();
  EXPECT_EQ(batch["image"].tensor().size(0), 4);
  const std::vector expected{
      torch::tensor({7, 7, 7, 7}),
      torch::arange(4),
      torch::tensor({0.0, 0.5, 1.0, 1.5}, torch::kDouble),
      torch::tensor({false, true, true, true})};
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const at::Tensor got = batch["label"][i].tensor();
    EXPECT_EQ(got.scalar_type(), expected[i].scalar_type());
    EXPECT_TRUE(got.equal(expected[i])) << got;
  }
}

TEST(ProgramValue, NumbersInAStructAreRefused) {
  const auto data = make_dataset(2, [](std::int64_t /*i*/) {
    return HeldValue{.value = result(3)};
  });
  Loader loader(data, {.batch_size = 2});
  loader.start_epoch({0, 1}, 0);
  EXPECT_THAT(
      error_of([&] { loader.next(); }),
      HasSubstr("a sample holds 3 beside tensors"));
}

TEST(ProgramValue, ANumberThatInt64DoesNotHoldIsRefused) {
  EXPECT_EQ(ProgramValue(std::uint64_t{INT64_MAX}).integer(), INT64_MAX);
  EXPECT_THAT(
      error_of([] { ProgramValue(std::uint64_t{INT64_MAX} + 1); }),
      HasSubstr("up to 9223372036854775807; got 9223372036854775808"));
}

} // namespace
} // namespace lockstep
