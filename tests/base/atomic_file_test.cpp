// SPDX-License-Identifier: BSD-3-Clause
//
// Every operation of an atomic write fails once, every byte budget runs out,
// the process dies before every operation, and after each of these the power
// goes in six ways. What is found must be the old file or the new one. Writers
// with a known mistake must be caught by the same search.
#include "lockstep/base/internal/atomic_file.h"

#include <cerrno>

#include <gmock/gmock.h>

#include "lockstep/base/strings.h"
#include "tests/support/fault_fs.h"
#include "tests/support/memory_fs.h"

namespace lockstep {
namespace {

using ::testing::Contains;
using ::testing::IsEmpty;
using ::testing::StartsWith;

const std::string kPath = "run/model.pth";
const std::string kOld(900, 'o');
const std::string kNew(1300, 'n'); // two whole sectors and a part

using Writer = std::function<Status(FileSystem&)>;

Status real_writer(FileSystem& fs) {
  return write_file_atomically(fs, kPath, kNew);
}

// Tries one writer under every fault and collects broken promises.
class Search {
 public:
  Search(Writer writer, bool has_old)
      : writer_(std::move(writer)), has_old_(has_old) {}

  std::vector<std::string> run() {
    const std::uint64_t operations = count_operations();
    constexpr std::array kErrors{ENOSPC, EDQUOT, EIO, EROFS, EMFILE, EINTR};
    for (std::uint64_t index = 0; index <= operations; ++index) {
      for (const std::uint64_t reach : {std::uint64_t{0}, std::uint64_t{700}}) {
        for (const int error : kErrors) {
          try_plan(
              {.fail_at = index,
               .error_number = error,
               .short_write_bytes = reach});
        }
        try_plan(
            {.fail_at = index,
             .failures = FaultPlan::kNever,
             .short_write_bytes = reach});
      }
    }
    for (std::uint64_t budget = 0; budget <= kNew.size() + 1; ++budget) {
      try_plan({.byte_budget = budget});
    }
    return std::move(broken_);
  }

  [[nodiscard]] std::size_t states() const {
    return states_;
  }

 private:
  static void put_old(FileSystem& fs) {
    const auto file = fs.create(kPath, 0644).value();
    file->write(as_byte_span(kOld)).value();
    file->sync().value();
    fs.sync_directory("run").value();
  }

  [[nodiscard]] MemoryFs start() const {
    MemoryFs fs;
    fs.create_directories("run").value();
    if (has_old_) {
      put_old(fs);
    }
    return fs;
  }

  [[nodiscard]] std::uint64_t count_operations() const {
    MemoryFs memory = start();
    FaultFs counting(memory);
    writer_(counting).value();
    return counting.operations();
  }

  void try_plan(const FaultPlan& plan) {
    plan_ = plan;
    MemoryFs memory = start();
    FaultFs faulty(memory, plan);
    const bool reported_success = writer_(faulty).has_value();
    const bool died = plan.failures == FaultPlan::kNever;
    if (!died && memory.list("run")->size() > 1) {
      report("leaves a temporary file");
    }
    using enum PowerLoss::Data;
    for (const auto data : {kLost, kKept, kTorn}) {
      for (const bool keep_names : {false, true}) {
        MemoryFs later =
            memory.after_power_loss({.data = data, .keep_names = keep_names});
        check(later, reported_success);
      }
    }
    check(memory, reported_success);
  }

  void check(FileSystem& fs, bool must_be_new) {
    ++states_;
    remove_stale_temporaries(fs, "run", [](std::int64_t) {
      return false;
    }).value();
    const auto names = fs.list("run").value();
    if (names.size() > 1) {
      report("keeps a temporary file");
    }
    const auto found = read_text(fs, kPath);
    const bool is_new = found && *found == kNew;
    const bool is_old = has_old_ ? found && *found == kOld : names.empty();
    if (!is_new && !is_old) {
      report("neither old nor new");
    } else if (must_be_new && !is_new) {
      report("success, but the old file");
    }
  }

  void report(std::string_view what) {
    broken_.push_back(format(
        "{} (fail_at {}, budget {})",
        what,
        plan_.fail_at,
        plan_.byte_budget));
  }

  Writer writer_;
  bool has_old_;
  FaultPlan plan_;
  std::size_t states_ = 0;
  std::vector<std::string> broken_;
};

class AtomicFileTest : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(
    WithAndWithoutOldFile,
    AtomicFileTest,
    testing::Bool());

TEST_P(AtomicFileTest, LeavesTheOldOrTheNewFileInEveryState) {
  Search search(real_writer, GetParam());
  EXPECT_THAT(search.run(), IsEmpty());
  EXPECT_GE(search.states(), 10000U);
}

TEST_P(AtomicFileTest, LeavesTheOldOrTheNewFileWhenTheSizeIsNotKnown) {
  const auto fill = [](WritableFile& file) -> Status {
    LOCKSTEP_TRY(file.write(as_byte_span(kNew).first(600)));
    return file.write(as_byte_span(kNew).subspan(600));
  };
  const Writer writer = [&](FileSystem& fs) {
    return write_file_atomically(fs, kPath, fill);
  };
  EXPECT_THAT(Search(writer, GetParam()).run(), IsEmpty());
}

// A writer made by hand, with one mistake chosen by the test.
struct Mistakes {
  bool in_place = false;
  bool no_sync = false;
  bool no_directory_sync = false;
  bool repeats_sync = false;
  bool syncs_after_rename = false;
  bool ignores_write_errors = false;
  bool leaves_temporary = false;
};

Status finish(
    FileSystem& fs,
    WritableFile& file,
    const std::string& name,
    const Mistakes& mistakes) {
  if (Status status = file.write(as_byte_span(kNew));
      !status && !mistakes.ignores_write_errors) {
    return status;
  }
  const auto sync = [&] {
    Status status = mistakes.no_sync ? Status() : file.sync();
    return !status && mistakes.repeats_sync ? file.sync() : std::move(status);
  };
  if (!mistakes.syncs_after_rename) {
    LOCKSTEP_TRY(sync());
  }
  if (!mistakes.in_place) {
    LOCKSTEP_TRY(fs.rename(name, kPath));
  }
  if (mistakes.syncs_after_rename) {
    LOCKSTEP_TRY(sync());
  }
  return mistakes.no_directory_sync ? Status() : fs.sync_directory("run");
}

Writer hand_made(const Mistakes& mistakes) {
  return [mistakes](FileSystem& fs) -> Status {
    const std::string name =
        mistakes.in_place ? kPath : "run/.model.pth.tmp.1.0123456789abcdef";
    LOCKSTEP_ASSIGN(
        const auto file,
        mistakes.in_place ? fs.append(name) : fs.create(name, 0644));
    LOCKSTEP_TRY(mistakes.in_place ? fs.truncate(name, 0) : Status());
    Status status = finish(fs, *file, name, mistakes);
    if (!status && !mistakes.leaves_temporary && !mistakes.in_place) {
      static_cast<void>(fs.remove(name));
    }
    return status;
  };
}

std::vector<std::string> search_with(const Mistakes& mistakes) {
  return Search(hand_made(mistakes), true).run();
}

TEST(AtomicFileSearch, AcceptsTheHandMadeWriterWithoutMistakes) {
  EXPECT_THAT(search_with({}), IsEmpty());
}

TEST(AtomicFileSearch, CatchesEveryMistake) {
  EXPECT_THAT(
      search_with({.in_place = true}),
      Contains(StartsWith("neither old nor new")));
  EXPECT_THAT(
      search_with({.no_sync = true}),
      Contains(StartsWith("neither old nor new")));
  EXPECT_THAT(
      search_with({.no_directory_sync = true}),
      Contains(StartsWith("success, but the old file")));
  EXPECT_THAT(
      search_with({.repeats_sync = true}),
      Contains(StartsWith("neither old nor new")));
  EXPECT_THAT(
      search_with({.syncs_after_rename = true}),
      Contains(StartsWith("neither old nor new")));
  EXPECT_THAT(
      search_with({.ignores_write_errors = true}),
      Contains(StartsWith("neither old nor new")));
  EXPECT_THAT(
      search_with({.leaves_temporary = true}),
      Contains(StartsWith("leaves a temporary file")));
}

TEST(AtomicFileOptions, WithoutDurabilityNothingIsSynced) {
  MemoryFs fs;
  ASSERT_TRUE(write_file_atomically(fs, "a", "text", {.durable = false}));
  EXPECT_EQ(read_text(fs, "a").value(), "text");
  MemoryFs later = fs.after_power_loss({});
  EXPECT_THAT(later.list(".").value(), IsEmpty());
}

TEST(AtomicFileTest, AProtectedFileIsNotReplaced) {
  MemoryFs fs;
  fs.create("m.pth", 0444).value()->write(as_byte_span(kOld)).value();
  const Status refused = write_file_atomically(fs, "m.pth", kNew);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().detail, "E_PERMISSION");
  EXPECT_EQ(*read_text(fs, "m.pth"), kOld);
  EXPECT_EQ(fs.list(".").value(), std::vector<std::string>{"m.pth"});
}

} // namespace
} // namespace lockstep
