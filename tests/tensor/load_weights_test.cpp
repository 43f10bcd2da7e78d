// SPDX-License-Identifier: BSD-3-Clause
//
// One call for any file. The files of real models, saved by Python on GPUs that
// are not here, are in tests/parallel/four_combinations_test.cpp.
#include "lockstep/tensor/load_weights.h"

#include <gmock/gmock.h>

#include "lockstep/tensor/bridge.h"
#include "lockstep/tensor/checkpoint.h"
#include "lockstep/tensor/prefix_fit.h"
#include "tests/support/scratch_dir.h"
#include "tests/tensor/modules.h"

namespace lockstep {
namespace {

using test::MyModule;
using Keys = std::vector<std::string>;

TEST(FitPrefix, TakesTheEditThatFitsMostKeys) {
  struct Case {
    Keys model = {};
    Keys file = {};
    PrefixFit fit = {};
  };
  const std::vector<Case> cases{
      {{"a.w", "b.w"}, {"a.w", "b.w"}, {}},
      {{"a.w", "b.w"}, {"module.a.w", "module.b.w"}, {.strip = "module."}},
      {{"module.a.w"}, {"a.w"}, {.add = "module."}},
      // A layer that is really called module.
      {{"module.w", "module.b"}, {"module.w", "module.b"}, {}},
      {{"module.w"}, {"module.module.w"}, {.strip = "module."}},
      {{"w"}, {"module.module.w"}, {.strip = "module.module."}},
      // Another head, another number of layers: most keys decide.
      {{"a.w", "b.w", "head.w"},
       {"module.a.w", "module.b.w", "module.fc.w"},
       {.strip = "module."}},
      {{"a.w", "b.w"},
       {"encoder.a.w", "encoder.b.w", "head.w"},
       {.strip = "encoder."}},
      {{"net.a.w", "net.b.w", "head.w"}, {"a.w", "b.w"}, {.add = "net."}},
      {{"x"}, {"y"}, {}},
      {{}, {"y"}, {}},
      {{"x"}, {}, {}}};
  for (const Case& c : cases) {
    EXPECT_EQ(fit_prefix(c.model, c.file), c.fit)
        << testing::PrintToString(c.model) << " "
        << testing::PrintToString(c.file);
  }
}

class LoadWeights : public testing::Test {
 protected:
  std::string file() const {
    return folder_ / "w.pth";
  }
  test::ScratchDir folder_;
};

TEST_F(LoadWeights, FindsThemUnderAKeyWithOrWithoutPrefix) {
  const MyModule trained;
  const StateDict weights = state_dict(trained);
  for (const StateDict& saved : {weights, add_prefix(weights, "module.")}) {
    for (const char* key : {"state_dict", "model", "net"}) {
      save(checkpoint({{"epoch", 3}, {key, saved}}), file());
      MyModule net;
      load_weights(net, file());
      EXPECT_TRUE(net.fc->weight.equal(trained.fc->weight)) << key;
    }
  }
}

TEST_F(LoadWeights, KeepsTheModuleOnErrors) {
  const MyModule trained(6);
  save(to_value(state_dict(trained)), file());
  MyModule net;
  const at::Tensor before = net.fc->weight.clone();
  EXPECT_THAT(
      test::error_of([&] { load_weights(net, file()); }).message,
      testing::HasSubstr("size mismatch for fc.weight"));
  EXPECT_TRUE(net.fc->weight.equal(before));
  save(checkpoint({{"epoch", 3}}), file());
  EXPECT_EQ(
      test::error_of([&] { load_weights(net, file()); }).code,
      ErrorCode::kNotFound);
  EXPECT_EQ(
      test::error_of([&] { load_weights(net, folder_ / "none"); }).code,
      ErrorCode::kNotFound);
}

TEST_F(LoadWeights, ByPositionAndNotStrictly) {
  const MyModule trained;
  save(to_value(add_prefix(state_dict(trained), "layers.0.")), file());
  MyModule net;
  const LoadReport report = load_weights(net, file(), {.by_position = true});
  EXPECT_EQ(report.mapping.size(), 2U);
  EXPECT_TRUE(net.fc->bias.equal(trained.fc->bias));
  save(checkpoint({{"fc.weight", trained.fc->weight.detach()}}), file());
  EXPECT_EQ(
      load_weights(net, file(), {.strict = false}).missing_keys,
      Keys{"fc.bias"});
}

} // namespace
} // namespace lockstep
