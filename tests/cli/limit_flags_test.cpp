// SPDX-License-Identifier: BSD-3-Clause
//
// Every command of `lockstep ckpt` takes every flag of the table of limits, and
// reads its files with them.
#include <array>
#include <set>

#include <gmock/gmock.h>

#include "lockstep/ckpt/checkpoint.h"
#include "lockstep/ckpt/load.h"
#include "tests/ckpt/value_fixture.h"
#include "tests/cli/command_test.h"

namespace lockstep::test {
namespace {

using testing::HasSubstr;

// One way to call each command; all files are read.
struct Row {
  std::string_view command = {};
  std::string_view args = {};
};

constexpr std::array kRows{
    Row{"inspect", "run.pt"},
    Row{"ls", "run.pt"},
    Row{"tree", "run.pt"},
    Row{"show", "run.pt epoch"},
    Row{"diff", "run.pt run.pt"},
    Row{"digest", "run.pt"},
    Row{"optim", "run.pt out.pt --to cpp"},
    Row{"verify", "run.pt"},
    Row{"convert", "run.pt out.safetensors --all"},
    Row{"strip", "wrapped.pt -o out.pt"},
    Row{"prefix", "run.pt -o out.pt"},
    Row{"rename", "run.pt s/0/9/ -o out.pt"},
    Row{"pick", "run.pt epoch -o out.pt"},
    Row{"drop", "run.pt epoch -o out.pt"},
    Row{"merge", "run.pt run.pt out.pt --replace"},
    Row{"average", "wrapped.pt wrapped.pt -o out.pt"},
    Row{"match", "run.pt run.pt -o out.pt"},
    Row{"extract-model", "whole.pt out.pt"},
    Row{"source", "old.pt"},
    Row{"repair", "run.pt out.pt"},
    Row{"scan", "run.pt"},
};

class LimitFlags : public CommandTest {
 protected:
  LimitFlags() {
    put("training.pth.tar", "run.pt");
    put("dataparallel.pt", "wrapped.pt");
    put("whole_model.pt", "whole.pt");
    put("tar_whole_model.pth", "old.pt");
  }

  int status(const Row& row, const std::string& flags) const {
    std::filesystem::remove(path("out.pt"));
    std::filesystem::remove(path("out.safetensors"));
    return run(format("{} {} {}", row.command, row.args, flags));
  }

  // The commands that --help lists, but for the one that lists the limits.
  std::set<std::string> commands() const {
    EXPECT_EQ(run("--help"), 0);
    std::set<std::string> names;
    bool is_list = false;
    for (const std::string& line : split(text("out.txt"), '\n')) {
      is_list = line == "Commands:" || (is_list && !line.empty());
      if (is_list && line.starts_with("  ") && line[2] != ' ') {
        names.insert(line.substr(2, line.find(' ', 2) - 2));
      }
    }
    names.erase("limits");
    return names;
  }
};

TEST_F(LimitFlags, HaveARowForEveryCommand) {
  std::set<std::string> rows;
  for (const Row& row : kRows) {
    rows.emplace(row.command);
  }
  EXPECT_EQ(rows, commands());
}

TEST_F(LimitFlags, AreTakenByEveryCommand) {
  std::string all;
  for (const ckpt::LimitInfo& limit : ckpt::limit_table()) {
    all += format(" --{} {}", limit.name, ckpt::Limits().*limit.member);
  }
  for (const Row& row : kRows) {
    EXPECT_EQ(status(row, all), 0) << row.command << text("err.txt");
  }
  EXPECT_EQ(run("limits" + all), 0) << text("err.txt");
}

TEST_F(LimitFlags, AreObeyedByEveryCommand) {
  for (const Row& row : kRows) {
    EXPECT_EQ(status(row, "--max-opcodes 1"), 3) << row.command;
    const std::string said = text("out.txt") + text("err.txt");
    EXPECT_THAT(said, HasSubstr("E_LIMIT")) << row.command;
    EXPECT_THAT(said, HasSubstr("more than 1 opcodes")) << row.command;
  }
}

TEST_F(LimitFlags, OfTheBudgetAreObeyedByEveryCommand) {
  // 16 bytes are made of each byte of a file, and 64 steps done, in any case.
  for (const Row& row : kRows) {
    if (row.command != "scan") { // it makes nothing but names
      EXPECT_EQ(status(row, "--max-made-bytes 0 --max-steps 0"), 0)
          << row.command << text("err.txt");
    }
  }
}

// 4 bytes that look like 4 MiB.
TEST_F(LimitFlags, OfExpandedViewsAreObeyedByThoseThatExpand) {
  ckpt::Tensor tensor = ckpt::floats({1});
  tensor.sizes = {1 << 20};
  tensor.strides = {0};
  ckpt::save(path("wide.pt"), ckpt::Value::dict({{"w", tensor}})).value();
  for (const char* args :
       {"digest wide.pt",
        "diff wide.pt wide.pt",
        "verify --deep wide.pt",
        "show wide.pt w",
        "show wide.pt --stats",
        "show wide.pt w --csv",
        "show wide.pt w --npy",
        "average wide.pt wide.pt -o out.pt",
        "convert wide.pt out.dcp --to dcp",
        "convert wide.pt out.npz --clone-views",
        "convert wide.pt out.pt --clone-views"}) {
    EXPECT_EQ(run(format("{} --max-expanded-bytes 1000", args)), 3) << args;
    EXPECT_THAT(text("err.txt"), HasSubstr("up to 4.0 MiB")) << args;
    EXPECT_THAT(text("err.txt"), HasSubstr("--allow-expand")) << args;
  }
  EXPECT_EQ(run("show wide.pt w --max-expanded-bytes 1000 --allow-expand"), 0)
      << text("err.txt");
}

} // namespace
} // namespace lockstep::test
