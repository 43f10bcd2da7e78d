// SPDX-License-Identifier: BSD-3-Clause
//
// Modules and names in the texts of a program: any two of them may be one
// import, and how many are compared is bounded.
#include "lockstep/ckpt/tools/scan/program_imports.h"

#include <algorithm>

#include <gmock/gmock.h>

#include "lockstep/ckpt/core/budget.h"
#include "lockstep/ckpt/scan.h"
#include "tests/ckpt/tools/scan/archives.h"

namespace lockstep::ckpt {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::Pair;

constexpr const char* kTooMany = "more names than are compared";

// `count` modules whose names begin with `module`, then as many names.
std::string text_of(const std::string& module, std::size_t count) {
  std::string modules;
  std::string names;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string number = std::to_string(i);
    modules += "default_factory_module " + module + number + " ";
    names += "default_factory_name n" + number + " ";
  }
  return modules + names;
}

std::string program_of(const std::vector<std::string>& texts) {
  std::string json = R"json({"graph_module": {}, "texts": ["")json";
  for (const std::string& text : texts) {
    json += ", \"" + text + "\"";
  }
  return test::zip_of(
      {{"a/archive_format", "pt2"},
       {"a/models/model.json", json + "]}"},
       {"a/version", "3\n"}});
}

std::size_t count_of(const ScanReport& report, const std::string& name) {
  return static_cast<std::size_t>(
      std::ranges::count(report.findings, name, &ScanFinding::name));
}

TEST(ProgramImports, TakeFromThePairsThatAreLeft) {
  std::size_t pairs = 5;
  EXPECT_THAT(
      internal::imports_in(text_of("os.m", 2), pairs),
      ElementsAre(
          Pair("os.m0.n0", true),
          Pair("os.m0.n1", true),
          Pair("os.m1.n0", true),
          Pair("os.m1.n1", true)));
  EXPECT_EQ(pairs, 1U);
  EXPECT_THAT(
      internal::imports_in(text_of("os.m", 2), pairs),
      ElementsAre(
          Pair(kTooMany, true),
          Pair("os.m0.n0", true),
          Pair("os.m1.n0", true)));
}

// However many such texts a program has.
TEST(ProgramImports, OfOneModuleAndOneNameTakeNoPair) {
  std::size_t pairs = 0;
  const auto found = internal::imports_in(
      "default_factory_name system default_factory_module os",
      pairs);
  EXPECT_THAT(found, Contains(Pair("os.system", true)));
  EXPECT_FALSE(found.contains(kTooMany));
}

TEST(ProgramImports, ShareThePairsOfOneProgram) {
  const std::string bytes =
      program_of({text_of("os.a", 80), text_of("os.b", 80)});
  const ScanReport report = scan(make_source(as_byte_span(bytes)), "f.pt2");
  EXPECT_EQ(report.verdict, Verdict::kFound);
  EXPECT_EQ(count_of(report, "import: os.a79.n79"), 1U);
  EXPECT_EQ(count_of(report, "import: os.b79.n79"), 0U);
  EXPECT_EQ(count_of(report, std::string("import: ") + kTooMany), 1U);
  EXPECT_EQ(report.findings.size(), 80U * 80 + 80 + 1);
}

TEST(ProgramImports, CountAsMadeOneByOne) {
  const std::string bytes = program_of({text_of("os.a", 80)});
  Limits limits;
  limits.max_made_bytes = 1000;
  limits = counting(limits, bytes.size());
  const ScanReport report =
      scan(make_source(as_byte_span(bytes)), "f.pt2", limits);
  EXPECT_EQ(report.verdict, Verdict::kFound);
  EXPECT_NE(
      std::ranges::find(report.notes, "E_LIMIT", &Error::detail),
      report.notes.end());
  EXPECT_LT(report.findings.size(), 1600U);
  EXPECT_LT(
      limits.budget->made(),
      10'000 + limits.max_made_bytes + kMadePerByte * bytes.size());
}

} // namespace
} // namespace lockstep::ckpt
