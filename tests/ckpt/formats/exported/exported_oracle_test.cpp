// SPDX-License-Identifier: BSD-3-Clause
//
// torch.export of the wheel writes programs; what is read of them is compared
// with what Python says is in them.
#include <map>
#include <memory>

#include <gtest/gtest.h>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/edit.h"
#include "lockstep/ckpt/formats/exported/exported_program.h"
#include "lockstep/ckpt/load.h"
#include "lockstep/ckpt/scan.h"
#include "lockstep/ckpt/verify.h"
#include "tests/ckpt/oracle_support.h"
#include "tests/support/python.h"
#include "tests/support/scratch_dir.h"

namespace lockstep::ckpt {
namespace {

constexpr std::string_view kOperators = "torch.ops.";

Result<ExportedFile> open_program(const std::string& path) {
  LOCKSTEP_ASSIGN(const std::shared_ptr<ByteSource> source, open_source(path));
  LOCKSTEP_ASSIGN(ZipReader zip, ZipReader::open(source));
  return read_exported(std::make_shared<const ZipReader>(std::move(zip)));
}

// The lines that Python prints of a program.
std::string lines_of(const ExportedModel& model) {
  Dict weights;
  for (const ExportedWeight& weight : model.weights) {
    if (!weight.is_constant) {
      weights.items.emplace_back(weight.name, weight.tensor);
    }
  }
  std::string lines = test::rows_of(Value(std::move(weights)));
  for (const ExportedNode& node : model.graph.nodes) {
    lines += "node " + node.target.substr(kOperators.size()) + "\n";
  }
  return lines;
}

/// Nets that Python exported, by name, with the lines that it printed of each.
class ExportedOracle : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder() = std::make_unique<test::ScratchDir>();
    std::string name;
    for (const std::string& line :
         test::python_lines("exported_files.py", {folder()->path()})) {
      if (line.starts_with("file ")) {
        name = line.substr(5);
      } else {
        expected()[name] += line + "\n";
      }
    }
  }
  static void TearDownTestSuite() {
    folder() = nullptr;
  }

  static std::unique_ptr<test::ScratchDir>& folder() {
    static std::unique_ptr<test::ScratchDir> folder;
    return folder;
  }
  static std::map<std::string, std::string>& expected() {
    static std::map<std::string, std::string> expected;
    return expected;
  }
  static std::string path(const std::string& name) {
    return *folder() / name;
  }
  static Value root_of(const std::string& name) {
    auto file = load(path(name));
    EXPECT_TRUE(file) << name << ": " << to_string(file.error());
    return file ? std::move(file->root) : Value();
  }
};

TEST_F(ExportedOracle, HoldsWhatPythonSays) {
  ASSERT_EQ(expected().size(), 4U);
  for (const auto& [net, lines] : expected()) {
    const auto file = open_program(path(net + ".pt2"));
    ASSERT_TRUE(file) << net << ": " << to_string(file.error());
    EXPECT_EQ(lines_of(file->models.at(0)), lines) << net;
  }
}

TEST_F(ExportedOracle, HasTheDigestOfItsStateDict) {
  for (const auto& [net, lines] : expected()) {
    const Value state = root_of(net + ".pt");
    for (const char* kind : {".pt2", ".old.pt2"}) {
      const Value root = root_of(net + kind);
      const WeightsPlace place = locate_weights(root);
      EXPECT_EQ(test::rows_of(place.value), test::rows_of(state)) << net;
      EXPECT_EQ(
          test::rows_of(root),
          place.key.empty() ? test::rows_of(state)
                            : test::rows_of(root_of(net + ".all.pt")))
          << net << kind;
    }
  }
  EXPECT_EQ(locate_weights(root_of("plain.pt2")).key, "state_dict");
  EXPECT_EQ(locate_weights(root_of("tied.pt2")).key, "");
}

TEST_F(ExportedOracle, SharesTheMemoryOfTiedWeights) {
  for (const char* name : {"tied.pt2", "tied.old.pt2"}) {
    const Value root = root_of(name);
    EXPECT_EQ(
        root.find("first.weight")->as_tensor()->storage,
        root.find("last.weight")->as_tensor()->storage);
  }
}

TEST_F(ExportedOracle, KeepsAConstantApartFromTheBufferOfItsName) {
  const auto file = open_program(path("named.pt2"));
  ASSERT_TRUE(file) << to_string(file.error());
  const ExportedModel& model = file->models.at(0);
  std::vector<bool> are_constants;
  for (const ExportedInput& input : model.inputs) {
    if (input.is_tensor()) {
      EXPECT_EQ(input.target, "lifted_tensor_0");
      are_constants.push_back(model.find_weight(input)->is_constant);
    }
  }
  EXPECT_EQ(are_constants, (std::vector<bool>{false, true}));
}

TEST_F(ExportedOracle, TakesOtherWeightsAndPythonHasThem) {
  for (const auto& [net, lines] : expected()) {
    const auto file = load(path(net + ".pt2"));
    ASSERT_TRUE(file);
    const auto edited =
        merge(file->root, root_of(net + ".other.pt"), {.replace = true});
    ASSERT_TRUE(edited) << to_string(edited.error());
    const Status written = rewrite(*file, edited->root, path(net + ".new.pt2"));
    ASSERT_TRUE(written) << to_string(written.error());
    EXPECT_EQ(
        test::rows_of(locate_weights(root_of(net + ".new.pt2")).value),
        test::rows_of(root_of(net + ".other.pt")));
  }
  std::string said;
  for (const std::string& line :
       test::python_lines("exported_files.py", {folder()->path(), "check"})) {
    said += line + "\n";
  }
  for (const auto& [net, lines] : expected()) {
    EXPECT_NE(said.find("equal " + net + "\n"), std::string::npos) << said;
  }
}

TEST_F(ExportedOracle, IsSoundAndClean) {
  for (const auto& [net, lines] : expected()) {
    for (const char* kind : {".pt2", ".old.pt2"}) {
      const auto report = verify(path(net + kind));
      ASSERT_TRUE(report) << to_string(report.error());
      EXPECT_TRUE(report->is_sound()) << net;
      const auto scans = scan_path(path(net + kind));
      ASSERT_TRUE(scans);
      EXPECT_EQ(scans->at(0).verdict, Verdict::kClean) << net << kind;
      EXPECT_GT(scans->at(0).operators.value_or(0), 0U) << net << kind;
      EXPECT_TRUE(scans->at(0).findings.empty()) << net << kind;
    }
    EXPECT_TRUE(verify(path(net + ".pt2"))->warnings.empty()) << net;
  }
}

} // namespace
} // namespace lockstep::ckpt
