// SPDX-License-Identifier: BSD-3-Clause
//
// Every type of number through every collective, over both backends of the
// CPU: it comes out right, or is refused on all ranks with a text that names
// it, and the group goes on. Over Gloo what Python's functions carry is carried
// (torch 2.13, and gather of complex numbers in addition).
#include <array>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/distributed/distributed_data_parallel.h"
#include "tests/support/thread_ranks.h"

namespace lockstep::dist {
namespace {

using testing::AllOf;
using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr int kRanks = 2;

/// Small numbers, exact in every type; other ones for each `place`.
at::Tensor numbers(int place, at::ScalarType type) {
  const at::Tensor real = torch::arange(1.0, 5.0) + place;
  if (type == at::kBool) {
    return real.remainder(2).to(type);
  }
  return c10::isComplexType(type) ? torch::complex(real, 2 * real - 1).to(type)
                                  : real.to(type);
}

/// Of the numbers of all ranks, `place` further on.
at::Tensor joined(int place, at::ScalarType type, ReduceOp op) {
  const auto wide = c10::isComplexType(type) ? at::kComplexDouble : at::kDouble;
  at::Tensor all = numbers(place, type).to(wide);
  for (int rank = 1; rank < kRanks; ++rank) {
    const at::Tensor next = numbers(place + rank, type).to(wide);
    all = op == ReduceOp::kSum       ? all + next
          : op == ReduceOp::kProduct ? all * next
          : op == ReduceOp::kMin     ? torch::minimum(all, next)
                                     : torch::maximum(all, next);
  }
  return all.to(type);
}

/// Rows of tensors.
std::vector<at::Tensor> of_ranks(at::ScalarType type) {
  std::vector<at::Tensor> all;
  for (int rank = 0; rank < kRanks; ++rank) {
    all.push_back(numbers(rank, type));
  }
  return all;
}

struct Collective {
  const char* name = nullptr;
  /// Empty for collectives that only move numbers.
  std::optional<ReduceOp> op = {};
  std::function<std::vector<at::Tensor>(const ProcessGroup&, at::ScalarType)>
      run = {};
  std::function<std::vector<at::Tensor>(int rank, at::ScalarType)> expected =
      {};
};

Collective all_reduce_by(const char* name, ReduceOp op) {
  return {
      .name = name,
      .op = op,
      .run =
          [op](const ProcessGroup& group, at::ScalarType type) {
            at::Tensor mine = numbers(group.rank(), type);
            group.all_reduce(mine, op);
            return std::vector{mine};
          },
      .expected =
          [op](int /*rank*/, at::ScalarType type) {
            return std::vector{joined(0, type, op)};
          }};
}

std::vector<Collective> collectives() {
  const auto all = [](int /*rank*/, at::ScalarType type) {
    return of_ranks(type);
  };
  return {
      all_reduce_by("all_reduce", ReduceOp::kSum),
      all_reduce_by("all_reduce product", ReduceOp::kProduct),
      all_reduce_by("all_reduce min", ReduceOp::kMin),
      all_reduce_by("all_reduce max", ReduceOp::kMax),
      {.name = "broadcast",
       .run =
           [](const ProcessGroup& group, at::ScalarType type) {
             at::Tensor mine = numbers(group.rank(), type);
             group.broadcast(mine, 1);
             return std::vector{mine};
           },
       .expected =
           [](int /*rank*/, at::ScalarType type) {
             return std::vector{numbers(1, type)};
           }},
      {.name = "all_gather",
       .run =
           [](const ProcessGroup& group, at::ScalarType type) {
             return group.all_gather(numbers(group.rank(), type));
           },
       .expected = all},
      {.name = "gather",
       .run =
           [](const ProcessGroup& group, at::ScalarType type) {
             return group.gather(numbers(group.rank(), type), 1);
           },
       .expected =
           [all](int rank, at::ScalarType type) {
             return rank == 1 ? all(rank, type) : std::vector<at::Tensor>();
           }},
      {.name = "scatter",
       .run =
           [](const ProcessGroup& group, at::ScalarType type) {
             at::Tensor mine = torch::empty({4}, type);
             group.scatter(
                 mine,
                 group.rank() == 1 ? of_ranks(type) : std::vector<at::Tensor>(),
                 1);
             return std::vector{mine};
           },
       .expected =
           [](int rank, at::ScalarType type) {
             return std::vector{numbers(rank, type)};
           }},
      {.name = "reduce_scatter",
       .op = ReduceOp::kSum,
       .run =
           [](const ProcessGroup& group, at::ScalarType type) {
             std::vector<at::Tensor> parts;
             for (int rank = 0; rank < kRanks; ++rank) {
               parts.push_back(numbers(group.rank() + rank, type));
             }
             return std::vector{group.reduce_scatter(parts)};
           },
       .expected =
           [](int rank, at::ScalarType type) {
             return std::vector{joined(rank, type, ReduceOp::kSum)};
           }},
      {.name = "send",
       .run =
           [](const ProcessGroup& group, at::ScalarType type) {
             at::Tensor mine = numbers(group.rank(), type);
             if (group.rank() == 0) {
               group.send(mine, 1);
             } else {
               group.recv(mine, 0);
             }
             return std::vector{mine};
           },
       .expected =
           [](int /*rank*/, at::ScalarType type) {
             return std::vector{numbers(0, type)};
           }}};
}

constexpr std::array kTypes{
    at::kByte,
    at::kChar,
    at::kShort,
    at::kInt,
    at::kLong,
    at::kHalf,
    at::kFloat,
    at::kDouble,
    at::kBFloat16,
    at::kBool,
    at::kComplexHalf,
    at::kComplexFloat,
    at::kComplexDouble,
    at::kFloat8_e5m2,
    at::kFloat8_e4m3fn,
    at::kUInt16,
    at::kUInt32,
    at::kUInt64};

bool has_no_arithmetic(at::ScalarType type) {
  return c10::isFloat8Type(type) || c10::isBarebonesUnsignedType(type);
}

/// What a backend does not carry. Gloo: what Python's says "Invalid scalar
/// type" to, and reductions of complex numbers that have no order.
bool is_refused(
    const std::string& backend,
    const Collective& collective,
    at::ScalarType type) {
  const bool is_sum = collective.op == ReduceOp::kSum;
  if (c10::isComplexType(type)) {
    const bool is_product = collective.op == ReduceOp::kProduct;
    return collective.op && !is_sum &&
           !(is_product && backend == "shm" && type != at::kComplexHalf);
  }
  if (backend == "shm") {
    return collective.op && has_no_arithmetic(type);
  }
  return collective.name != std::string("send") &&
         (type == at::kShort || has_no_arithmetic(type));
}

bool are_same(
    const std::vector<at::Tensor>& found,
    const std::vector<at::Tensor>& expected) {
  bool are = found.size() == expected.size();
  for (std::size_t i = 0; i < found.size() && are; ++i) {
    const at::Tensor a = found[i].contiguous();
    const at::Tensor b = expected[i].contiguous();
    are = a.scalar_type() == b.scalar_type() && a.nbytes() == b.nbytes() &&
          std::memcmp(a.const_data_ptr(), b.const_data_ptr(), a.nbytes()) == 0;
  }
  return are;
}

void try_type(
    const ProcessGroup& group,
    const Collective& collective,
    at::ScalarType type) {
  const std::string what =
      format("{} of {}", collective.name, c10::toString(type));
  const bool is_refused_here = is_refused(group.backend(), collective, type);
  try {
    const auto found = collective.run(group, type);
    EXPECT_FALSE(is_refused_here) << what << " is not refused";
    EXPECT_TRUE(are_same(found, collective.expected(group.rank(), type)))
        << what;
  } catch (const Exception& error) {
    EXPECT_TRUE(is_refused_here) << what << ": " << error.what();
    EXPECT_EQ(error.error().code, ErrorCode::kInvalidArgument) << error.what();
    EXPECT_THAT(
        error.what(),
        AllOf(
            HasSubstr(c10::toString(type)),
            HasSubstr("convert the tensor first")))
        << what;
  }
  at::Tensor ranks = torch::ones({2});
  group.all_reduce(ranks);
  EXPECT_EQ(ranks[1].item<int>(), kRanks) << "the group ended with " << what;
}

class CarriedTypes : public testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(
    Backends,
    CarriedTypes,
    testing::Values("gloo", "shm"));

TEST_P(CarriedTypes, AreRightOrRefusedAndTheGroupGoesOn) {
  const auto errors = run_thread_ranks(
      kRanks,
      [](const ProcessGroup& group) {
        for (const at::ScalarType type : kTypes) {
          for (const Collective& collective : collectives()) {
            try_type(group, collective, type);
          }
        }
      },
      {.backend = GetParam(), .timeout = std::chrono::seconds(60)});
  EXPECT_THAT(errors, Each(IsEmpty()));
}

/// A model with numbers of one type.
struct Weighted : torch::nn::Module {
  explicit Weighted(at::ScalarType type)
      : weight(register_parameter("weight", numbers(1, type))),
        seen(register_buffer("seen", numbers(2, type))) {}
  at::Tensor forward(const at::Tensor& x) {
    return torch::view_as_real(x.to(weight.scalar_type()) * weight)
        .pow(2)
        .sum();
  }
  at::Tensor weight;
  at::Tensor seen;
};

TEST_P(CarriedTypes, MemoryOfTheGroupIsOfTheTypeThatIsAsked) {
  const auto errors = run_thread_ranks(
      kRanks,
      [](const ProcessGroup& group) {
        for (const auto type : {at::kComplexFloat, at::kFloat, at::kLong}) {
          at::Tensor mine = group.allocate_tensor(4, type);
          mine.copy_(numbers(group.rank(), type));
          group.all_reduce(mine);
          EXPECT_TRUE(are_same({mine}, {joined(0, type, ReduceOp::kSum)}));
        }
      },
      {.backend = GetParam(), .timeout = std::chrono::seconds(60)});
  EXPECT_THAT(errors, Each(IsEmpty()));
}

TEST_P(CarriedTypes, ComplexParametersAreTrained) {
  for (const auto type : {at::kComplexFloat, at::kComplexDouble}) {
    for (const bool is_view : {false, true}) {
      const auto errors = run_thread_ranks(
          kRanks,
          [&](const ProcessGroup& group) {
            const auto net = std::make_shared<Weighted>(type);
            {
              const torch::NoGradGuard no_grad;
              net->weight.mul_(group.rank() + 1); // rank 0's are all ranks'
              net->seen.mul_(group.rank() + 1);
            }
            DistributedDataParallel model(
                net,
                {.process_group = group, .gradient_as_bucket_view = is_view});
            const auto alone = std::make_shared<Weighted>(type);
            for (int step = 0; step < 3; ++step) {
              model->zero_grad();
              alone->zero_grad();
              model->forward(torch::full({4}, group.rank() + 1.0)).backward();
              for (int rank = 0; rank < kRanks; ++rank) {
                (alone->forward(torch::full({4}, rank + 1.0)) / kRanks)
                    .backward();
              }
              EXPECT_TRUE(torch::allclose(
                  net->weight.grad(),
                  alone->weight.grad(),
                  1e-6));
            }
            EXPECT_TRUE(torch::equal(net->weight, alone->weight));
            EXPECT_TRUE(torch::equal(net->seen, alone->seen));
          },
          {.backend = GetParam(), .timeout = std::chrono::seconds(60)});
      EXPECT_THAT(errors, Each(IsEmpty())) << c10::toString(type);
    }
  }
}

} // namespace
} // namespace lockstep::dist
