// SPDX-License-Identifier: BSD-3-Clause
//
// States in the forms that files have them: options that are tensors,
// parameters with names, schedulers of older PyTorch versions. Python writes
// them (tests/oracle/optim_foreign.py), and says how it goes on.
#include <cstdlib>
#include <map>
#include <sstream>

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/optim/optimizers.h"
#include "lockstep/optim/schedules.h"
#include "lockstep/optim/torch_optimizer.h"
#include "lockstep/tensor/checkpoint.h"
#include "lockstep/tensor/state_dict.h"
#include "tests/optim/support.h"
#include "tests/support/python.h"
#include "tests/support/scratch_dir.h"

namespace lockstep::test {

namespace {

using ckpt::Value;
using testing::HasSubstr;

class ForeignState : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder = std::make_unique<ScratchDir>();
    for (const std::string& line :
         python_lines("optim_foreign.py", {folder->path()})) {
      std::istringstream words(line);
      std::string name;
      words >> name;
      for (std::string word; words >> word;) {
        numbers[name].push_back(std::strtod(word.c_str(), nullptr));
      }
    }
  }
  static void TearDownTestSuite() {
    folder.reset();
  }
  static Value file(const std::string& name) {
    return load(*folder / (name + ".pt"));
  }

  static std::unique_ptr<ScratchDir> folder;
  /// What Python's schedulers go on with.
  static std::map<std::string, std::vector<double>> numbers;
};
std::unique_ptr<ScratchDir> ForeignState::folder;
std::map<std::string, std::vector<double>> ForeignState::numbers;

/// A network as the script's.
torch::nn::Sequential network() {
  return torch::nn::Sequential(
      torch::nn::Linear(3, 3),
      torch::nn::BatchNorm1d(3),
      torch::nn::Linear(3, 3));
}

/// Its parameters in one group, or those of one dimension before the others.
std::vector<ParamGroup>
groups_of(const torch::nn::Module& net, bool is_one, bool has_names) {
  std::vector<ParamGroup> groups(is_one ? 1 : 2);
  std::vector<ckpt::List> names(groups.size());
  for (const auto& item : net.named_parameters()) {
    const std::size_t i = is_one || item.value().dim() <= 1 ? 0 : 1;
    groups[i].params.push_back(item.value());
    names[i].items.emplace_back(item.key());
  }
  for (std::size_t i = 0; has_names && i < groups.size(); ++i) {
    groups[i].set("param_names", std::move(names[i]));
  }
  return groups;
}

std::unique_ptr<Scheduler> make_legacy(
    const std::string& name,
    Optimizer& optimizer) {
  if (name.starts_with("step")) {
    return std::make_unique<StepLR>(
        optimizer,
        StepLROptions{.step_size = 7, .gamma = 0.1});
  }
  if (name.starts_with("multi")) {
    return std::make_unique<MultiStepLR>(
        optimizer,
        MultiStepLROptions{.milestones = {1}});
  }
  if (name == "constant") {
    return std::make_unique<ConstantLR>(optimizer);
  }
  if (name.starts_with("cosine")) {
    return std::make_unique<CosineAnnealingLR>(
        optimizer,
        CosineAnnealingLROptions{.t_max = 3});
  }
  return std::make_unique<OneCycleLR>(
      optimizer,
      OneCycleLROptions{.max_lr = {0.5}, .total_steps = 4});
}

} // namespace

TEST_F(ForeignState, OptionsThatAreTensorsAreNumbers) {
  Adam adam(make_params());
  adam.load_state_dict(file("tensor_adam_betas"));
  const ParamGroup& group = adam.param_groups()[0];
  EXPECT_EQ(group.lr(), double{1e-3F});
  EXPECT_EQ(group.betas(), std::pair(double{0.8F}, double{0.99F}));
  EXPECT_EQ(group.number("eps"), double{1e-8F});
  EXPECT_EQ(group.number("weight_decay"), 0);
  EXPECT_THAT(
      repr(group_of(adam.state_dict(), 0)),
      HasSubstr("'lr': 0.0010000000474974513, 'betas': (0.8"));

  SGD sgd(make_params());
  sgd.load_state_dict(file("tensor_sgd"));
  EXPECT_EQ(sgd.param_groups()[0].number("momentum"), double{0.9F});

  torch::optim::Adam torch_adam(make_params(), 0.5);
  load_state_dict(torch_adam, file("tensor_adam"));
  EXPECT_EQ(torch_adam.param_groups()[0].options().get_lr(), double{1e-3F});
}

TEST_F(ForeignState, AnOptionThatIsATensorMayBeSet) {
  SGD sgd(make_params(), {.lr = 0.1});
  sgd.param_groups()[0].set("lr", to_value(torch::tensor(0.25)));
  EXPECT_EQ(sgd.param_groups()[0].lr(), 0.25);
  sgd.param_groups()[0].set("lr", to_value(torch::ones({2})));
  EXPECT_EQ(
      error_of([&] { sgd.step(); }).message,
      "option 'lr' of a parameter group: expected a number, got Tensor");
}

TEST_F(ForeignState, NamedParametersLoadAsTheirNumbers) {
  for (const std::string name : {"one", "two"}) {
    for (const std::string form : {"nested", "flat"}) {
      for (const bool has_names : {false, true}) {
        SCOPED_TRACE(name + form + (has_names ? "named" : ""));
        const auto net = network();
        const auto groups = groups_of(*net, name == "one", has_names);
        AdamW expected(groups);
        expected.load_state_dict(file(name + ".expected"));
        AdamW loaded(groups);
        loaded.load_state_dict(file(name + "." + form));
        EXPECT_EQ(
            repr(*loaded.state_dict().find("state")),
            repr(*expected.state_dict().find("state")));
        for (std::size_t i = 0; i < groups.size(); ++i) {
          EXPECT_EQ(
              loaded.param_groups()[i].number("weight_decay"),
              expected.param_groups()[i].number("weight_decay"));
        }
      }
    }
  }
}

// Of a network whose layers come in another order: names decide, not places.
TEST_F(ForeignState, NamesCountMoreThanTheOrder) {
  const auto net = network();
  std::vector<ParamGroup> groups = groups_of(*net, true, true);
  std::ranges::reverse(groups[0].params);
  ckpt::List names = *groups[0].find("param_names")->as_list();
  std::ranges::reverse(names.items);
  groups[0].set("param_names", names);
  const Value expected = *file("one.expected").find("state");
  for (const char* form : {"one.nested", "one.flat"}) {
    AdamW loaded(groups);
    loaded.load_state_dict(file(form));
    const Value state = *loaded.state_dict().find("state");
    for (std::int64_t i = 0; i < 6; ++i) {
      EXPECT_EQ(repr(*state.find(i)), repr(*expected.find(5 - i))) << form;
    }
  }
}

TEST_F(ForeignState, FlatStatesThatDoNotFitAreRefused) {
  const auto net = network();
  AdamW one(groups_of(*net, true, false));
  EXPECT_THAT(
      error_of([&] { one.load_state_dict(file("two.flat")); }).message,
      HasSubstr("have another 'weight_decay', and are in one group"));
  AdamW fewer(net->children().front()->parameters());
  EXPECT_EQ(
      error_of([&] { fewer.load_state_dict(file("one.flat")); }).message,
      "the loaded state has 6 parameters, the optimizer 2");
}

TEST_F(ForeignState, RefusalsSayWhatTheFileIs) {
  const auto net = network();
  AdamW one(groups_of(*net, true, false));
  EXPECT_EQ(
      error_of([&] { one.load_state_dict(file("two.nested")); }).hint,
      "the file has 2 groups, the optimizer 1: give the parameters in the "
      "groups of the saved run");
  SGD sgd(groups_of(*net, true, false));
  EXPECT_EQ(
      error_of([&] { sgd.load_state_dict(file("one.expected")); }).hint,
      "the options are those of AdamW; this optimizer is SGD");
  EXPECT_EQ(
      error_of([&] { sgd.load_state_dict(Value::dict({})); }).hint,
      "it is empty: the file was saved without an optimizer");
  EXPECT_EQ(
      error_of([&] {
        sgd.load_state_dict(Value::dict({{"optimizer", file("one.expected")}}));
      }).hint,
      "give the entry of the checkpoint that holds it, file[\"optimizer\"]");
}

TEST_F(ForeignState, SchedulersOfOlderVersionsGoOnAsInPython) {
  ASSERT_EQ(numbers.size(), 10U);
  for (const auto& [name, expected] : numbers) {
    SCOPED_TRACE(name);
    const Value saved = file(name);
    SGD sgd(make_params(), {.lr = 0.1, .momentum = 0.9});
    const auto scheduler = make_legacy(name, sgd);
    sgd.load_state_dict(*saved.find("optimizer"));
    scheduler->load_state_dict(*saved.find("scheduler"));
    EXPECT_EQ(scheduler->get_last_lr()[0], sgd.param_groups()[0].lr());
    std::vector<double> got;
    for (std::size_t i = 0; i < expected.size(); i += 2) {
      sgd.step();
      scheduler->step();
      got.push_back(sgd.param_groups()[0].lr());
      got.push_back(sgd.param_groups()[0].number("momentum"));
    }
    EXPECT_EQ(got, expected);
  }
}

TEST_F(ForeignState, AListOfMilestonesCountsAsACounter) {
  SGD sgd(make_params(), {.lr = 0.1});
  MultiStepLR scheduler(sgd, {});
  scheduler.load_state_dict(*file("milestone_list").find("scheduler"));
  EXPECT_EQ(
      repr(*scheduler.state_dict().find("milestones")),
      "Counter({3: 1, 4: 2})");
}

} // namespace lockstep::test
