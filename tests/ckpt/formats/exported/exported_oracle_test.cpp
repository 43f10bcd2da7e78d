// SPDX-License-Identifier: BSD-3-Clause
//
// torch.export of the wheel writes programs; what is read of them is compared
// with what Python says is in them.
#include <map>

#include <gtest/gtest.h>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/formats/exported/exported_program.h"
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

TEST(ExportedOracle, HoldsWhatPythonSays) {
  const test::ScratchDir folder;
  std::string name;
  std::map<std::string, std::string> expected;
  for (const std::string& line :
       test::python_lines("exported_files.py", {folder.path()})) {
    if (line.starts_with("file ")) {
      name = line.substr(5);
    } else {
      expected[name] += line + "\n";
    }
  }
  ASSERT_EQ(expected.size(), 3U);
  for (const auto& [net, lines] : expected) {
    const auto file = open_program(folder / (net + ".pt2"));
    ASSERT_TRUE(file) << net << ": " << to_string(file.error());
    EXPECT_EQ(lines_of(file->models.at(0)), lines) << net;
  }
}

} // namespace
} // namespace lockstep::ckpt
