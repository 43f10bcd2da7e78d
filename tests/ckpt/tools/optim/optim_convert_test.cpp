// SPDX-License-Identifier: BSD-3-Clause
#include <gmock/gmock.h>

#include "lockstep/ckpt/load.h"
#include "lockstep/ckpt/optim.h"
#include "lockstep/ckpt/print.h"
#include "lockstep/ckpt/tensor.h"
#include "lockstep/ckpt/verify.h"
#include "tests/ckpt/value_fixture.h"
#include "tests/support/memory_fs.h"

namespace lockstep::ckpt {
namespace {

using testing::ElementsAre;

Value step(float count) {
  return tensor_of<float>(DType::kFloat32, {count}, {});
}

// Two groups; the second parameter was never used.
Value adam() {
  const auto group = [](double lr, Value params) {
    return Value::dict(
        {{"lr", lr},
         {"betas", Value::tuple({0.9, 0.999})},
         {"eps", 1e-8},
         {"weight_decay", 0},
         {"amsgrad", false},
         {"maximize", false},
         {"foreach", None()},
         {"capturable", false},
         {"differentiable", false},
         {"fused", None()},
         {"params", std::move(params)}});
  };
  const auto entry = [](float count, float value) {
    return Value::dict(
        {{"step", step(count)},
         {"exp_avg", floats({value})},
         {"exp_avg_sq", floats({value * value})}});
  };
  return Value::dict(
      {{"state", Value::dict({{0, entry(3, 2)}, {2, entry(4, 5)}})},
       {"param_groups",
        Value::list(
            {group(0.1, Value::list({0, 1})), group(0.2, Value::list({2}))})}});
}

Value sgd() {
  return Value::dict(
      {{"state",
        Value::dict({{0, Value::dict({{"momentum_buffer", floats({2})}})}})},
       {"param_groups",
        Value::list({Value::dict(
            {{"lr", 0.1},
             {"momentum", 0.9},
             {"dampening", 0},
             {"weight_decay", 0.0},
             {"nesterov", true},
             {"maximize", false},
             {"foreach", None()},
             {"differentiable", false},
             {"fused", None()},
             {"params", Value::list({0})}})})}});
}

// As C++ would store it, through a file.
Value through_cpp(const Value& state) {
  const auto made = optim_to_cpp(state);
  EXPECT_TRUE(made) << to_string(made.error());
  MemoryFs fs;
  const Status status = save("o.pt", made->root, {.format = "libtorch"}, fs);
  EXPECT_TRUE(status) << to_string(status.error());
  const auto file = load("o.pt", {}, fs);
  EXPECT_TRUE(file) << to_string(file.error());
  return file->root;
}

std::string detail_of(const Result<OptimState>& state) {
  return state ? "" : state.error().detail;
}

TEST(OptimConvert, ComesBackFromCpp) {
  for (const Value& state : {adam(), sgd()}) {
    const auto back = optim_to_python(through_cpp(state));
    ASSERT_TRUE(back) << to_string(back.error());
    EXPECT_EQ(*digest(back->root), *digest(state));
    EXPECT_EQ(
        to_text(*back->root.find("param_groups")),
        to_text(*optim_to_python(through_cpp(back->root))
                     ->root.find("param_groups")));
  }
  const auto back = optim_to_python(through_cpp(adam()));
  EXPECT_EQ(back->algorithm, "Adam");
  EXPECT_EQ(back->parameters, 3U);
  EXPECT_EQ(back->states, 2U);
  const Value* groups = back->root.find("param_groups");
  EXPECT_EQ(
      to_text(*groups->as_list()->items[1].find("params")),
      to_text(Value::list({2})));
  EXPECT_EQ(*groups->as_list()->items[1].find("lr")->as_float(), 0.2);
}

TEST(OptimConvert, StoresWhatCppReads) {
  const Value root = through_cpp(adam());
  EXPECT_EQ(*root.find("pytorch_version")->as_string(), "1.5.0");
  const Value& group = *root.find("param_groups")->find("param_groups/0");
  EXPECT_NE(group.find("params/1")->as_string(), nullptr);
  EXPECT_EQ(group.find("params/2"), nullptr);
  EXPECT_EQ(
      tensor_stats(*group.find("params/size")->as_tensor())->head,
      std::vector<std::string>{"2"});
  EXPECT_EQ(
      group.find("options")->find("weight_decay")->type(),
      Value::Type::kFloat);
  const std::string& address = *group.find("params/0")->as_string();
  const Value* state = root.find("state")->find(address);
  ASSERT_NE(state, nullptr);
  EXPECT_EQ(*state->find("step")->as_int(), 3);
}

TEST(OptimConvert, SaysWhatCppDoesNotHave) {
  EXPECT_THAT(
      optim_to_cpp(adam())->dropped,
      ElementsAre(
          "maximize",
          "foreach",
          "capturable",
          "differentiable",
          "fused"));
  Value with_more = adam();
  with_more.set("clip", 1.0);
  EXPECT_THAT(optim_to_cpp(with_more)->dropped, testing::Contains("clip"));
}

// Since 2.7 the groups of Python say so.
TEST(OptimConvert, TellsAdamWFromAdam) {
  Value state = adam();
  for (const bool decoupled : {false, true}) {
    for (Value& group : state.find("param_groups")->as_list()->items) {
      group.set("decoupled_weight_decay", decoupled);
    }
    EXPECT_EQ(optim_to_cpp(state)->algorithm, decoupled ? "AdamW" : "Adam");
  }
}

Value lbfgs(List history) {
  return Value::dict(
      {{"state", Value::dict({{0, Value::dict({{"ro", std::move(history)}})}})},
       {"param_groups",
        Value::list({Value::dict(
            {{"lr", 1},
             {"max_iter", 1},
             {"max_eval", 1},
             {"tolerance_grad", 1e-7},
             {"tolerance_change", 1e-9},
             {"history_size", 100},
             {"line_search_fn", None()},
             {"params", Value::list({0})}})})}});
}

// After a first step of one iteration.
TEST(OptimConvert, SaysWhatHelpsAnLbfgsWithoutHistory) {
  const auto made = optim_to_cpp(lbfgs({}));
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(
      made.error().message,
      testing::HasSubstr("'ro' is an empty list"));
  EXPECT_THAT(made.error().hint, testing::HasSubstr("one more step"));
  // C++ itself writes an empty list.
  Value archive = through_cpp(lbfgs({{floats({1})}}));
  archive.find("state")->as_dict()->items.at(0).second =
      Value::dict({{"ro", List{}}});
  const auto back = optim_to_python(archive);
  ASSERT_TRUE(back) << to_string(back.error());
  EXPECT_EQ(to_text(*back->root.find("state")->find(0)->find("ro")), "[]");
}

TEST(OptimConvert, SaysThatAnEmptyListIsOfTheWrongType) {
  Value state = sgd();
  state.find("param_groups")->as_list()->items[0].set("momentum", List{});
  const auto made = optim_to_cpp(state);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, ErrorCode::kCorrupt);
  EXPECT_EQ(made.error().message, "'momentum' is of type list");
}

TEST(OptimConvert, TakesAnLrInATensor) {
  Value state = sgd();
  state.find("param_groups")->as_list()->items[0].set("lr", step(0.5F));
  const auto made = optim_to_python(through_cpp(state));
  ASSERT_TRUE(made);
  EXPECT_EQ(
      *made->root.find("param_groups")
           ->as_list()
           ->items[0]
           .find("lr")
           ->as_float(),
      0.5);
}

TEST(OptimConvert, RefusesWhatDoesNotFit) {
  EXPECT_EQ(detail_of(optim_to_cpp(Value::dict({}))), "E_OPTIMIZER");
  EXPECT_EQ(detail_of(optim_to_python(adam())), "E_OPTIMIZER");
  Value unknown = sgd();
  unknown.find("param_groups")
      ->as_list()
      ->items[0]
      .as_dict()
      ->items.erase(unknown.find("param_groups")
                        ->as_list()
                        ->items[0]
                        .as_dict()
                        ->items.begin());
  EXPECT_EQ(detail_of(optim_to_cpp(unknown)), "E_OPTIMIZER");
  Value maximizes = sgd();
  maximizes.find("param_groups")->as_list()->items[0].set("maximize", true);
  EXPECT_EQ(optim_to_cpp(maximizes).error().code, ErrorCode::kUnsupported);
  Value stray = sgd();
  stray.find("state")->as_dict()->items.emplace_back(7, Value::dict({}));
  EXPECT_EQ(detail_of(optim_to_cpp(stray)), "E_OPTIMIZER");
  Value twice = sgd();
  twice.find("param_groups")
      ->as_list()
      ->items[0]
      .set("params", Value::list({0, 0}));
  EXPECT_EQ(detail_of(optim_to_cpp(twice)), "E_OPTIMIZER");
}

// Two parameters, "b" before "a" in the model, whose momenta are 1 and 2. The
// state calls them by name, and so do the groups, as far as they say.
Value named_sgd(const char* params, bool has_param_names = false) {
  const bool has_names = std::string_view(params) == "names";
  const auto buffer = [](float value) {
    return Value::dict({{"momentum_buffer", floats({value})}});
  };
  Value state = sgd();
  state.set("state", Value::dict({{"a", buffer(2)}, {"b", buffer(1)}}));
  Value& group = state.find("param_groups")->as_list()->items[0];
  group.set(
      "params",
      has_names ? Value::list({"b", "a"}) : Value::list({0, 1}));
  if (has_param_names) {
    group.set("param_names", Value::list({"b", "a"}));
  }
  return state;
}

// The momenta in the order of the parameters.
std::string momenta(const Result<OptimState>& cpp) {
  if (!cpp) {
    return to_string(cpp.error());
  }
  MemoryFs fs;
  EXPECT_TRUE(save("o.pt", cpp->root, {.format = "libtorch"}, fs));
  const auto back = optim_to_python(load("o.pt", {}, fs).value().root);
  std::string text;
  for (const auto& [key, value] : back->root.find("state")->as_dict()->items) {
    const Tensor& buffer = *value.find("momentum_buffer")->as_tensor();
    text += to_text(key) + "=" + tensor_stats(buffer)->head[0] + " ";
  }
  return text;
}

TEST(OptimConvert, TakesStatesThatCallParametersByName) {
  const auto by_groups = optim_to_cpp(named_sgd("names"));
  EXPECT_EQ(momenta(by_groups), "0=1.0 1=2.0 ");
  EXPECT_TRUE(by_groups->notes.empty());
  const auto by_param_names = optim_to_cpp(named_sgd("numbers", true));
  EXPECT_EQ(momenta(by_param_names), "0=1.0 1=2.0 ");
  EXPECT_TRUE(by_param_names->notes.empty());
}

TEST(OptimConvert, SaysWhatOrderOfNamesItTook) {
  const Value weights = Value::dict(
      {{"b", floats({0})}, {"buffer", floats({0})}, {"a", floats({0})}});
  const auto by_model = optim_to_cpp(named_sgd("numbers"), &weights);
  EXPECT_EQ(momenta(by_model), "0=1.0 1=2.0 ");
  EXPECT_THAT(by_model->notes, ElementsAre(testing::HasSubstr("in the model")));
  const auto by_state = optim_to_cpp(named_sgd("numbers"));
  EXPECT_EQ(momenta(by_state), "0=2.0 1=1.0 ");
  EXPECT_THAT(by_state->notes, ElementsAre(testing::HasSubstr("in the state")));
}

TEST(OptimConvert, RefusesNamesThatNoGroupHas) {
  Value few = named_sgd("numbers");
  few.find("state")->as_dict()->items.pop_back();
  EXPECT_THAT(momenta(optim_to_cpp(few)), testing::HasSubstr("cannot be told"));
  Value stray = named_sgd("names");
  stray.find("state")->as_dict()->items.emplace_back("c", Value::dict({}));
  EXPECT_THAT(
      momenta(optim_to_cpp(stray)),
      testing::HasSubstr("parameter 'c'"));
  Value twice = named_sgd("names");
  twice.find("param_groups")
      ->as_list()
      ->items[0]
      .set("params", Value::list({"a", "a"}));
  EXPECT_THAT(
      momenta(optim_to_cpp(twice)),
      testing::HasSubstr("are called 'a'"));
  Value shared = named_sgd("numbers");
  List& groups = *shared.find("param_groups")->as_list();
  groups.items.emplace_back(Dict(*groups.items[0].as_dict()));
  EXPECT_THAT(
      momenta(optim_to_cpp(shared)),
      testing::HasSubstr("have one list"));
}

TEST(OptimConvert, FindsTheStateInACheckpoint) {
  const Value state = sgd();
  EXPECT_NE(find_optim_state(state), nullptr);
  EXPECT_NE(find_optim_state(Value::dict({{"optimizer", state}})), nullptr);
  EXPECT_EQ(find_optim_state(Value::dict({{"model", 1}})), nullptr);
}

} // namespace
} // namespace lockstep::ckpt
