// SPDX-License-Identifier: BSD-3-Clause
//
// Parts of a model that a run leaves as they are are as before after it.
#include "lockstep/train/hooks/frozen.h"

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/base/error.h"
#include "tests/train/dropout_net.h"
#include "tests/train/trainer_fixture.h"

namespace lockstep::train {
namespace {

using ::testing::HasSubstr;

class FrozenTest : public TrainerFixture {
 protected:
  TrainConfig frozen(const std::string& folder) {
    TrainConfig config = small(folder);
    config.freeze = "first,norm";
    return config;
  }
  void expect_free() {
    for (const auto& item : net_->named_parameters()) {
      EXPECT_TRUE(item.value().requires_grad()) << item.key();
    }
    EXPECT_TRUE(net_->norm->is_training());
  }
  at::Tensor first() {
    return net_->first->weight.detach().clone();
  }
  at::Tensor mean() {
    return net_->norm->running_mean.clone();
  }

  const std::shared_ptr<DropoutNet> net_ = std::make_shared<DropoutNet>();
};

TEST_F(FrozenTest, AnotherRunOfTheModuleTrainsAllOfIt) {
  const at::Tensor weights = first();
  const at::Tensor statistics = mean();
  TrainConfig config = frozen("run");
  const OwnParts own = named_parts(config, {.model = net_});
  Trainer before(config, {.own = own});
  before.run();
  expect_free(); // while the trainer lives, too
  EXPECT_TRUE(first().equal(weights));
  EXPECT_TRUE(mean().equal(statistics));
  config.freeze = "";
  config.output = dir_ / "next";
  {
    TrainConfig again = frozen("again");
    Trainer over(again, {.own = own});
    over.run();
    net_->first->weight.set_requires_grad(false); // the program's own
  }
  EXPECT_FALSE(net_->first->weight.requires_grad());
  net_->first->weight.set_requires_grad(true);
  train(config, {.own = own});
  EXPECT_FALSE(first().equal(weights));
  EXPECT_FALSE(mean().equal(statistics));
}

TEST_F(FrozenTest, AResumedRunThawsWhatIsDue) {
  TrainConfig config = frozen("run");
  config.epochs = 1;
  config.unfreeze_at = 2;
  train(config, {.own = {.model = net_}});
  const at::Tensor weights = first();
  const at::Tensor statistics = mean();
  config.epochs = 2;
  config.resume = config.output;
  config.resume_exact = true;
  train(config, {.own = {.model = net_}});
  EXPECT_FALSE(first().equal(weights));
  EXPECT_FALSE(mean().equal(statistics));
  expect_free();
}

TEST_F(FrozenTest, ARunThatFailsLeavesNothingFrozen) {
  TrainConfig config = frozen("run");
  OwnParts own = named_parts(config, {.model = net_});
  own.task.loss = [](const at::Tensor&, const at::Tensor&) -> at::Tensor {
    throw std::runtime_error("of the program");
  };
  EXPECT_THROW(train(config, {.own = own}), Exception);
  expect_free();
  { const Trainer never_run(config, {.own = own}); }
  expect_free();
  for (const std::string names : {"first,nothing", "first,norm,last"}) {
    EXPECT_THROW(freeze(*net_, {.names = names}), Exception);
    expect_free();
  }
}

TEST_F(FrozenTest, WhatTheProgramFrozeStaysSo) {
  net_->train();
  net_->norm->eval();
  net_->first->bias.set_requires_grad(false);
  train(frozen("run"), {.own = {.model = net_}});
  EXPECT_FALSE(net_->norm->is_training());
  EXPECT_FALSE(net_->first->bias.requires_grad());
  EXPECT_TRUE(net_->first->weight.requires_grad());
  EXPECT_TRUE(net_->is_training());
}

} // namespace
} // namespace lockstep::train
