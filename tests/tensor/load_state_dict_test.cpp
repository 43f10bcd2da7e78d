// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include <gmock/gmock.h>

#include "lockstep/base/strings.h"
#include "lockstep/tensor/state_dict.h"
#include "tests/support/python.h"
#include "tests/tensor/modules.h"

namespace lockstep {
namespace {

using test::error_of;
using test::Expanded;
using test::MyModule;
using test::Net;
using test::Wrapper;

// One case of tests/oracle/tensor_load_texts.py.
template <class Weights>
std::string
load(torch::nn::Module&& module, const Weights& weights, bool strict = true) {
  std::string text;
  try {
    text = to_string(
        load_state_dict(module, weights, {.strict = strict, .shown_names = 0}));
  } catch (const Exception& exception) {
    EXPECT_EQ(exception.error().code, ErrorCode::kMismatch);
    text = exception.error().message;
  }
  return text + "\n---\n";
}

StateDict without(StateDict weights, const std::vector<std::string>& keys) {
  std::erase_if(weights.entries, [&](const auto& entry) {
    return std::ranges::count(keys, entry.first) > 0;
  });
  return weights;
}

// What Python's dict(...) leaves.
StateDict plain(StateDict weights) {
  weights.versions.clear();
  return weights;
}

StateDict with(StateDict weights, const std::string& key, at::Tensor value) {
  for (auto& [name, tensor] : weights.entries) {
    if (name == key) {
      tensor = std::move(value);
      return weights;
    }
  }
  weights.entries.emplace_back(key, std::move(value));
  return weights;
}

const std::vector<std::string> kCounters{
    "bn.num_batches_tracked",
    "layer.1.num_batches_tracked",
    "tied.1.num_batches_tracked"};

std::string texts_of_my_module() {
  using ckpt::Value;
  const Wrapper wrapped(std::make_shared<MyModule>());
  const StateDict bare = state_dict(MyModule());
  const StateDict prefixed = state_dict(wrapped);
  StateDict odd = with(
      with({}, "fc.weight", torch::zeros({5, 3})),
      "fc",
      torch::zeros({1}));
  for (const char* key : {"other.x", "fc.extra", "fc.a.b"}) {
    odd = with(odd, key, torch::zeros({1}));
  }
  const StateDict partial =
      with(with({}, "fc.weight", torch::zeros({5, 3})), "x", torch::zeros({1}));
  return load(MyModule(), prefixed) +
         load(Wrapper(std::make_shared<MyModule>()), bare) +
         load(Wrapper(std::make_shared<MyModule>()), prefixed) +
         load(MyModule(4), bare) + load(MyModule(4), bare, /*strict=*/false) +
         load(
             MyModule(),
             Value::dict(
                 {{"fc.weight", 3}, {"fc.bias", Value::ordered_dict({})}})) +
         load(MyModule(), Value::list({1})) + load(MyModule(), odd) +
         load(MyModule(), partial, /*strict=*/false);
}

std::string texts_of_net() {
  const StateDict full = state_dict(*test::fill(std::make_shared<Net>()));
  StateDict old = with(plain(full), "scale", torch::ones({1}));
  old = with(old, "offset", torch::ones({3}));
  StateDict expanded = with({}, "first", torch::ones({2}));
  expanded = with(expanded, "wide", torch::ones({3}));
  return load(Net(), full) + load(Net(), without(full, kCounters)) +
         load(Net(), plain(without(full, kCounters))) +
         load(
             Net(),
             plain(without(full, {"scale", "bn.weight", "tied.0.bias"}))) +
         load(Net(), old) +
         load(Net(), with(plain(full), "scale", torch::ones({2}))) +
         load(Expanded(), expanded);
}

TEST(LoadStateDict, SpeaksPythonsWords) {
  EXPECT_EQ(
      texts_of_my_module() + texts_of_net(),
      test::run_python("tensor_load_texts.py"));
}

TEST(LoadStateDict, CountsWhatItDoesNotList) {
  Net net;
  const StateDict full = state_dict(net);
  const std::string keys =
      error_of([&] { load_state_dict(net, StateDict{}); }).message;
  EXPECT_EQ(std::ranges::count(keys, '"'), 2 * 5);
  // Without its three counters: a dict without versions may lack them.
  EXPECT_THAT(
      keys,
      testing::HasSubstr(
          format(", ... ({} in all). ", full.entries.size() - 3)));

  StateDict wrong = full;
  for (auto& [key, tensor] : wrong.entries) {
    tensor = torch::zeros({3, 1, 4});
  }
  const Error shapes = error_of([&] { load_state_dict(net, wrong); });
  EXPECT_EQ(shapes.detail, "E_STATE_DICT");
  EXPECT_EQ(std::ranges::count(shapes.message, '\n'), 5);
  EXPECT_THAT(
      shapes.message,
      testing::EndsWith(
          format("\t... ({} tensors like this in all)", full.entries.size())));
}

TEST(LoadStateDict, CopiesEveryTensor) {
  const auto from = test::fill(std::make_shared<Net>());
  const auto to = std::make_shared<Net>();
  const at::Tensor scale = to->scale;
  EXPECT_EQ(
      to_string(load_state_dict(*to, state_dict(*from))),
      "<All keys matched successfully>");
  EXPECT_TRUE(test::equal(state_dict(*to), state_dict(*from)));
  EXPECT_EQ(scale.item<float>(), 1.0F); // in place, as an optimizer needs it
  EXPECT_TRUE(scale.requires_grad());
}

TEST(LoadStateDict, CastsToTheModulesTypes) {
  MyModule net;
  net.to(torch::kDouble);
  StateDict half = state_dict(MyModule());
  for (auto& [key, tensor] : half.entries) {
    tensor = torch::full_like(tensor, 0.5).to(torch::kHalf);
  }
  (void)load_state_dict(net, half);
  EXPECT_EQ(net.fc->weight.scalar_type(), torch::kDouble);
  EXPECT_EQ(net.fc->weight.mean().item<double>(), 0.5);
}

TEST(LoadStateDict, LeavesTheModuleAloneAfterAnError) {
  Net net;
  const StateDict before = [&] {
    StateDict copy = state_dict(net);
    for (auto& [key, tensor] : copy.entries) {
      tensor = tensor.clone();
    }
    return copy;
  }();
  const StateDict full = state_dict(*test::fill(std::make_shared<Net>()));
  (void)error_of([&] {
    load_state_dict(
        net,
        with(full, "tied.1.weight", torch::ones({7})),
        {.strict = false});
  });
  (void)error_of([&] { load_state_dict(net, without(full, {"bn.bias"})); });
  EXPECT_TRUE(test::equal(state_dict(net), before));
  Expanded expanded;
  (void)error_of([&] {
    load_state_dict(
        expanded,
        with(with({}, "first", torch::ones({2})), "wide", torch::ones({3})));
  });
  EXPECT_EQ(expanded.first.sum().item<float>(), 0.0F);
}

// Python warns that it is a no-op, and reports success.
TEST(LoadStateDict, RefusesToCopyIntoATensorWithoutMemory) {
  struct OnMeta : torch::nn::Module {
    OnMeta() {
      register_parameter("a", torch::zeros({2}));
      register_parameter("b", torch::zeros({2}, at::kMeta));
    }
  };
  OnMeta module;
  const StateDict weights =
      with(with({}, "a", torch::ones({2})), "b", torch::ones({2}));
  for (const auto may_differ : {MayDiffer::kNothing, MayDiffer::kAnything}) {
    try {
      load_state_dict(module, weights, {.may_differ = may_differ});
      ADD_FAILURE() << "nothing can arrive in 'b'";
    } catch (const Exception& exception) {
      EXPECT_EQ(exception.error().detail, "E_STATE_DICT");
      EXPECT_THAT(
          exception.error().message,
          testing::HasSubstr(
              "for b: copying from a non-meta parameter in the checkpoint to a "
              "meta parameter in the current model, which is a no-op"));
    }
    EXPECT_EQ(module.named_parameters()["a"].sum().item<float>(), 0);
  }
  // Both without memory: the shapes are all there is.
  const StateDict shapes =
      with(with({}, "a", torch::ones({2})), "b", torch::zeros({2}, at::kMeta));
  EXPECT_TRUE(load_state_dict(module, shapes, {}).missing_keys.empty());
  EXPECT_EQ(module.named_parameters()["a"].sum().item<float>(), 2);
}

TEST(LoadStateDict, KeepsTheCounterThatAnOldFileLacks) {
  const auto net = test::fill(std::make_shared<Net>());
  StateDict old = without(state_dict(Net()), kCounters);
  for (auto& [path, version] : old.versions) {
    version = 1;
  }
  const at::Tensor counter = state_dict(*net).get("bn.num_batches_tracked");
  const auto before = counter.item<std::int64_t>();
  (void)load_state_dict(*net, old);
  EXPECT_EQ(counter.item<std::int64_t>(), before);
  EXPECT_EQ(net->scale.item<float>(), 0.0F);
}

TEST(LoadStateDict, StripsAndAddsAPrefixWithItsVersions) {
  const auto net = test::fill(std::make_shared<Net>());
  Net stripped;
  (void)load_state_dict(
      stripped,
      state_dict(Wrapper(net)),
      {.strip_prefix = "module."});
  EXPECT_TRUE(test::equal(state_dict(stripped), state_dict(*net)));
  Wrapper wrapped(std::make_shared<Net>());
  (void)load_state_dict(wrapped, state_dict(*net), {.add_prefix = "module."});
  EXPECT_TRUE(test::equal(state_dict(wrapped), state_dict(Wrapper(net))));
  // Version 2 went with the names: a missing counter is an error.
  const Error error = error_of([&] {
    load_state_dict(
        stripped,
        without(state_dict(Wrapper(net)), {"module.bn.num_batches_tracked"}),
        {.strip_prefix = "module."});
  });
  EXPECT_THAT(error.message, testing::HasSubstr("bn.num_batches_tracked"));
}

TEST(LoadStateDict, HintsAtThePrefixThatWouldHelp) {
  MyModule net;
  const Error strip = error_of([&] {
    load_state_dict(net, state_dict(Wrapper(std::make_shared<MyModule>())));
  });
  EXPECT_EQ(
      strip.hint,
      "all 2 keys differ by the prefix 'module.': load with .strip_prefix = "
      "\"module.\"");
  Wrapper wrapped(std::make_shared<MyModule>());
  const Error add =
      error_of([&] { load_state_dict(wrapped, state_dict(net)); });
  EXPECT_EQ(
      add.hint,
      "all 2 keys differ by the prefix 'module.': load with .add_prefix = "
      "\"module.\"");
  const Error none = error_of([&] { load_state_dict(net, StateDict()); });
  EXPECT_EQ(none.hint, "");
}

TEST(LoadStateDict, HintsAtTheWeightsInsideACheckpoint) {
  MyModule net;
  const auto file =
      ckpt::Value::dict({{"epoch", 3}, {"model", to_value(state_dict(net))}});
  const Error error = error_of([&] { load_state_dict(net, file); });
  EXPECT_EQ(
      error.message,
      "Error(s) in loading state_dict for MyModule:\n"
      "\tMissing key(s) in state_dict: \"fc.weight\", \"fc.bias\". \n"
      "\tUnexpected key(s) in state_dict: \"epoch\", \"model\". ");
  EXPECT_EQ(
      error.hint,
      "the weights are under the key 'model' of this checkpoint");
}

} // namespace
} // namespace lockstep
