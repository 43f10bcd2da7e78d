// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/tensor/state_dict.h"

#include <algorithm>

#include <gmock/gmock.h>

#include "lockstep/base/strings.h"
#include "lockstep/tensor/internal/module_version.h"
#include "lockstep/tensor/modules.h"
#include "tests/support/python.h"
#include "tests/tensor/modules.h"

namespace lockstep {
namespace {

using test::MyModule;
using test::Net;
using test::Wrapper;

std::string shown(const StateDict& weights) {
  std::string text;
  for (const auto& [key, tensor] : weights.entries) {
    std::string sizes;
    for (const std::int64_t size : tensor.sizes()) {
      sizes += (sizes.empty() ? "" : ", ") + std::to_string(size);
    }
    text += format(
        "{} [{}] torch.{}\n",
        key,
        sizes,
        tensor.scalar_type() == torch::kLong ? "int64" : "float32");
  }
  for (const auto& [path, version] : weights.versions) {
    text += format("'{}' {}\n", path, version);
  }
  return text;
}

template <class... Holders>
std::string versions(const Holders&... modules) {
  return (
      format("{} {}\n", class_name(*modules), state_version(*modules)) + ...);
}

TEST(CountParameters, CountsTiedOnesOnce) {
  test::Net net;
  net.layer->parameters()[0].set_requires_grad(false);
  EXPECT_EQ(count_parameters(net), 18 + 4 + 6 + 4 + 1);
  EXPECT_EQ(count_parameters(*torch::nn::ReLU()), 0);
}

TEST(StateDict, HasPythonsKeysOrderAndVersions) {
  namespace nn = torch::nn;
  const StateDict wrapped = state_dict(Wrapper(std::make_shared<Net>()));
  EXPECT_EQ(
      shown(state_dict(Net())) + shown(wrapped) +
          shown(strip_prefix(wrapped, "module.")) +
          versions(
              nn::BatchNorm1d(2),
              nn::BatchNorm2d(2),
              nn::BatchNorm3d(2),
              nn::InstanceNorm1d(2),
              nn::InstanceNorm2d(2),
              nn::InstanceNorm3d(2)),
      test::run_python("tensor_state_dict.py"));
}

TEST(StateDict, AliasesTheModuleAndIsDetached) {
  const MyModule net;
  const StateDict weights = state_dict(net);
  EXPECT_TRUE(weights.get("fc.weight").is_alias_of(net.fc->weight));
  EXPECT_FALSE(weights.get("fc.weight").requires_grad());
  EXPECT_FALSE(weights.get("fc.nothing").defined());
}

TEST(ClassName, IsPythons) {
  struct LocalImpl : torch::nn::Module {};
  EXPECT_EQ(class_name(*torch::nn::Conv2d(1, 1, 1)), "Conv2d");
  EXPECT_EQ(class_name(LocalImpl()), "Local");
  EXPECT_EQ(class_name(MyModule()), "MyModule");
  EXPECT_EQ(class_name(Wrapper(std::make_shared<Net>())), "DataParallel");
}

StateDict with_keys(const std::vector<std::string>& keys) {
  StateDict weights;
  for (const std::string& key : keys) {
    weights.entries.emplace_back(
        key,
        torch::full({}, static_cast<double>(weights.entries.size())));
  }
  return weights;
}

std::vector<std::string> keys(const StateDict& weights) {
  std::vector<std::string> out;
  for (const auto& [key, tensor] : weights.entries) {
    out.push_back(key);
  }
  return out;
}

TEST(StripPrefix, RemovesOneLeadingPrefixWherePresent) {
  const StateDict mixed = with_keys(
      {"module.z",
       "a.module.b",
       "submodule.c",
       "module.module.d",
       "module",
       "modulex.e"});
  EXPECT_THAT(
      keys(strip_prefix(mixed, "module.")),
      testing::ElementsAre(
          "z",
          "a.module.b",
          "submodule.c",
          "module.d",
          "module",
          "modulex.e"));
}

TEST(StripPrefix, RefusesKeysThatBecomeEqual) {
  const Error error = test::error_of([] {
    (void)strip_prefix(with_keys({"module.a", "a"}), "module.");
  });
  EXPECT_EQ(error.code, ErrorCode::kMismatch);
  EXPECT_EQ(error.message, "two keys become 'a' when 'module.' is removed");
}

TEST(AddPrefix, IsWhatWrappingGives) {
  const auto net = std::make_shared<Net>();
  EXPECT_EQ(
      shown(add_prefix(state_dict(*net), "module.")),
      shown(state_dict(Wrapper(net))));
  EXPECT_EQ(
      shown(strip_prefix(add_prefix(state_dict(*net), "a.b."), "a.b.")),
      shown([&] {
        StateDict expected = state_dict(*net);
        expected.versions.emplace_back("a", 1);
        std::rotate(
            expected.versions.begin() + 1,
            expected.versions.end() - 1,
            expected.versions.end());
        return expected;
      }()));
}

TEST(AddPrefix, KeepsAPlainDictPlain) {
  const StateDict out = add_prefix(with_keys({"a"}), "module.");
  EXPECT_THAT(keys(out), testing::ElementsAre("module.a"));
  EXPECT_TRUE(out.versions.empty());
}

} // namespace
} // namespace lockstep
