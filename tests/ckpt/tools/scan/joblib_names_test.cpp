// SPDX-License-Identifier: BSD-3-Clause
//
// Pickles with joblib's arrays: the elements follow the wrapper's BUILD, and
// the pickle goes on. joblib skips them, pickle and torch run them as opcodes:
// the names of both are in the scan, and what joblib skips is known or not
// clean.
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "lockstep/ckpt/scan.h"
#include "lockstep/ckpt/tools/scan/pickle_scan.h"
#include "tests/ckpt/tools/scan/archives.h"
#include "tests/ckpt/tools/scan/joblib_pickles.h"

namespace lockstep::ckpt {
namespace {

using namespace std::string_literals;
using namespace test::joblib;
using testing::Contains;
using testing::IsSupersetOf;

std::vector<std::string> names_of(const PickleScan& scan) {
  std::vector<std::string> names;
  for (const PickleName& name : scan.names) {
    names.push_back(name.name);
  }
  return names;
}

ScanReport scan_joblib(const std::string& bytes) {
  return scan(make_source(as_byte_span(bytes)), "input.joblib");
}

struct SoundRow {
  const char* title = "";
  std::string type = {};
  std::string elements = {};
};

const std::vector<SoundRow>& sound_rows() {
  static const std::string kFields =
      "U\x01"
      "f\x85}";
  static const std::vector<SoundRow> kRows{
      {"floats", kAligned + kFloat, kFill + std::string(48, '\xfe')},
      {"floats_of_old_joblib", kFloat, std::string(48, '\xfe')},
      {"begins_like_a_name", kFloat, "c\xff\n\x01\n" + std::string(43, 'c')},
      {"begins_with_stop", kFloat, "." + std::string(47, '\x01')},
      {"texts",
       type_of("S8", type_state("NN", "K\x08", '\0')),
       "cat\0\0\0\0\0"s + std::string(40, 'c')},
      {"objects", type_of("O8", kObjectState), "\x80\x02]."},
      {"structure",
       kAligned + type_of("V8", type_state(kFields, "K\x08", '\x10')),
       kFill + std::string(48, '\xfe')},
      {"structure_of_old_joblib",
       type_of("V8", type_state(kFields, "K\x08", '\x10')),
       std::string(48, '\xfe')},
      {"structure_of_objects",
       type_of("V8", type_state(kFields, "K\x08", '\x3f')),
       "\x80\x02N."},
      {"dates",
       type_of("M8", "(K\x04U\x01<NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\0}t"s),
       std::string(48, '\xfe')},
  };
  return kRows;
}

class SoundJoblib : public testing::TestWithParam<SoundRow> {};

TEST_P(SoundJoblib, IsReadToItsEnd) {
  const SoundRow& row = GetParam();
  const std::string state = kSubclass + kShape + row.type;
  const std::string sound = pickle_of(state, row.elements, "N.");
  EXPECT_EQ(scan_joblib(sound).verdict, Verdict::kClean);
  const std::string evil = pickle_of(state, row.elements);
  const PickleScan scan = scan_pickle(as_byte_span(evil));
  EXPECT_FALSE(scan.broken) << to_string(*scan.broken);
  EXPECT_EQ(scan.consumed, evil.size());
  EXPECT_THAT(names_of(scan), Contains("os.system"));
}

INSTANTIATE_TEST_SUITE_P(
    Rows,
    SoundJoblib,
    testing::ValuesIn(sound_rows()),
    [](const auto& row) { return std::string(row.param.title); });

TEST(JoblibNames, InObjectsOfAnArrayAreSeen) {
  const std::string bytes = pickle_of(
      kShape + type_of("O8", kObjectState),
      "\x80\x02"s + "csubprocess\nrun\n.");
  EXPECT_THAT(
      names_of(scan_pickle(as_byte_span(bytes))),
      IsSupersetOf({"subprocess.run", "os.system"}));
}

// To pickle the memo of the objects is that of the pickle around them: what
// `module` leaves on the stack is its first entry there, numpy here.
ScanReport scan_objects(const std::string& module, const std::string& name) {
  return scan_joblib(
      "\x80\x04" + module + "\x94" + "0" + kWrapper + "}(" + kShape +
      type_of("O8", kObjectState) + "ub\x80\x04U\x05numpy\x94" + "0h"s + '\0' +
      "U" + static_cast<char>(name.size()) + name + "\x93.0N.");
}

TEST(JoblibNames, OfTheWrongMemoAreNotes) {
  const ScanReport misread = scan_objects("U\x04mine", "ndarray");
  EXPECT_EQ(misread.verdict, Verdict::kClean);
  ASSERT_EQ(misread.notes.size(), 1U);
  EXPECT_EQ(misread.notes[0].detail, "W_UNLIKELY");
  EXPECT_THAT(misread.notes[0].message, testing::HasSubstr("mine.ndarray"));
  // Python stops.
  for (const std::string& value :
       {"]"s,
        "}"s,
        ")"s,
        "K\x01\x85"s,
        "C\x01x"s,
        kWrapper,
        "ctorch\nSize\n"s}) {
    const ScanReport stopped = scan_objects(value, "ndarray");
    EXPECT_EQ(stopped.verdict, Verdict::kClean) << value;
    ASSERT_EQ(stopped.notes.size(), 1U) << value;
    EXPECT_THAT(stopped.notes[0].message, testing::HasSubstr("'?'"));
  }
}

TEST(JoblibNames, OfTheWrongMemoAreSeenIfTheyAreNoMisreadings) {
  EXPECT_EQ(scan_objects("U\x04mine", "system").findings.size(), 2U);
  EXPECT_EQ(scan_objects("U\x02os", "system").findings.size(), 2U);
  const ScanReport hidden =
      scan_objects("c_codecs\nencode\n(Vzvar\nVrot13\ntR", "ndarray");
  EXPECT_EQ(hidden.verdict, Verdict::kFound);
  // Both texts are those of the pickle around.
  const std::string objects =
      "\x80\x04U\x05numpy\x94"
      "0U\x07ndarray\x94"
      "0h\0h\x01\x93.0N."s;
  const ScanReport both = scan_joblib(
      "\x80\x04U\x04mine\x94"
      "0U\x03run\x94"
      "0" +
      kWrapper + "}(" + kShape + type_of("O8", kObjectState) + "ub" + objects);
  ASSERT_EQ(both.findings.size(), 1U);
  EXPECT_EQ(both.findings[0].name, "mine.run");
}

// pickle.load and torch.load run the elements.
TEST(JoblibNames, AmongElementsAreSeen) {
  for (const std::string& evil :
       {kEvil + ".",
        "." + kEvil + ".", // for the next load
        kEvil + "\xff",
        "c_codecs\nencode\n(Vbf\nVrot13\ntRVsystem\n\x93."s}) {
    const std::string elements = evil + std::string(48 - evil.size(), '\xfe');
    const std::string bytes = pickle_of(kShape + kFloat, elements, "N.");
    const ScanReport report = scan_joblib(bytes);
    EXPECT_EQ(report.verdict, Verdict::kFound) << elements;
    const ScanReport record =
        scan_joblib(test::zip_of({{"a/data.pkl", bytes}}));
    EXPECT_EQ(record.verdict, Verdict::kFound) << elements;
  }
}

// The function comes from the memo, so the only new name has no text.
TEST(JoblibNames, PutTogetherAmongElementsAreSeen) {
  const std::string elements =
      "h\x05(Vbf\nVrot13\ntRh\x05(Vflfgrz\nVrot13\ntR\x93.";
  const std::string bytes =
      "\x80\x04" + kEncode + "q\x05" + "0" +
      pickle_of(
          kShape + kFloat,
          elements + std::string(48 - elements.size(), '\xfe'),
          "N.")
          .substr(2);
  EXPECT_EQ(scan_joblib(bytes).verdict, Verdict::kFound);
  EXPECT_EQ(
      scan_joblib(test::zip_of(
                      {{"a/data/0", kEncode + "q\x05" + "0" + elements + "."}}))
          .verdict,
      Verdict::kFound);
}

TEST(JoblibNames, NoArchiveHasElementsInItsPickles) {
  const std::string bytes =
      pickle_of(kShape + kFloat, std::string(48, '\xfe'), "N.");
  EXPECT_EQ(scan_joblib(bytes).verdict, Verdict::kClean);
  for (const std::string& archive :
       {test::zip_of({{"a/data.pkl", bytes}}), test::tar_of("pickle", bytes)}) {
    EXPECT_EQ(scan_joblib(archive).verdict, Verdict::kUnreadable);
  }
}

TEST(JoblibNames, OfAClassMeanTheSameInTheNextPickle) {
  const std::string array =
      pickle_of(kShape + kFloat, std::string(48, '\xfe'), "N.");
  EXPECT_EQ(scan_joblib("\x80\x04N." + array).verdict, Verdict::kClean);
  EXPECT_EQ(
      scan_joblib("\x80\x04" + kWrapperClass + "}b0N." + array).verdict,
      Verdict::kUnreadable);
}

TEST(JoblibNames, OfNumbersOfNumPyChangeNoClass) {
  const std::string number =
      "cnumpy.core.multiarray\nscalar\ncnumpy\ndtype\n(\x8c\x02"
      "f8\x89\x88tR" +
      kPlainState + "bC\x08" + std::string(8, '\0') + "\x86R0";
  EXPECT_EQ(
      scan_joblib(
          "\x80\x04" + number +
          pickle_of(kShape + kFloat, std::string(48, '\xfe'), "N."))
          .verdict,
      Verdict::kClean);
}

} // namespace
} // namespace lockstep::ckpt
