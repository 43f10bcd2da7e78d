// SPDX-License-Identifier: BSD-3-Clause
//
// `--kernels`: whose convolutions a run uses. What is installed is the whole
// process's, so the test has one of its own.
#include <cstdlib>

#include <ATen/core/dispatch/Dispatcher.h>
#include <gmock/gmock.h>

#include "lockstep/device/autocast.h"
#include "lockstep/kernels/install.h"
#include "lockstep/tensor/internal/cpu_features.h"
#include "lockstep/tensor/state_dict.h"
#include "lockstep/train/loop/run_identity.h"
#include "lockstep/train/step/precision.h"
#include "tests/train/trainer_fixture.h"

namespace lockstep::train {
namespace {

using ::testing::Contains;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;
using ::testing::StartsWith;
using ::testing::Value;

bool is_replaced() {
  const auto operation = c10::Dispatcher::singleton().findSchema(
      {"aten::convolution_backward", ""});
  return operation->hasKernelForDispatchKey(c10::DispatchKey::CPU);
}

// Losses of three steps of a net whose last maps have one pixel. `name`: of the
// run, beginning with the kernels'.
std::vector<float>
losses(const test::ScratchDir& folder, const std::string& name, LogSink& log) {
  TrainConfig config;
  config.model = "resnet18";
  config.devices = "cpu*2";
  config.threads = 2;
  config.epochs = 1;
  config.batch_size = 64;
  config.max_train_samples = 192;
  config.max_eval_samples = 64;
  config.output = folder / name;
  config.kernels = name.substr(0, name.find('-'));
  const auto seen = std::make_shared<RecordingObserver>();
  Trainer(
      config,
      {.log = &log, .observers = {seen}, .own = named_parts(config)})
      .run();
  return seen->losses();
}

// Status 0 if all is as documented, else the number of the first surprise.
int train_with_all() {
  kernels::install(); // so that a run may choose
  const test::ScratchDir folder;
  RecordingLog log;
  const auto torchs = losses(folder, "torch", log);
  if (is_replaced()) {
    return 1;
  }
  const auto exact = losses(folder, "exact", log);
  if (!is_replaced()) {
    return 2;
  }
  if (torchs.size() != 3 || torchs != exact) {
    return 3;
  }
  const auto ours = losses(folder, "lockstep", log);
  if (ours == exact || !Value(ours, Pointwise(FloatNear(1e-2F), exact))) {
    return 4;
  }
  if (losses(folder, "lockstep-again", log) != ours) {
    return 5;
  }
  if (losses(folder, "torch-again", log) != torchs || is_replaced()) {
    return 6;
  }
  const auto& lines = log.lines[LogLevel::kInfo];
  const bool are_named =
      Value(lines, Contains(HasSubstr("2 threads, kernels torch; "))) &&
      Value(lines, Contains(HasSubstr("2 threads, kernels exact; "))) &&
      Value(lines, Contains(HasSubstr("2 threads, kernels lockstep; ")));
  return are_named ? 0 : 7;
}

TEST(Kernels, AreWhoseARunAsksForWithLossesToMatch) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(std::_Exit(train_with_all()), ::testing::ExitedWithCode(0), "");
}

// Other kernels are other bits, and a change of the rules is, too.
TEST(Kernels, AreNoticedWhenARunGoesOnWithOthers) {
  kernels::install();
  TrainConfig config;
  const std::vector devices{c10::Device(c10::kCPU)};
  RunIdentity identity(config, devices, "single", {.train_samples = 10});
  ValueBuilder builder;
  const ckpt::Value saved = identity.part().save(builder);
  config.kernels = "lockstep";
  RunIdentity other(config, devices, "single", {.train_samples = 10});
  other.part().load(saved);
  EXPECT_EQ(
      to_string(other.numerics()),
      "kernels: 'exact', now 'lockstep, products 4, direct 3, winograd 2, "
      "norms 1'; channels_last: 'no', now 'yes'");
  TrainConfig half;
  half.amp = "bf16";
  RunIdentity with_half(half, devices, "single", {.train_samples = 10});
  with_half.part().load(saved);
  EXPECT_THAT(
      to_string(with_half.numerics()),
      StartsWith("amp: 'off', now 'bf16 by "));
  identity.part().load(saved);
  EXPECT_EQ(to_string(identity.numerics()), "");
}

// What is compared and kept is what is used, not the word that chose it.
TEST(Precision, IsDecidedByTheDevices) {
  TrainConfig config;
  EXPECT_EQ(decided_amp(config), "off");
  config.amp = "bf16";
  EXPECT_EQ(decided_amp(config), "bf16");
  config.amp = "auto";
  config.devices = "cpu*2";
  EXPECT_EQ(decided_amp(config), is_bfloat16_fast(at::kCPU) ? "bf16" : "off");
  config.devices = "cuda:0";
  if (!at::hasCUDA()) {
    EXPECT_EQ(decided_amp(config), "off");
  }
}

TEST(Precision, IsNoticedAsItIsUsed) {
  TrainConfig config;
  EXPECT_EQ(precision_text(config, false), "off");
  // What the program itself has set.
  at::globalContext().setFloat32MatmulPrecision("high");
  set_precision(config);
  EXPECT_EQ(precision_text(config, false), "off, precision high");
  config.precision = "medium";
  set_precision(config);
  EXPECT_EQ(precision_text(config, false), "off, precision medium");
  at::globalContext().setFloat32MatmulPrecision("highest");
  config.amp = "bf16";
  EXPECT_EQ(
      precision_text(config, false),
      "bf16 by " + std::string(lockstep::to_string(bfloat16_products())));
  EXPECT_EQ(precision_text(config, true), "bf16");
}

} // namespace
} // namespace lockstep::train
