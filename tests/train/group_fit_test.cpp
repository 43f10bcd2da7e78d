// SPDX-License-Identifier: BSD-3-Clause
//
// The parameters behind the numbers of a file's groups.
#include "lockstep/train/loop/group_fit.h"

#include <functional>
#include <optional>

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/base/error.h"
#include "lockstep/optim/optimizers.h"

namespace lockstep::train {
namespace {

namespace nn = torch::nn;
using ::testing::HasSubstr;

/// Convolutions and norms of equal sizes: shapes alone do not tell groups
/// apart.
nn::Sequential network() {
  return nn::Sequential(
      nn::Conv2d(nn::Conv2dOptions(3, 4, 3)),
      nn::BatchNorm2d(4),
      nn::Conv2d(nn::Conv2dOptions(4, 4, 3)),
      nn::BatchNorm2d(4),
      nn::Linear(4, 4));
}

bool is_norm(const std::string& name) {
  return name.starts_with("1.") || name.starts_with("3.");
}
bool is_bias(const std::string& name) {
  return name.ends_with("bias");
}

/// How a script groups: the number of the group of each parameter.
using Grouping =
    std::function<std::size_t(const std::string& name, const at::Tensor&)>;

struct Case {
  const char* name = "";
  Grouping group_of = {};
  /// Weight decay of each group.
  std::vector<double> decays = {};
};

std::vector<ParamGroup> grouped(const nn::Module& net, const Case& one) {
  std::vector<ParamGroup> groups(one.decays.size());
  for (std::size_t i = 0; i < groups.size(); ++i) {
    groups[i].set("weight_decay", one.decays[i]);
  }
  for (const auto& item : net.named_parameters()) {
    groups[one.group_of(item.key(), item.value())].params.push_back(
        item.value());
  }
  return groups;
}

/// The state after a step, or before the first one.
ckpt::Value state_of(
    nn::Sequential& net,
    const std::vector<ParamGroup>& groups,
    bool has_state) {
  SGD optimizer(groups, {.lr = 0.1, .momentum = 0.9});
  for (const at::Tensor& param : net->parameters()) {
    param.mutable_grad() = torch::ones_like(param);
  }
  if (has_state) {
    optimizer.step();
  }
  return optimizer.state_dict();
}

const std::vector<Case>& cases() {
  static const std::vector<Case> all{
      {"no decay for one dimension",
       [](auto&, const at::Tensor& p) -> std::size_t { return p.dim() > 1; },
       {0, 1e-4}},
      {"the same, last",
       [](auto&, const at::Tensor& p) -> std::size_t { return p.dim() <= 1; },
       {1e-4, 0}},
      {"no decay for biases",
       [](auto& name, auto&) -> std::size_t { return is_bias(name); },
       {1e-4, 0}},
      {"no decay for norms",
       [](auto& name, auto&) -> std::size_t { return is_norm(name); },
       {1e-4, 0}},
      {"biases, weights, norms",
       [](auto& name, auto&) -> std::size_t {
         return is_bias(name) ? 0 : is_norm(name) ? 2 : 1;
       },
       {0, 1e-4, 0}},
      {"norms, other biases and weights",
       [](auto& name, auto&) -> std::size_t {
         return is_norm(name) ? 0 : is_bias(name) ? 1 : 2;
       },
       {0, 0, 1e-4}},
      {"layers with and without decay",
       [](auto& name, const at::Tensor& p) -> std::size_t {
         const std::size_t block = name[0] < '2' ? 0 : name[0] < '4' ? 2 : 4;
         return block + (p.dim() <= 1 ? 1 : 0);
       },
       {1e-4, 0, 1e-4, 0, 1e-4, 0}}};
  return all;
}

void expect_fits(
    const std::vector<ParamGroup>& groups,
    const ckpt::Value& state,
    const nn::Module& net) {
  const auto fit = fit_groups(state, net);
  ASSERT_TRUE(fit);
  ASSERT_EQ(fit->groups.size(), groups.size());
  for (std::size_t g = 0; g < groups.size(); ++g) {
    ASSERT_EQ(fit->groups[g].params.size(), groups[g].params.size());
    for (std::size_t i = 0; i < groups[g].params.size(); ++i) {
      EXPECT_TRUE(fit->groups[g].params[i].is_same(groups[g].params[i]));
    }
  }
}

TEST(GroupFit, FindsTheUsualGroupings) {
  for (const Case& one : cases()) {
    SCOPED_TRACE(one.name);
    nn::Sequential net = network();
    const auto groups = grouped(*net, one);
    expect_fits(groups, state_of(net, groups, /*has_state=*/true), *net);
  }
}

TEST(GroupFit, NeedsNoStateWhereSizesTellIt) {
  for (const std::size_t i : {0U, 1U, 4U, 5U}) {
    SCOPED_TRACE(cases()[i].name);
    nn::Sequential net = network();
    const auto groups = grouped(*net, cases()[i]);
    expect_fits(groups, state_of(net, groups, /*has_state=*/false), *net);
  }
}

TEST(GroupFit, NamesCountMoreThanOrder) {
  nn::Sequential net = network();
  std::vector<ParamGroup> groups(2);
  std::vector<ckpt::List> names(2);
  std::size_t i = 0;
  std::vector<torch::OrderedDict<std::string, at::Tensor>::Item> items =
      net->named_parameters().items();
  std::ranges::reverse(items);
  for (const auto& item : items) {
    groups[i % 2].params.push_back(item.value());
    names[i++ % 2].items.emplace_back("module." + item.key());
  }
  groups[0].set("param_names", names[0]);
  groups[1].set("param_names", names[1]);
  expect_fits(groups, state_of(net, groups, /*has_state=*/true), *net);
}

/// One group as a script gave it: the parameters `order`, with their names if
/// `prefix` says how these begin.
ckpt::Value one_group(
    nn::Sequential& net,
    const std::vector<std::size_t>& order,
    const std::optional<std::string>& prefix) {
  const auto named = net->named_parameters();
  ParamGroup group;
  ckpt::List names;
  for (const std::size_t i : order) {
    group.params.push_back(named[i].value());
    names.items.emplace_back(prefix.value_or("") + named[i].key());
  }
  if (prefix) {
    group.set("param_names", std::move(names));
  }
  return state_of(net, {group}, /*has_state=*/true);
}

TEST(GroupFit, NamesCountMoreThanOrderInOneGroupToo) {
  nn::Sequential net(nn::Linear(4, 4), nn::Linear(4, 4));
  const std::vector<std::size_t> last_first{2, 3, 0, 1};
  for (const char* prefix : {"", "module.", "_orig_mod.module."}) {
    SCOPED_TRACE(prefix);
    const auto fit = fit_groups(one_group(net, last_first, prefix), *net);
    ASSERT_TRUE(fit);
    ASSERT_EQ(fit->groups.size(), 1U);
    for (std::size_t i = 0; i < last_first.size(); ++i) {
      EXPECT_TRUE(
          fit->groups[0].params[i].is_same(net->parameters()[last_first[i]]));
    }
    EXPECT_THAT(fit->note, HasSubstr("by their names"));
    EXPECT_FALSE(fit_groups(one_group(net, {0, 1, 2, 3}, prefix), *net));
  }
  // Nothing says that it is not the model's order.
  EXPECT_FALSE(fit_groups(one_group(net, last_first, std::nullopt), *net));
}

TEST(GroupFit, OneGroupIsInTheModelsOrder) {
  nn::Sequential net = network();
  EXPECT_FALSE(fit_groups(
      state_of(
          net,
          std::vector<ParamGroup>{{.params = net->parameters()}},
          /*has_state=*/true),
      *net));
}

Error refusal(const ckpt::Value& state, const nn::Module& net) {
  try {
    fit_groups(state, net);
  } catch (const Exception& error) {
    return error.error();
  }
  return {.message = "taken"};
}

TEST(GroupFit, WhatCannotBeToldApartIsRefused) {
  nn::Sequential net = network();
  const auto odd = [&](bool has_state) {
    std::size_t i = 0;
    const Case every_third{
        "every third one",
        [&](auto&, auto&) -> std::size_t { return i++ % 3 == 0 ? 0 : 1; },
        {1e-4, 1e-4}};
    return state_of(net, grouped(*net, every_third), has_state);
  };
  const Error unusual = refusal(odd(true), *net);
  EXPECT_EQ(unusual.detail, "E_PARAM_GROUPS");
  EXPECT_EQ(
      unusual.message,
      "the optimizer of the file has 2 groups with 4, 6 parameters, and no "
      "usual way to group the model's parameters fits");
  EXPECT_THAT(unusual.hint, HasSubstr("--initial-checkpoint"));
  EXPECT_THAT(unusual.hint, HasSubstr("param_names"));
  EXPECT_THAT(
      refusal(odd(false), *net).message,
      HasSubstr("several ways to group the model's parameters fit"));
  nn::Sequential larger = network();
  larger->push_back(nn::Linear(4, 4));
  EXPECT_EQ(
      refusal(state_of(net, grouped(*net, cases()[0]), true), *larger).message,
      "the optimizer of the file has 2 groups with 7, 3 parameters, the model "
      "12 parameters in all");
}

// Decays and rates do not tell how a script grouped.
TEST(GroupFit, WaysThatFitAsWellAreNamedNotChosen) {
  constexpr const char* kClasses =
      "'parameters of one dimension, and the others'";
  constexpr const char* kParts = "'one part after the other'";
  struct Unclear {
    const char* name = "";
    /// The group of each parameter: two weights and two biases, in turn.
    std::vector<std::size_t> group_of = {};
    std::vector<double> decays = {};
    bool has_state = false;
    std::vector<const char*> named = {};
  };
  const std::vector<Unclear> all{
      {"a new head without decay",
       {0, 0, 1, 1},
       {1e-4, 0},
       false,
       {kClasses, kParts}},
      {"decay on the head alone",
       {0, 0, 1, 1},
       {0, 1e-4},
       false,
       {kClasses, kParts}},
      {"no decay for biases", {0, 1, 0, 1}, {1e-4, 0}, false, {kParts}},
      {"the head first", {1, 1, 0, 0}, {0, 0}, true, {kParts}},
      {"a group for each, from the last layer on",
       {2, 3, 0, 1},
       {1e-4, 0, 1e-4, 0},
       true,
       {kParts, ", the last one first'"}},
      {"from the first layer on",
       {0, 1, 2, 3},
       {1e-4, 0, 1e-4, 0},
       true,
       {kParts, ", the last one first'"}},
      {"the same without decay",
       {0, 1, 2, 3},
       {0, 0, 0, 0},
       true,
       {kParts, ", the last one first'"}}};
  for (const Unclear& one : all) {
    SCOPED_TRACE(one.name);
    nn::Sequential net(nn::Linear(4, 4), nn::Linear(4, 4));
    std::size_t i = 0;
    const Case grouping{
        one.name,
        [&](auto&, auto&) -> std::size_t { return one.group_of[i++]; },
        one.decays};
    const Error error =
        refusal(state_of(net, grouped(*net, grouping), one.has_state), *net);
    EXPECT_EQ(error.detail, "E_PARAM_GROUPS");
    for (const char* way : one.named) {
      EXPECT_THAT(error.message, HasSubstr(way));
    }
  }
  nn::Sequential net = network();
  EXPECT_THAT(
      refusal(state_of(net, grouped(*net, cases()[3]), false), *net).message,
      HasSubstr(
          "'parameters of norms, and the others', " + std::string(kParts)));
}

TEST(GroupFit, WhatIsFrozenMayBeLeftOut) {
  nn::Sequential net = network();
  net->parameters().front().requires_grad_(false);
  std::vector<ParamGroup> groups = grouped(*net, cases()[1]);
  std::erase_if(groups[0].params, [](const at::Tensor& param) {
    return !param.requires_grad();
  });
  expect_fits(groups, state_of(net, groups, /*has_state=*/true), *net);
}

} // namespace
} // namespace lockstep::train
