// SPDX-License-Identifier: BSD-3-Clause
//
// Every command that writes, on every kind of target: after each run all files
// that were there hold the bytes that they should, the exit status and the code
// are right, and nothing half-written remains.
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include <gmock/gmock.h>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/load.h"
#include "tests/cli/program.h"
#include "tests/support/scratch_dir.h"
#include "tests/support/shell.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

// What a command may do with a file that it reads.
enum class Own { kMayChange, kNeedsForce, kStays };

// One way to write. `args` follows the command's name; {} is the target, and
// in.pt is a copy of `input`.
struct Row {
  std::string_view command = {};
  std::string_view args = {};
  Own own = Own::kMayChange;
  std::string_view out = "out.pt";
  std::string_view input = "valid/training.pth.tar";
};

constexpr std::array kRows{
    Row{"convert", "in.pt {}", Own::kNeedsForce},
    Row{"convert", "in.pt {} --dtype bfloat16", Own::kNeedsForce},
    Row{"convert", "in.pt {} --to npz", Own::kStays},
    Row{"convert", "in.pt {} --to dcp", Own::kStays, "out"},
    Row{"convert",
        "in.pt {} --to safetensors --all --shard 300B",
        Own::kStays,
        "out.safetensors"},
    Row{"optim", "in.pt {} --to cpp", Own::kStays},
    Row{"strip",
        "in.pt -o {}",
        Own::kMayChange,
        "out.pt",
        "valid/dataparallel.pt"},
    Row{"prefix", "in.pt -o {}"},
    Row{"rename", "in.pt s/0/9/ -o {}"},
    Row{"pick", "in.pt state_dict -o {}", Own::kNeedsForce},
    Row{"drop", "in.pt optimizer -o {}"},
    Row{"merge", "in.pt other.pt {}", Own::kStays},
    Row{"average", "in.pt in.pt -o {}", Own::kStays},
    Row{"match", "in.pt in.pt -o {}", Own::kStays},
    Row{"extract-model",
        "in.pt {}",
        Own::kStays,
        "out.pt",
        "valid/whole_model.pt"},
    Row{"repair", "in.pt {}", Own::kStays},
};

std::ostream& operator<<(std::ostream& out, const Row& row) {
  return out << row.command << " " << row.args;
}

// The bytes of every file below `folder`, and where links lead.
std::map<std::string, std::string> snapshot(const std::string& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const std::string name = entry.path().lexically_relative(folder).string();
    files[name] = entry.is_symlink() ? fs::read_symlink(entry.path()).string()
                  : entry.is_directory()
                      ? "folder"
                      : test::file_text(entry.path().string());
  }
  return files;
}

// A row in a folder of its own.
class Case {
 public:
  explicit Case(const Row& row) : row_(row) {
    const std::string data = "testdata/";
    fs::copy_file(data + std::string(row.input), at("in.pt"));
    fs::copy_file(data + "valid/tiny.pt", at("other.pt"));
    fs::copy_file(data + "valid/tiny.pt", at("bystander.pt"));
  }

  [[nodiscard]] std::string at(std::string_view name) const {
    return dir_ / name;
  }
  void put(std::string_view name) const {
    std::ofstream(at(name)) << "old";
  }

  // Runs the row's command; `shell` goes before it, `flags` behind.
  test::ShellOutcome run(
      std::string_view target,
      std::string_view flags = "",
      std::string_view shell = "") {
    before_ = snapshot(dir_.path());
    std::string args(row_.args);
    args.replace(args.find("{}"), 2, target);
    outcome_ = test::run_shell(format(
        "cd '{}' && {} '{}' ckpt {} {} {} 2>&1",
        dir_.path(),
        shell,
        test::kProgram,
        row_.command,
        args,
        flags));
    return outcome_;
  }

  // Nothing at all has changed, and the program said why.
  void expect_refused(int status, std::string_view code) const {
    EXPECT_EQ(outcome_.status, status) << about();
    EXPECT_THAT(outcome_.out, HasSubstr(std::string(code))) << about();
    EXPECT_EQ(snapshot(dir_.path()), before_) << about();
  }

  // A whole checkpoint is at `target`; beside its own files nothing changed.
  void expect_written(std::string_view target) const {
    EXPECT_EQ(outcome_.status, 0) << about();
    EXPECT_THAT(outcome_.out, ContainsRegex("(^|\n)wrote ")) << about();
    const std::string index = format("{}.index.json", target);
    const auto file =
        ckpt::load(at(fs::exists(at(index)) ? index : target), {});
    EXPECT_TRUE(file) << about();
    const std::string own = fs::path(target).stem().string();
    for (const auto& [name, bytes] : snapshot(dir_.path())) {
      EXPECT_THAT(name, Not(HasSubstr(".tmp."))) << about();
      const auto old = before_.find(name);
      const bool is_same = old != before_.end() && old->second == bytes;
      EXPECT_TRUE(is_same || name.starts_with(own)) << name << about();
    }
  }

 private:
  [[nodiscard]] std::string about() const {
    return format(
        "\n{} {}\n{}exit {}",
        row_.command,
        row_.args,
        outcome_.out,
        outcome_.status);
  }

  Row row_;
  test::ScratchDir dir_;
  std::map<std::string, std::string> before_;
  test::ShellOutcome outcome_;
};

class Targets : public testing::TestWithParam<Row> {
 protected:
  [[nodiscard]] bool writes_folder() const {
    return GetParam().out == "out";
  }
};

TEST_P(Targets, NewOneIsWritten) {
  Case c(GetParam());
  c.run(GetParam().out);
  c.expect_written(GetParam().out);
}

TEST_P(Targets, ADryRunWritesNothing) {
  Case c(GetParam());
  const auto outcome = c.run(GetParam().out, "--dry-run");
  EXPECT_THAT(outcome.out, HasSubstr("nothing was written"));
  c.expect_refused(0, "would write");
}

TEST_P(Targets, ExistingOneStaysWithoutForce) {
  Case c(GetParam());
  c.put(GetParam().out);
  c.run(GetParam().out);
  c.expect_refused(2, "(E_EXISTS)");
  if (!writes_folder()) {
    c.run(GetParam().out, "--force");
    c.expect_written(GetParam().out);
  }
}

TEST_P(Targets, FolderIsNotReplacedByAFile) {
  Case c(GetParam());
  fs::create_directory(c.at(GetParam().out));
  c.run(GetParam().out, "--force");
  if (writes_folder()) {
    c.expect_written(GetParam().out); // an empty one has nothing to lose
    c.run(GetParam().out);
    c.expect_refused(2, "(E_EXISTS)");
  } else {
    c.expect_refused(2, "(E_NOT_REGULAR)");
  }
}

// in.pt by its name, by a symbolic link and by a hard link.
TEST_P(Targets, OwnInputChangesOnlyWhereThatWasAsked) {
  for (const char* name : {"in.pt", "soft.pt", "hard.pt", "./in.pt"}) {
    for (const char* flags : {"", "--force"}) {
      Case c(GetParam());
      fs::create_symlink("in.pt", c.at("soft.pt"));
      if (std::string_view(name) == "hard.pt") {
        fs::create_hard_link(c.at("in.pt"), c.at("hard.pt"));
      }
      const bool forced = *flags != '\0';
      c.run(name, flags);
      if (GetParam().own == Own::kMayChange ||
          (GetParam().own == Own::kNeedsForce && forced)) {
        c.expect_written(name == std::string_view("hard.pt") ? name : "in.pt");
      } else if (writes_folder() || GetParam().out != "out.pt") {
        c.expect_refused(2, "E_"); // the ending says so first, or the file
      } else {
        c.expect_refused(2, "(E_SAME_FILE)");
      }
    }
  }
}

// What a shell makes of a variable that is not set.
TEST(EmptyNames, ChangeNothing) {
  for (const Row& row :
       {Row{"drop", "in.pt optimizer -o {}"},
        Row{"strip", "in.pt --output {}"},
        Row{"strip", "in.pt --prefix {}"},
        Row{"convert", "in.pt {}"}}) {
    Case c(row);
    c.run("''");
    c.expect_refused(2, "[cli.args]");
  }
}

// Several files from one of the same format, which is the target itself.
TEST(Shards, TakeThePlaceOfTheirInputOnlyIfForced) {
  const Row row{"convert", "w.safetensors {} --shard 10B"};
  for (const bool forced : {false, true}) {
    Case c(row);
    ASSERT_EQ(
        test::run_shell(format(
                            "'{}' ckpt convert '{}' '{}'",
                            test::kProgram,
                            c.at("in.pt"),
                            c.at("w.safetensors")))
            .status,
        0);
    c.run("w.safetensors", forced ? "--force" : "");
    if (forced) {
      c.expect_written("w.safetensors");
      EXPECT_FALSE(fs::exists(c.at("w.safetensors")));
    } else {
      c.expect_refused(2, "(E_SAME_FILE)");
    }
  }
}

TEST(Shards, OfSomebodyElseStay) {
  Case c({"convert", "in.pt {} --shard 50B"});
  const auto made = test::run_shell(format(
      "cd '{}' && '{}' ckpt convert in.pt out.safetensors --shard 50B && "
      "rm out.safetensors.index.json out-00001-*",
      c.at(""),
      test::kProgram));
  ASSERT_EQ(made.status, 0) << made.err;
  c.run("out.safetensors");
  c.expect_refused(2, "the output file exists (out-00002-of-");
  c.run("out.safetensors", "--force");
  c.expect_written("out.safetensors");
}

TEST_P(Targets, LinkThatLeadsNowhereIsFollowed) {
  Case c(GetParam());
  fs::create_symlink("none/file", c.at("lost"));
  c.run("lost");
  c.expect_refused(4, "does not exist");
  fs::create_symlink("outside", c.at("out"));
  if (!writes_folder() && GetParam().out == "out.pt") {
    c.run("out");
    c.expect_written("out");
    EXPECT_TRUE(fs::is_symlink(c.at("out")));
  }
}

TEST_P(Targets, PlacesThatAreNoFileAreRefused) {
  Case c(GetParam());
  c.run("none/out");
  c.expect_refused(4, "does not exist");
  for (const char* place : {"-", "/dev/stdout", "/dev/null"}) {
    c.run(place, "--force");
    c.expect_refused(2, "(E_NOT_REGULAR)");
  }
}

TEST_P(Targets, WhatIsReadOnlyStaysAsItIs) {
  Case c(GetParam());
  // Root may write anywhere, but not without this capability.
  const std::string user =
      ::geteuid() == 0 ? "setpriv --bounding-set -dac_override" : "";
  fs::create_directory(c.at("ro"));
  fs::permissions(c.at("ro"), fs::perms(0555));
  c.run(format("ro/{}", GetParam().out), "", user);
  c.expect_refused(4, writes_folder() ? "(E_PERMISSION)" : "the folder 'ro'");
  if (!writes_folder()) {
    c.put("out");
    fs::permissions(c.at("out"), fs::perms(0444));
    c.run("out", "--force", user);
    c.expect_refused(4, "(E_PERMISSION)");
  }
}

// No file may grow: what a full disk does, for every user.
constexpr std::string_view kFullDisk = "trap '' XFSZ; ulimit -f 0;";

TEST_P(Targets, FullDiskLeavesEverythingAsItWas) {
  Case c(GetParam());
  c.run(GetParam().out, "", kFullDisk);
  c.expect_refused(4, "[fs.");
  if (!writes_folder()) {
    c.put("out");
    c.run("out", "--force --json", kFullDisk);
    c.expect_refused(4, "kIo");
  }
  if (GetParam().own == Own::kMayChange) {
    c.run("in.pt", "", kFullDisk);
    c.expect_refused(4, "[fs.");
  }
}

INSTANTIATE_TEST_SUITE_P(
    Commands,
    Targets,
    testing::ValuesIn(kRows),
    [](const auto& param) {
      std::string name = format("{}_{}", param.param.command, param.index);
      std::erase(name, '-');
      return name;
    });

// Commands that have --force, as the program itself says.
std::set<std::string> writing_commands() {
  constexpr std::string_view kStart = ".B lockstep ckpt ";
  std::set<std::string> names;
  const auto manual = test::run_shell("'" + test::kProgram + "' man");
  for (const std::string& line : split(manual.out, '\n')) {
    if (!line.starts_with(kStart)) {
      continue;
    }
    const std::string name = split(line.substr(kStart.size()), ' ').front();
    std::string plain = name;
    std::erase(plain, '\\');
    const auto help =
        test::run_shell(format("'{}' ckpt {} --help", test::kProgram, plain));
    EXPECT_EQ(help.status, 0) << plain;
    if (help.out.find("--force") != std::string::npos) {
      EXPECT_THAT(help.out, HasSubstr("--dry-run")) << plain;
      names.insert(plain);
    }
  }
  return names;
}

TEST(TargetTable, HasARowForEveryCommandThatWrites) {
  std::set<std::string> rows;
  for (const Row& row : kRows) {
    rows.emplace(row.command);
  }
  EXPECT_EQ(writing_commands(), rows);
  EXPECT_GT(rows.size(), 9U);
}

// A command that saved by itself would go round the rule.
TEST(TargetTable, NoCommandSavesByItself) {
  for (const auto& entry : fs::directory_iterator("cli")) {
    const std::string text = test::file_text(entry.path().string());
    if (entry.path().filename() == "target.cpp") {
      EXPECT_THAT(text, HasSubstr("ckpt::write_checkpoint("));
      continue;
    }
    EXPECT_THAT(
        text,
        Not(testing::ContainsRegex(
            "ckpt::(save|write_checkpoint|rewrite)\\(|atomically\\(|ofstream")))
        << entry.path();
  }
}

} // namespace
} // namespace lockstep
