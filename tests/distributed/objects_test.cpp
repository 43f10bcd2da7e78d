// SPDX-License-Identifier: BSD-3-Clause
//
// Values between ranks. Ranks are threads.
#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/distributed/process_group.h"
#include "lockstep/tensor/state_dict.h"
#include "tests/support/thread_ranks.h"

namespace lockstep::dist {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::IsEmpty;

ckpt::Value value_of(int rank) {
  return ckpt::Value::dict(
      {{"rank", rank},
       {"name", std::string(static_cast<std::size_t>(rank), 'x')}});
}

int rank_in(const ckpt::Value& value) {
  EXPECT_EQ(
      value.find("name")->as_string()->size(),
      static_cast<std::size_t>(*value.find("rank")->as_int()));
  return static_cast<int>(*value.find("rank")->as_int());
}

TEST(Objects, AreGatheredAndHandedOut) {
  const auto errors = run_thread_ranks(3, [](const ProcessGroup& group) {
    std::vector<int> ranks;
    for (const auto& value : all_gather_object(group, value_of(group.rank()))) {
      ranks.push_back(rank_in(value));
    }
    EXPECT_THAT(ranks, ElementsAre(0, 1, 2));
    const auto gathered = gather_object(group, value_of(group.rank()), 1);
    ASSERT_EQ(gathered.size(), group.rank() == 1 ? 3 : 0);
    if (group.rank() == 1) {
      EXPECT_EQ(rank_in(gathered[2]), 2);
    }
    const auto given = broadcast_object(group, value_of(group.rank()), 2);
    EXPECT_EQ(rank_in(given), 2);
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

TEST(Objects, MayHoldTensors) {
  const auto errors = run_thread_ranks(2, [](const ProcessGroup& group) {
    const auto own = ckpt::Value::dict(
        {{"weights", to_value(torch::full({2, 3}, group.rank() + 0.5))}});
    const auto all = all_gather_object(group, own);
    const at::Tensor of_one = to_tensor(*all[1].find("weights")->as_tensor());
    EXPECT_TRUE(torch::equal(of_one, torch::full({2, 3}, 1.5)));
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

} // namespace
} // namespace lockstep::dist
