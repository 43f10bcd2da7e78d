// SPDX-License-Identifier: BSD-3-Clause
#include <gmock/gmock.h>

#include "lockstep/ckpt/inspect.h"
#include "tests/ckpt/value_fixture.h"

namespace lockstep::ckpt {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// What `torch.jit.save` leaves in a pickle, and a name that is not of it.
std::vector<GlobalUse> script_names() {
  return {
      {.name = "__torch__.Net"},
      {.name = "torch.jit._pickle.build_intlist"},
      {.name = "os.system"}};
}

TEST(Summary, NamesOfTorchScriptAreKnownInItsArchivesAlone) {
  Checkpoint file{.format = "torchscript", .globals = script_names()};
  EXPECT_THAT(summarize(file)->unsafe_names, ElementsAre("os.system"));
  file.format = "zip";
  EXPECT_THAT(summarize(file)->unsafe_names, ElementsAre("os.system"));
  EXPECT_EQ(summarize(file)->needed_classes.size(), 2U);
}

TEST(Summary, SaysThatTorchScriptKnowsTheNames) {
  Checkpoint file{.format = "torchscript", .globals = script_names()};
  file.globals.pop_back();
  EXPECT_THAT(
      to_text(*summarize(file), "net.pt"),
      HasSubstr("names       2 names, all known to TorchScript\n"));
}

// An array of objects is a pickle, of which nothing is known here.
TEST(Summary, CallsNoNamesSafeThatItHasNotSeen) {
  Checkpoint file{.format = "npz"};
  const std::string read = to_text(*summarize(file), "a.npz");
  EXPECT_THAT(read, HasSubstr("names       0 names, all safe\n"));
  file.warnings.push_back({.name = "W_ARRAY", .text = "'o' is not read"});
  const std::string unread = to_text(*summarize(file), "a.npz");
  EXPECT_THAT(
      unread,
      HasSubstr("names       0 names, without those in the arrays"));
}

// Names alone do not tell the entries "a" and "a.b" apart.
TEST(Summary, CountsATensorForTheEntryThatHoldsIt) {
  const Value one = tensor_of<float>(DType::kFloat32, {1}, {1});
  const Value two = tensor_of<float>(DType::kFloat32, {1, 2}, {2});
  const Value three = tensor_of<float>(DType::kFloat32, {1, 2, 3}, {3});
  const Value state = Value::dict({{"lr", 1}});
  Value root = Value::dict(
      {{"args",
        Object{
            .global = "argparse.Namespace",
            .args = std::make_shared<Value>(Tuple{}),
            .state = std::make_shared<Value>(state)}},
       {"a", Value::dict({{"b", Value::dict({{"c", one}})}})},
       {"epoch", 3},
       {"a.b", Value::dict({{"c", two}})},
       {"set", Set{.items = {three}}}});
  root.as_dict()->items.emplace_back(Tuple{.items = {one}}, two);
  root.as_dict()->attributes.emplace_back("ema", three);
  const Checkpoint file{.root = root, .format = "zip"};

  std::vector<std::uint64_t> elements;
  for (const KeySummary& key : summarize(file)->keys) {
    elements.push_back(key.elements);
  }
  EXPECT_THAT(elements, ElementsAre(0, 1, 0, 2, 3, 2));
  EXPECT_EQ(summarize(file)->elements, 1U + 2 + 3 + 2 + 1 + 3);
}

Value whole(const std::string& name, Value children) {
  const Value state = Value::dict({{"_modules", std::move(children)}});
  return Object{
      .global = name,
      .args = std::make_shared<Value>(Value::tuple({})),
      .state = std::make_shared<Value>(state)};
}

// Not to strip keys, which a whole model does not have.
TEST(Summary, SaysHowToUnwrapAWholeModel) {
  Checkpoint file{.root = whole("model.Net", Value::dict({}))};
  EXPECT_THAT(
      summarize(file)->hints,
      ElementsAre(HasSubstr("'lockstep ckpt extract-model' gives")));
  file.root = whole(
      "torch.nn.parallel.data_parallel.DataParallel",
      Value::dict({{"module", file.root}}));
  EXPECT_THAT(
      summarize(file)->hints,
      ElementsAre(HasSubstr("'lockstep ckpt extract-model --unwrap' gives")));
}

} // namespace
} // namespace lockstep::ckpt
