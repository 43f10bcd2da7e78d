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

namespace lockstep::ckpt {
namespace {

using namespace std::string_literals;
using testing::Contains;
using testing::IsSupersetOf;

const std::string kEvil = "cos\nsystem\n(Vid\ntR";
const std::string kSubclass = "\x8c\x08subclasscnumpy\nndarray\n";
const std::string kShape = "\x8c\x05shapeK\x02K\x03\x86";
const std::string kAligned = "\x8c\x1bnumpy_array_alignment_bytesK\x10";
const std::string kWrapperClass = "cjoblib.numpy_pickle\nNumpyArrayWrapper\n";
const std::string kWrapper = kWrapperClass + ")\x81";
const std::string kTag = "ctorch.jit._pickle\nrestore_type_tag\n";
const std::string kFill = "\x03\xff\xff\xff";

std::string type_of(const std::string& letters, const std::string& state) {
  return "\x8c\x05"
         "dtypecnumpy\ndtype\n(\x8c\x02" +
         letters + "\x89\x88tR" + state + "b";
}

// (3, '<', None, names, fields, bytes, alignment, flags)
std::string
type_state(const std::string& fields, const std::string& bytes, char flags) {
  return "(K\x03U\x01<N" + fields + bytes + "K\x01K" + flags + "t";
}

const std::string kPlainState = type_state("NN", "J\xff\xff\xff\xff", '\0');
const std::string kObjectState = type_state("NN", "J\xff\xff\xff\xff", '\x3f');
const std::string kFloat = type_of("f8", kPlainState);

// What stands in the dict of the wrapper, the elements, and what follows.
std::string pickle_of(
    const std::string& state,
    const std::string& elements,
    const std::string& rest = kEvil + ".") {
  return "\x80\x04" + kWrapper + "}(" + state + "ub" + elements + "0" + rest;
}

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

TEST(JoblibNames, NoArchiveHasElementsInItsPickles) {
  const std::string bytes =
      pickle_of(kShape + kFloat, std::string(48, '\xfe'), "N.");
  EXPECT_EQ(scan_joblib(bytes).verdict, Verdict::kClean);
  for (const std::string& archive :
       {test::zip_of({{"a/data.pkl", bytes}}), test::tar_of("pickle", bytes)}) {
    EXPECT_EQ(scan_joblib(archive).verdict, Verdict::kUnreadable);
  }
}

struct UnknownRow {
  const char* title = "";
  std::string bytes = {};
};

// Python may have another state than the one that the scan sees first.
const std::vector<UnknownRow>& unknown_rows() {
  static const std::string kElements(48, '\xfe');
  static const std::string kDict = kShape + kFloat;
  static const std::vector<UnknownRow> kRows{
      {"letters", pickle_of(kShape + type_of("Q8", kPlainState), kElements)},
      {"shape_is_a_list_later",
       pickle_of(
           kDict + "\x8c\x05shape](K\x00"
                   "e"s,
           kElements)},
      {"shape_is_unknown_later",
       pickle_of(kDict + "\x8c\x05shapecnumpy\nint64\n)R\x85", kElements)},
      {"type_is_unknown_later",
       pickle_of(
           kDict + "\x8c\x05"
                   "dtypeN",
           kElements)},
      {"alignment_is_unknown_later",
       pickle_of(
           kAligned + kDict + "\x8c\x1bnumpy_array_alignment_bytesN",
           kElements)},
      {"key_is_a_number", pickle_of(kDict + "K\x01N", kElements)},
      {"method_is_hidden",
       pickle_of(kDict + "\x8c\x04readccollections\nOrderedDict\n", kElements)},
      {"dict_of_the_memo",
       "\x80\x04" + kWrapper + "}q\x01(" + kDict + "uh\x01(" +
           "\x8c\x05shapeK\x00\x85u0b"s + kElements + "0N."},
      {"dict_doubled",
       "\x80\x04" + kWrapper + "}2(" + kDict + "u0b" + kElements + "0N."},
      {"type_of_the_memo",
       "\x80\x04"
       "cnumpy\ndtype\n(\x8c\x02S8\x89\x88tRq\x01"
       "0" +
           kWrapper + "}(" + kShape +
           "\x8c\x05"
           "dtypeh\x01uh\x01" +
           type_state("NN", "K\x01", '\0') + "b0b" + kElements + "0N."},
      {"size_by_the_state",
       pickle_of(
           kShape + type_of("S8", type_state("NN", "K\x01", '\0')),
           kElements)},
      {"fields_by_the_state",
       pickle_of(
           kShape + type_of(
                        "f8",
                        type_state(
                            "U\x01"
                            "f\x85}",
                            "K\x08",
                            '\0')),
           kElements)},
      {"objects_by_the_state",
       pickle_of(kShape + type_of("f8", kObjectState), kElements)},
      {"no_objects_by_the_state",
       pickle_of(kShape + type_of("O8", kPlainState), kElements)},
      {"state_is_no_tuple", pickle_of(kShape + type_of("f8", "}"), kElements)},
      {"old_state",
       pickle_of(
           kShape + type_of("f8", "(K\x02U\x01<NNNK\x08K\x08K\0t"s),
           kElements)},
      {"second_build_of_the_wrapper",
       "\x80\x04" + kWrapper + "q\x01}(" + kAligned + kDict + "ub\x01\xff"s +
           kElements + "0h\x01}(" + kDict + "ub" + kElements + "0N."},
      {"slots",
       "\x80\x04" + kWrapper + "N}(" + kDict +
           "u\x86"
           "b" +
           kElements + "0N."},
      {"in_a_frame",
       "\x80\x04\x95\xc0\0\0\0\0\0\0\0"s + kWrapper + "}(" + kDict + "ub" +
           kElements + std::string(40, '0') + "N."},
      {"wrapper_has_another_reader",
       "\x80\x04" + kWrapperClass + "N}U\x0aread_arraycnumpy\ndtype\ns\x86" +
           "b0" + kWrapper + "}(" + kDict + "ub" + kElements + "0N."},
      {"wrapper_under_another_name",
       "\x80\x04" + kTag + "(" + kWrapperClass + "U\0tR)\x81}("s + kDict +
           "ub" + kElements + "0N."},
      {"wrapper_called_under_another_name",
       "\x80\x04" + kTag + "(" + kWrapperClass + "U\0tR)R}("s + kDict + "ub" +
           kElements + "0N."},
      {"type_under_another_name",
       "\x80\x04"
       "cnumpy\ndtype\n(\x8c\x02S8\x89\x88tRq\x01"
       "0cnumpy\ndtype\nh\x01\x85R" +
           type_state("NN", "K\x01", '\0') + "b0" + kWrapper + "}(" + kShape +
           "\x8c\x05"
           "dtypeh\x01u" +
           "b" + kElements + "0N."},
      {"changed_in_the_objects_of_an_array",
       "\x80\x04" + kWrapper + "}(" + kShape + type_of("O8", kObjectState) +
           "ub" + kWrapperClass + "}b0N." + "0" + kWrapper + "}(" + kDict +
           "ub" + kElements + "0N."},
      {"two_copies_of_joblib",
       "\x80\x04"
       "csklearn.externals.joblib.numpy_pickle\nNumpyArrayWrapper\n"
       ")\x81"
       "0" +
           kWrapper + "}(" + kDict + "ub" + kElements + "0N."},
  };
  return kRows;
}

class UnknownJoblib : public testing::TestWithParam<UnknownRow> {};

TEST_P(UnknownJoblib, EndsTheScanInWords) {
  const std::string& bytes = GetParam().bytes;
  const PickleScan scan = scan_pickle(as_byte_span(bytes));
  ASSERT_TRUE(scan.broken);
  EXPECT_THAT(scan.broken->message, testing::HasSubstr("elements"));
  EXPECT_NE(scan_joblib(bytes).verdict, Verdict::kClean);
}

INSTANTIATE_TEST_SUITE_P(
    Rows,
    UnknownJoblib,
    testing::ValuesIn(unknown_rows()),
    [](const auto& row) { return std::string(row.param.title); });

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
