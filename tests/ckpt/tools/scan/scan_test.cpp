// SPDX-License-Identifier: BSD-3-Clause
//
// The scanner against testdata/hostile, made by tests/oracle/make_hostile.py:
// each file says which names must be seen. Adding a file adds a test.
#include "lockstep/ckpt/scan.h"

#include <algorithm>
#include <set>
#include <utility>

#include <gmock/gmock.h>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/tools/scan/pickle_scan.h"
#include "tests/ckpt/counted_source.h"
#include "tests/ckpt/expected_files.h"
#include "tests/ckpt/tools/scan/archives.h"
#include "tests/support/memory_fs.h"
#include "tests/support/shell.h"

namespace lockstep::ckpt {
namespace {

using testing::Contains;
using testing::IsEmpty;
using testing::UnorderedElementsAreArray;

ScanReport scan_file(const std::string& path) {
  const auto reports = scan_path(path);
  EXPECT_TRUE(reports) << to_string(reports.error());
  return reports ? reports->front() : ScanReport{};
}

std::set<std::string> names_in(const ScanReport& report) {
  std::set<std::string> names;
  for (const ScanFinding& finding : report.findings) {
    names.insert(finding.name);
  }
  return names;
}

std::vector<std::string> notes_in(const ScanReport& report) {
  std::vector<std::string> notes;
  notes.reserve(report.notes.size());
  for (const Error& note : report.notes) {
    notes.push_back(note.detail);
  }
  return notes;
}

class HostileFile : public testing::TestWithParam<std::string> {};

TEST_P(HostileFile, GivesItsVerdict) {
  const auto expected = test::expectation_of(GetParam());
  const ScanReport report = scan_file(GetParam());
  EXPECT_EQ(
      verdict_name(report.verdict),
      expected["verdict"].get<std::string>());
  EXPECT_THAT(
      names_in(report),
      UnorderedElementsAreArray(
          expected["names"].get<std::vector<std::string>>()));
  for (const auto& note : expected["notes"]) {
    EXPECT_THAT(notes_in(report), Contains(note.get<std::string>()));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Testdata,
    HostileFile,
    testing::ValuesIn(test::expected_files("testdata/hostile")),
    test::file_test_name);

// Where a file can be cut behind the name of a dangerous call that stands in it
// in plain text; the size of the file if there is none.
std::size_t first_cut(const std::string& bytes) {
  constexpr std::string_view kCall = "system";
  const std::size_t at = bytes.find(kCall);
  return at == std::string::npos
             ? bytes.size()
             : std::min(bytes.size(), at + kCall.size() + 2);
}

std::vector<std::string> plain_files() {
  constexpr std::size_t kSmall = 4096;
  std::vector<std::string> files = test::expected_files("testdata/hostile");
  std::erase_if(files, [](const std::string& path) {
    const std::string bytes = test::file_text(path);
    return bytes.size() > kSmall || first_cut(bytes) == bytes.size();
  });
  return files;
}

class PlainHostileFile : public testing::TestWithParam<std::string> {};

// The name is seen wherever the file is cut behind it.
TEST_P(PlainHostileFile, IsNeverCleanWhenCut) {
  const std::string bytes = test::file_text(GetParam());
  for (std::size_t size = first_cut(bytes); size < bytes.size(); ++size) {
    const ScanReport report =
        scan(make_source(as_byte_span(bytes).first(size)), "cut");
    EXPECT_NE(report.verdict, Verdict::kClean) << size;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Testdata,
    PlainHostileFile,
    testing::ValuesIn(plain_files()),
    test::file_test_name);

TEST(PlainHostileFiles, AreMostOfThem) {
  EXPECT_GE(plain_files().size(), 25U);
}

TEST(Scan, CallsTheFilesOfPyTorchClean) {
  for (const char* name :
       {"tiny.pt",
        "training.pth.tar",
        "views.pt",
        "values.pt",
        "deflated.pt"}) {
    const ScanReport report = scan_file(std::string("testdata/valid/") + name);
    EXPECT_EQ(report.verdict, Verdict::kClean) << name;
    EXPECT_EQ(report.format, "zip");
    EXPECT_EQ(report.pickles, 1U);
    EXPECT_GE(report.names, 1U);
  }
}

TEST(Scan, NamesTheClassesOfAWholeModel) {
  const ScanReport report = scan_file("testdata/valid/whole_model.pt");
  EXPECT_EQ(report.verdict, Verdict::kFound);
  ASSERT_FALSE(report.findings.empty());
  EXPECT_EQ(
      report.findings.front().name,
      "torch.nn.modules.container.Sequential");
  EXPECT_FALSE(report.findings.front().is_dangerous);
  EXPECT_EQ(report.findings.front().record, "whole_model/data.pkl");
}

TEST(Scan, CountsTheClassesOfAScript) {
  for (const char* name :
       {"script.pt", "script_mobile.ptl", "script_model_json.pt"}) {
    const ScanReport script =
        scan_file(std::string("testdata/hostile/") + name);
    EXPECT_EQ(script.script_classes, 1U) << name;
    EXPECT_EQ(script.verdict, Verdict::kClean) << name;
  }
  const ScanReport alone = scan_file("testdata/hostile/script_alone.pt");
  EXPECT_EQ(alone.script_classes, std::nullopt);
}

TEST(Scan, SaysWhichNamesAreWorseThanUnknown) {
  const ScanReport report = scan_file("testdata/hostile/call.pt");
  ASSERT_EQ(report.findings.size(), 1U);
  EXPECT_TRUE(report.findings[0].is_dangerous);
  EXPECT_EQ(report.findings[0].offset, 2U);
  EXPECT_EQ(report.findings[0].count, 1U);
}

TEST(Scan, WalksFoldersAndLeavesTextAlone) {
  MemoryFs disk;
  const auto write = [&disk](const std::string& path, std::string_view text) {
    auto file = disk.create(path, 0644);
    ASSERT_TRUE(file);
    ASSERT_TRUE((*file)->write(as_byte_span(text)));
  };
  ASSERT_TRUE(disk.create_directories("runs/a"));
  write("runs/README", "a text\nof two lines\n");
  write("runs/a/x.pkl", "cos\nsystem\n(S'true'\ntR.");
  write("runs/a/y.pt", "nothing known");
  const auto reports = scan_path("runs", {}, disk);
  ASSERT_TRUE(reports) << to_string(reports.error());
  ASSERT_EQ(reports->size(), 3U);
  EXPECT_EQ((*reports)[0].verdict, Verdict::kOther);
  EXPECT_EQ((*reports)[1].verdict, Verdict::kFound);
  EXPECT_EQ((*reports)[2].verdict, Verdict::kUnreadable);
  EXPECT_EQ(worst(*reports), Verdict::kFound);
}

TEST(Scan, HalfAFileThatAKilledWriterLeftIsNoProblem) {
  MemoryFs disk;
  const std::string half("PK\x03\x04\x00\x00\x08\x08", 8);
  ASSERT_TRUE(disk.create_directories("runs"));
  for (const auto& [name, text] :
       std::vector<std::pair<std::string, std::string>>{
           {".a.pt.tmp.7.0123456789abcdef", half},
           {".b.pt.tmp.7.0123456789abcdef", "cos\nsystem\n(S'true'\ntR."},
           {"c.pt", half}}) {
    auto file = disk.create("runs/" + name, 0644);
    ASSERT_TRUE(file);
    ASSERT_TRUE((*file)->write(as_byte_span(text)));
  }
  const auto reports = scan_path("runs", {}, disk);
  ASSERT_TRUE(reports) << to_string(reports.error());
  ASSERT_EQ(reports->size(), 3U);
  EXPECT_EQ((*reports)[0].verdict, Verdict::kOther);
  EXPECT_EQ((*reports)[1].verdict, Verdict::kFound);
  EXPECT_EQ((*reports)[2].verdict, Verdict::kUnreadable);
}

TEST(Scan, ManyHeadersWithoutAnEndAreGivenUp) {
  std::string header("PK\x03\x04\x00\x00\x08\x08\x00\x00", 10);
  header += std::string(16, '\0') + std::string("\x01\x00\x00\x00", 4) + "a";
  std::string bytes;
  for (int i = 0; i < 40'000; ++i) {
    bytes += header;
  }
  const ScanReport report = scan(make_source(as_byte_span(bytes)), "bomb");
  EXPECT_EQ(report.verdict, Verdict::kUnreadable);
  EXPECT_THAT(notes_in(report), Contains("E_LIMIT"));
}

TEST(PickleScan, FindsStorages) {
  const std::string bytes =
      "\x80\x02(U\x07storagectorch\nFloatStorage\nU\x03"
      "123U\x03"
      "cpuK\x04tQ.";
  const PickleScan scan = scan_pickle(as_byte_span(bytes));
  EXPECT_FALSE(scan.broken) << to_string(*scan.broken);
  ASSERT_EQ(scan.storages.size(), 1U);
  EXPECT_EQ(scan.storages[0].key, "123");
  EXPECT_EQ(scan.storages[0].dtype, DType::kFloat32);
  EXPECT_EQ(scan.consumed, bytes.size());
}

std::string text_of_a_megabyte() {
  std::string text("X\0\0\x10\0", 5);
  return text + std::string(1 << 20, 'a');
}

TEST(PickleScan, SharesATextThatIsUsedAgain) {
  std::string bytes = "\x80\x02]q\x02(" + text_of_a_megabyte() + "q\x01";
  for (int i = 0; i < 20'000; ++i) {
    bytes += "h\x01";
  }
  bytes += "e.";
  const PickleScan scan =
      scan_pickle(as_byte_span(bytes), {.collect_texts = true});
  EXPECT_FALSE(scan.broken);
  ASSERT_EQ(scan.texts.size(), 20'001U);
  EXPECT_EQ(scan.texts.front(), scan.texts.back());
}

TEST(PickleScan, KeepsTheKeyOfAStorageOnce) {
  std::string bytes = "\x80\x02(U\x07storagectorch\nFloatStorage\n" +
                      text_of_a_megabyte() + "tq\x01";
  for (int i = 0; i < 20'000; ++i) {
    bytes += "h\x01Q0";
  }
  bytes += "N.";
  const PickleScan scan = scan_pickle(as_byte_span(bytes));
  EXPECT_FALSE(scan.broken);
  EXPECT_EQ(scan.storages.size(), 1U);
}

TEST(PickleScan, BoundsTheBytesOfNames) {
  std::string bytes = "\x80\x04" + text_of_a_megabyte() + "q\x01";
  for (char name = 'A'; name <= 'Z'; ++name) {
    for (char next = 'A'; next <= 'Z'; ++next) {
      bytes += "h\x01U\x02" + std::string{name, next} + "\x93" + "0";
    }
  }
  bytes += "N.";
  const PickleScan scan = scan_pickle(as_byte_span(bytes));
  ASSERT_TRUE(scan.broken);
  EXPECT_EQ(scan.broken->detail, "E_LIMIT");
  EXPECT_LT(scan.names.size(), 100U);
}

TEST(PickleScan, BoundsTheNumberOfNames) {
  Limits limits;
  limits.max_made_bytes = 1 << 16;
  std::string bytes = "\x80\x02";
  for (int i = 0; i < 10'000; ++i) {
    bytes += format("cm\nx{}\n0", i);
  }
  const PickleScan scan =
      scan_pickle(as_byte_span(bytes + "N."), {.limits = limits});
  ASSERT_TRUE(scan.broken);
  EXPECT_EQ(scan.broken->detail, "E_LIMIT");
  EXPECT_LT(scan.names.size(), 4000U);
  // Each pickle for itself has few.
  std::string storages;
  for (int i = 0; i < 10'000; ++i) {
    storages += format("cm\nx{}\n0N.", i);
  }
  const std::string tar = test::tar_of("storages", storages);
  const ScanReport report =
      ckpt::scan(make_source(as_byte_span(tar)), "many.tar", limits);
  EXPECT_EQ(report.verdict, Verdict::kFound);
  EXPECT_LT(report.findings.size(), 4000U);
  EXPECT_THAT(notes_in(report), Contains("E_LIMIT"));
}

TEST(Scan, ReadsManyPicklesInATarInTurn) {
  constexpr std::uint64_t kPickles = 20'000;
  std::string storages;
  for (std::uint64_t i = 0; i < kPickles; ++i) {
    storages += "\x80\x02N.";
  }
  const auto source =
      std::make_shared<CountedSource>(test::tar_of("storages", storages));
  const ScanReport report = scan(source, "many.tar");
  EXPECT_EQ(report.verdict, Verdict::kClean);
  EXPECT_EQ(report.pickles, kPickles);
  EXPECT_LT(source->bytes_read, kPickles * 600 + 10 * source->size());
}

// However many pickles were told of: np.load reads what follows them.
TEST(Scan, SaysWhatFollowsManyPickles) {
  for (const int pickles : {1, 99, 100, 101, 102, 150, 2000}) {
    for (const std::string& after :
         {std::string("\x93NUMPY\x01\0v\0", 10), std::string("garbage")}) {
      std::string bytes;
      for (int i = 0; i < pickles; ++i) {
        bytes += "\x80\x02N.";
      }
      bytes += after;
      const ScanReport report =
          scan(make_source(as_byte_span(bytes)), "many.pkl");
      EXPECT_EQ(report.verdict, Verdict::kUnreadable)
          << pickles << " pickles, then " << after;
    }
  }
}

TEST(PickleScan, StopsAtNestingWithoutEnd) {
  std::string bytes = "\x80\x02N.";
  for (int i = 0; i < 12; ++i) {
    std::string outer("\x80\x03");
    outer += 'C';
    outer += static_cast<char>(bytes.size());
    outer += bytes;
    outer += '.';
    bytes = std::move(outer);
  }
  const PickleScan scan = scan_pickle(as_byte_span(bytes));
  EXPECT_FALSE(scan.broken);
  EXPECT_EQ(scan.nested, 4U);
  EXPECT_THAT(scan.names, IsEmpty());
}

} // namespace
} // namespace lockstep::ckpt
