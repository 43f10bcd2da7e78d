// SPDX-License-Identifier: BSD-3-Clause
//
// Symbolic links tell the same story in memory and on the disk, and a link is
// replaced by another in one step, whatever fails.
#include <cerrno>

#include <gmock/gmock.h>

#include "lockstep/base/internal/atomic_file.h"
#include "tests/base/real_files.h"
#include "tests/support/fault_fs.h"
#include "tests/support/memory_fs.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;

void put_synced(
    FileSystem& fs,
    const std::string& path,
    std::string_view text) {
  const auto file = fs.append(path).value();
  file->write(as_byte_span(text)).value();
  file->sync().value();
}

template <class T>
std::string outcome(const Result<T>& result) {
  return result ? "ok"
                : std::string(error_info(result.error().code).name) + " " +
                      result.error().detail;
}

// Every call meets a link; `root` is an empty folder.
std::vector<std::string> story(FileSystem& fs, const std::string& root) {
  const auto at = [&](const std::string& name) { return root + "/" + name; };
  std::vector<std::string> lines;
  const auto add = [&](const auto& result) {
    lines.push_back(outcome(result));
  };
  fs.create_directories(at("real/sub")).value();
  put_synced(fs, at("real/a"), "hello");
  add(fs.symlink("real/a", at("link")));
  add(fs.symlink("real/a", at("link")));
  add(fs.symlink("real/a", at("real")));
  add(fs.symlink("a", at("none/link")));
  add(fs.symlink("", at("empty")));
  add(fs.symlink("real", at("folder")));
  add(fs.symlink("../link", at("real/chain")));
  add(fs.symlink("missing", at("dangling")));
  add(fs.symlink("loop", at("loop")));
  add(fs.create(at("dangling"), 0644));
  for (const char* name : {"link", "folder/a", "real/chain", "folder/chain"}) {
    lines.push_back(read_text(fs, at(name)).value());
    lines.push_back(std::to_string(fs.stat(at(name))->size));
    add(fs.map(at(name)));
    add(fs.create(at(name), 0644));
    lines.push_back(fs.resolve(at(name)).value().substr(root.size()));
  }
  add(fs.stat(at("folder/sub")));
  for (const char* name : {"dangling", "loop", "folder/none"}) {
    add(fs.stat(at(name)));
    add(fs.open_read(at(name)));
    add(fs.open_update(at(name)));
    add(fs.truncate(at(name), 0));
    add(fs.resolve(at(name)));
  }
  put_synced(fs, at("folder/chain"), " world");
  add(fs.truncate(at("link"), 8));
  fs.open_update(at("link")).value()->write_at(0, as_byte_span("J")).value();
  lines.push_back(read_text(fs, at("real/a")).value());
  put_synced(fs, at("dangling"), "made");
  lines.push_back(read_text(fs, at("missing")).value());
  add(fs.rename(at("link"), at("real/sub/link")));
  add(fs.stat(at("real/sub/link"))); // its text meant another folder
  add(fs.rename(at("real/a"), at("folder/b")));
  add(fs.rename(at("missing"), at("loop")));
  add(fs.remove(at("real/chain")));
  for (const char* name : {".", "folder", "folder/sub"}) {
    for (const std::string& found : fs.list(at(name)).value()) {
      lines.push_back(found);
    }
    add(fs.sync_directory(at(name)));
  }
  add(fs.create_directories(at("folder/sub/new")));
  add(fs.stat(at("real/sub/new")));
  add(fs.remove(at("folder")));
  add(fs.remove(at("folder")));
  add(fs.stat(at("real/b")));
  return lines;
}

using LinkTest = test::RealFiles;

TEST_F(LinkTest, MemoryBehavesLikeTheRealFileSystem) {
  MemoryFs memory;
  memory.create_directories("root").value();
  EXPECT_EQ(story(memory, "root"), story(fs_, dir_.path()));
}

TEST_F(LinkTest, AtomicWritesFollowThemInMemoryToo) {
  MemoryFs fs;
  fs.create_directories("real").value();
  fs.symlink("real/file", "link").value();
  for (const char* text : {"first", "second"}) {
    ASSERT_TRUE(write_file_atomically(fs, "link", text));
    EXPECT_EQ(read_text(fs, "real/file").value(), text);
  }
  EXPECT_EQ(fs.resolve("link").value(), "real/file");
}

TEST_F(LinkTest, AreLostByAPowerCutAsOtherNamesAre) {
  MemoryFs fs;
  put_synced(fs, "a", "text");
  fs.sync_directory(".").value();
  fs.symlink("a", "link").value();
  MemoryFs kept = fs.after_power_loss({.keep_names = true});
  EXPECT_EQ(read_text(kept, "link").value(), "text");
  EXPECT_THAT(fs.after_power_loss({}).list(".").value(), ElementsAre("a"));
  fs.sync_directory(".").value();
  EXPECT_EQ(fs.after_power_loss({}).resolve("link").value(), "a");
}

TEST_F(LinkTest, ReplacesLinksAndFilesButNoFolder) {
  const std::string path = dir_ / "last";
  put("one", "1");
  put("two", "2");
  for (const char* target : {"one", "two", "none"}) {
    ASSERT_TRUE(replace_link(fs_, target, path));
    EXPECT_EQ(fs_.resolve(path).value(), dir_ / target);
  }
  ASSERT_TRUE(replace_link(fs_, "two", dir_ / "one"));
  EXPECT_EQ(get(dir_ / "one"), "2");
  EXPECT_EQ(
      replace_link(fs_, "one", dir_.path()).error().detail,
      "E_NOT_REGULAR");
  const Status nowhere = replace_link(fs_, "one", dir_ / "none/last");
  EXPECT_EQ(nowhere.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(nowhere.error().path, dir_ / "none/last");
  EXPECT_THAT(fs_.list(dir_.path()).value(), ElementsAre("last", "one", "two"));
}

// What the link may replace.
enum class Before { kNothing, kFile, kLink };

class ReplaceLinkTest : public ::testing::TestWithParam<Before> {
 protected:
  static MemoryFs start() {
    MemoryFs fs;
    fs.create_directories("run").value();
    put_synced(fs, "run/new.pth", "new");
    if (GetParam() == Before::kFile) {
      put_synced(fs, "run/last", "old");
    } else if (GetParam() == Before::kLink) {
      put_synced(fs, "run/old.pth", "old");
      fs.symlink("old.pth", "run/last").value();
    }
    fs.sync_directory("run").value();
    return fs;
  }

  // The old one or the new one is there, and no temporary name.
  static void check(FileSystem& fs, bool must_be_new) {
    remove_stale_temporaries(fs, "run", [](std::int64_t) {
      return false;
    }).value();
    for (const std::string& name : fs.list("run").value()) {
      EXPECT_FALSE(name.starts_with('.')) << name;
    }
    const auto found = read_text(fs, "run/last");
    if (!found) {
      EXPECT_EQ(GetParam(), Before::kNothing);
      EXPECT_FALSE(must_be_new);
    } else if (must_be_new || *found != "old") {
      EXPECT_EQ(*found, "new");
    }
  }

  static void try_plan(const FaultPlan& plan) {
    MemoryFs memory = start();
    FaultFs faulty(memory, plan);
    const bool is_done =
        replace_link(faulty, "new.pth", "run/last").has_value();
    EXPECT_EQ(is_done, plan.fail_at >= 3);
    if (plan.failures == 1) {
      for (const std::string& name : memory.list("run").value()) {
        EXPECT_FALSE(name.starts_with('.')) << name;
      }
    }
    using enum PowerLoss::Data;
    for (const auto data : {kLost, kKept, kTorn}) {
      for (const bool keep_names : {false, true}) {
        MemoryFs later =
            memory.after_power_loss({.data = data, .keep_names = keep_names});
        check(later, is_done);
      }
    }
    check(memory, is_done);
  }
};
INSTANTIATE_TEST_SUITE_P(
    WhateverWasThere,
    ReplaceLinkTest,
    testing::Values(Before::kNothing, Before::kFile, Before::kLink));

TEST_P(ReplaceLinkTest, LeavesTheOldOrTheNewOneInEveryState) {
  for (std::uint64_t index = 0; index <= 4; ++index) {
    SCOPED_TRACE(index);
    for (const std::uint64_t failures : {std::uint64_t{1}, FaultPlan::kNever}) {
      try_plan({.fail_at = index, .failures = failures});
    }
  }
}

} // namespace
} // namespace lockstep
