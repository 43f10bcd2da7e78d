// SPDX-License-Identifier: BSD-3-Clause
//
// `--kernels`: whose convolutions a run uses. What is installed stays for the
// process, so the test has one of its own.
#include <cstdlib>

#include <ATen/core/dispatch/Dispatcher.h>
#include <gmock/gmock.h>

#include "tests/train/trainer_fixture.h"

namespace lockstep::train {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Value;

bool is_replaced() {
  const auto operation = c10::Dispatcher::singleton().findSchema(
      {"aten::convolution_backward", ""});
  return operation->hasKernelForDispatchKey(c10::DispatchKey::CPU);
}

// Losses of three steps of a net whose last maps have one pixel.
std::vector<float> losses(
    const test::ScratchDir& folder,
    const std::string& kernels,
    LogSink& log) {
  TrainConfig config;
  config.model = "resnet18";
  config.devices = "cpu*2";
  config.threads = 2;
  config.epochs = 1;
  config.batch_size = 64;
  config.max_train_samples = 192;
  config.max_eval_samples = 64;
  config.output = folder / kernels;
  config.kernels = kernels;
  const auto seen = std::make_shared<RecordingObserver>();
  Trainer(config, {.log = &log, .observers = {seen}}).run();
  return seen->losses();
}

// Status 0 if all is as documented, else the number of the first surprise.
int train_with_both() {
  const test::ScratchDir folder;
  RecordingLog log;
  const auto torchs = losses(folder, "torch", log);
  if (is_replaced()) {
    return 1;
  }
  const auto ours = losses(folder, "lockstep", log);
  if (!is_replaced()) {
    return 2;
  }
  if (torchs.size() != 3 || torchs != ours) {
    return 3;
  }
  const auto& lines = log.lines[LogLevel::kInfo];
  const bool are_named =
      Value(lines, Contains(HasSubstr("2 threads, kernels torch; "))) &&
      Value(lines, Contains(HasSubstr("2 threads, kernels lockstep; ")));
  return are_named ? 0 : 4;
}

TEST(Kernels, AreLibTorchsOnRequestWithEqualLosses) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(std::_Exit(train_with_both()), ::testing::ExitedWithCode(0), "");
}

} // namespace
} // namespace lockstep::train
