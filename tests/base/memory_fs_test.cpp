// SPDX-License-Identifier: BSD-3-Clause
#include "tests/support/memory_fs.h"

#include <cerrno>

#include <gmock/gmock.h>

#include "tests/support/fault_fs.h"
#include "tests/support/scratch_dir.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;

void put(FileSystem& fs, const std::string& path, std::string_view text) {
  const auto file = fs.append(path).value();
  file->write(as_byte_span(text)).value();
}

// One line per call: what it gave. Both file systems must tell the same story.
class Story {
 public:
  Story(FileSystem& fs, std::string root) : fs_(fs), root_(std::move(root)) {}

  std::vector<std::string> tell() {
    fs_.create_directories(at("dir/sub")).value();
    put(fs_, at("dir/a"), "hello");
    put(fs_, at("dir/a"), " world");
    add(read_text(fs_, at("dir/./a")).value());
    add(fs_.truncate(at("dir/a"), 5));
    add(std::to_string(fs_.stat(at("dir/a"))->size));
    add(fs_.chmod(at("dir/a"), 0600));
    add(std::to_string(fs_.stat(at("dir/a"))->mode));
    add(fs_.create(at("dir/a"), 0644));
    add(fs_.create(at("none/a"), 0644));
    add(fs_.append(at("dir/sub")));
    add(fs_.rename(at("dir/a"), at("dir/b")));
    add(fs_.rename(at("dir/a"), at("dir/c")));
    add(fs_.rename(at("dir/b"), at("none/b")));
    add(fs_.rename(at("dir/b"), at("dir/sub")));
    put(fs_, at("dir/d"), "there");
    add(fs_.rename_new(at("dir/b"), at("dir/d")));
    add(fs_.rename_new(at("dir/b"), at("dir/sub")));
    add(fs_.rename_new(at("dir/b"), at("none/b")));
    add(fs_.rename_new(at("dir/none"), at("dir/e")));
    add(read_text(fs_, at("dir/d")).value());
    add(fs_.rename_new(at("dir/b"), at("dir/e")));
    add(fs_.rename_new(at("dir/e"), at("dir/b")));
    for (const std::string& name : fs_.list(at("dir")).value()) {
      add(name);
    }
    add(fs_.list(at("none")));
    add(fs_.sync_directory(at("dir")));
    add(fs_.sync_directory(at("none")));
    std::array<std::byte, 4> out = {};
    const auto file = fs_.open_read(at("dir/b")).value();
    add(file->read_at(1, out));
    add(file->read_at(2, out));
    add(std::to_string(fs_.map(at("dir/b")).value()->bytes().size()));
    add(fs_.remove(at("dir/b")));
    add(fs_.remove(at("dir/b")));
    add(fs_.open_read(at("dir/b")));
    add(fs_.map(at("dir/sub")));
    add(fs_.create_directories(at("dir/sub")));
    return lines_;
  }

 private:
  [[nodiscard]] std::string at(const std::string& name) const {
    return root_ + "/" + name;
  }
  void add(const std::string& line) {
    lines_.push_back(line);
  }
  template <class T>
  void add(const Result<T>& result) {
    add(result ? "ok"
               : std::string(error_info(result.error().code).name) + " " +
                     result.error().detail);
  }

  FileSystem& fs_;
  std::string root_;
  std::vector<std::string> lines_;
};

TEST(MemoryFs, BehavesLikeTheRealFileSystem) {
  const test::ScratchDir dir;
  MemoryFs memory;
  memory.create_directories("root").value();
  EXPECT_EQ(Story(memory, "root").tell(), Story(real_fs(), dir.path()).tell());
}

TEST(MemoryFs, ForgetsWhatWasNotSynced) {
  MemoryFs fs;
  const auto file = fs.create("a", 0644).value();
  file->write(as_byte_span(std::string(600, 'a'))).value();
  file->sync().value();
  file->write(as_byte_span(std::string(600, 'b'))).value();
  const auto size_after = [&](PowerLoss::Data data) {
    return fs.after_power_loss({.data = data, .keep_names = true})
        .stat("a")
        ->size;
  };
  EXPECT_EQ(size_after(PowerLoss::Data::kLost), 600U);
  EXPECT_EQ(size_after(PowerLoss::Data::kTorn), 1024U);
  EXPECT_EQ(size_after(PowerLoss::Data::kKept), 1200U);
  EXPECT_FALSE(fs.after_power_loss({}).stat("a"));
  fs.sync_directory(".").value();
  EXPECT_TRUE(fs.after_power_loss({}).stat("a"));
}

TEST(MemoryFs, SyncsNamesOfOneDirectoryOnly) {
  MemoryFs fs;
  fs.create_directories("x").value();
  fs.create_directories("y").value();
  put(fs, "x/a", "1");
  put(fs, "y/b", "2");
  fs.sync_directory("x").value();
  MemoryFs later = fs.after_power_loss({});
  EXPECT_THAT(later.list("x").value(), ElementsAre("a"));
  EXPECT_THAT(later.list("y").value(), ElementsAre());
}

TEST(FaultFs, FailsTheChosenOperationOnly) {
  MemoryFs memory;
  FaultFs fs(memory, {.fail_at = 1, .error_number = ENOSPC});
  EXPECT_TRUE(fs.create_directories("x"));
  const Status failed = fs.create_directories("y");
  EXPECT_EQ(failed.error().detail, "E_NO_SPACE");
  EXPECT_TRUE(fs.create_directories("z"));
  EXPECT_THAT(memory.list(".").value(), ElementsAre("x", "z"));
  EXPECT_EQ(fs.operations(), 3U);
}

TEST(FaultFs, KilledProcessHasNoMoreEffect) {
  MemoryFs memory;
  FaultFs fs(memory, {.fail_at = 2, .failures = FaultPlan::kNever});
  const auto file = fs.create("a", 0644).value();
  EXPECT_TRUE(file->write(as_byte_span("x")));
  EXPECT_FALSE(file->write(as_byte_span("y")));
  EXPECT_FALSE(fs.remove("a"));
  EXPECT_EQ(read_text(memory, "a").value(), "x");
}

TEST(FaultFs, WritesShortAndRunsOutOfSpace) {
  MemoryFs memory;
  FaultFs torn(memory, {.fail_at = 1, .short_write_bytes = 2});
  EXPECT_FALSE(torn.create("a", 0644).value()->write(as_byte_span("hello")));
  EXPECT_EQ(read_text(memory, "a").value(), "he");

  FaultFs full(memory, {.byte_budget = 3});
  EXPECT_EQ(full.free_space(".").value(), 3U);
  const Status status =
      full.create("b", 0644).value()->write(as_byte_span("hello"));
  EXPECT_EQ(status.error().detail, "E_NO_SPACE");
  EXPECT_EQ(read_text(memory, "b").value(), "hel");
  EXPECT_EQ(full.free_space(".").value(), 0U);
}

TEST(FaultFs, ARepeatedSyncLiesAsLinuxDoes) {
  MemoryFs memory;
  FaultFs fs(memory, {.fail_at = 2});
  const auto file = fs.create("a", 0644).value();
  file->write(as_byte_span("data")).value();
  EXPECT_FALSE(file->sync());
  EXPECT_TRUE(file->sync());
  MemoryFs later = memory.after_power_loss({.keep_names = true});
  EXPECT_EQ(read_text(later, "a").value(), "");
}

TEST(FaultFs, OnlyWhatIsWrittenAgainComesBackAfterAFailedSync) {
  MemoryFs memory;
  FaultFs fs(memory, {.fail_at = 2});
  const auto durable = [&memory] {
    MemoryFs later = memory.after_power_loss({.keep_names = true});
    return read_text(later, "a").value();
  };
  {
    const auto file = fs.create("a", 0644).value();
    file->write(as_byte_span("data")).value();
    EXPECT_FALSE(file->sync());
  }
  const auto file = fs.open_update("a").value();
  ASSERT_TRUE(file->sync());
  EXPECT_EQ(durable(), "") << "opening it again brings nothing back";
  ASSERT_TRUE(file->write_at(0, as_byte_span("da")));
  ASSERT_TRUE(file->sync());
  EXPECT_EQ(durable(), "") << "a part of it is still missing";
  ASSERT_TRUE(file->write_at(2, as_byte_span("ta")));
  ASSERT_TRUE(file->sync());
  EXPECT_EQ(durable(), "data");
}

TEST(FaultFs, FailsReadsToo) {
  MemoryFs memory;
  put(memory, "a", "data");
  FaultFs fs(memory, {.fail_at = 1});
  EXPECT_EQ(read_text(fs, "a").error().op, "fs.read");
}

} // namespace
} // namespace lockstep
