// SPDX-License-Identifier: BSD-3-Clause
//
// What Lockstep says of a training checkpoint against what Python put in.
#include <map>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "lockstep/ckpt/inspect.h"
#include "lockstep/ckpt/verify.h"
#include "lockstep/ckpt/walk.h"
#include "tests/support/python.h"
#include "tests/support/scratch_dir.h"

namespace lockstep {
namespace {

class SummaryOracle : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    // Python takes seconds to start: once for each kind of checkpoint.
    static const test::ScratchDir folder;
    static std::map<std::string, nlohmann::json> made;
    path_ = folder / (std::string(GetParam()) + ".pth.tar");
    if (!made.contains(path_)) {
      made[path_] = nlohmann::json::parse(
          test::run_python("cli_summary.py", {path_, GetParam()}));
    }
    expected_ = made[path_];
    auto file = ckpt::load(path_);
    ASSERT_TRUE(file) << to_string(file.error());
    file_ = *std::move(file);
  }
  [[nodiscard]] bool is_wrapped() const {
    return std::string(GetParam()) == "wrapped";
  }

  std::string path_;
  nlohmann::json expected_;
  ckpt::Checkpoint file_;
};

TEST_P(SummaryOracle, CountsEqualPythons) {
  const auto summary = ckpt::summarize(file_);
  ASSERT_TRUE(summary);
  EXPECT_EQ(summary->tensors, expected_["rows"].size());
  EXPECT_EQ(nlohmann::json(summary->parameters), expected_["parameters"]);
  EXPECT_EQ(
      nlohmann::json(summary->parameter_tensors),
      expected_["parameter_tensors"]);
  EXPECT_EQ(
      nlohmann::json(summary->buffer_tensors),
      expected_["buffer_tensors"]);
  EXPECT_EQ(summary->weights_key, "state_dict");
  EXPECT_EQ(summary->prefix.prefix, is_wrapped() ? "module." : "");
  EXPECT_EQ(summary->hints.empty(), !is_wrapped());
  EXPECT_TRUE(summary->unsafe_names.empty());
  EXPECT_TRUE(summary->needed_classes.empty());
  EXPECT_EQ(summary->crc, "present");
  EXPECT_EQ(summary->keys.size(), 6U);
}

TEST_P(SummaryOracle, ListEqualsPythons) {
  std::size_t row = 0;
  const Status status = ckpt::for_each_tensor(
      file_.root,
      [&](const std::string& name, const ckpt::Tensor& tensor) {
        ASSERT_LT(row, expected_["rows"].size());
        const auto& wanted = expected_["rows"][row++];
        EXPECT_EQ(nlohmann::json(name), wanted[0]);
        EXPECT_EQ(
            nlohmann::json(ckpt::dtype_info(tensor.dtype).name),
            wanted[1]);
        EXPECT_EQ(nlohmann::json(tensor.sizes), wanted[2]);
        EXPECT_EQ(nlohmann::json(tensor.storage->nbytes), wanted[3]);
      });
  EXPECT_TRUE(status);
  EXPECT_EQ(row, expected_["rows"].size());
}

TEST_P(SummaryOracle, ScalarsAndChecksAgree) {
  const auto rate = ckpt::find_path(file_.root, "optimizer.param_groups.0.lr");
  ASSERT_TRUE(rate);
  EXPECT_EQ(*rate->as_float(), expected_["lr"].get<double>());
  const auto report = ckpt::verify(path_);
  ASSERT_TRUE(report);
  EXPECT_TRUE(report->is_sound());
  EXPECT_TRUE(report->warnings.empty());
}

INSTANTIATE_TEST_SUITE_P(
    Python,
    SummaryOracle,
    testing::Values("bare", "wrapped"),
    [](const auto& param) { return std::string(param.param); });

} // namespace
} // namespace lockstep
