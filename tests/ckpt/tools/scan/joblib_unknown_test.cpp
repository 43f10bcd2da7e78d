// SPDX-License-Identifier: BSD-3-Clause
//
// Pickles with arrays of joblib of which nothing tells how many elements it
// skips.
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "lockstep/ckpt/scan.h"
#include "lockstep/ckpt/tools/scan/pickle_scan.h"
#include "tests/ckpt/tools/scan/joblib_pickles.h"

namespace lockstep::ckpt {
namespace {

using namespace std::string_literals;
using namespace test::joblib;

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
      {"class_by_the_slots",
       "\x80\x04" + kObject + "(}(" + kDict + "u}U\x09__class__" +
           kWrapperClass + "stb" + kElements + "0N."},
      {"class_in_a_list",
       "\x80\x04](" + kWrapperClass + "e0" + kObject + "}(" + kDict + "ub" +
           kElements + "0N."},
      {"class_in_a_set",
       "\x80\x04(" + kWrapperClass + "\x91" + "0" + kObject + "}(" + kDict +
           "ub" + kElements + "0N."},
      {"class_among_arguments",
       "\x80\x04" + kEncode + "(U\x01x" + kWrapperClass + "tR0" + kObject +
           "}(" + kDict + "ub" + kElements + "0N."},
      {"wrapper_given_back",
       "\x80\x04"
       "ctorch._tensor\n_rebuild_from_type_v2\n(" +
           kTag + kWrapperClass + kWrapper + "U\x01x\x86NtR}(" + kDict + "ub" +
           kElements + "0N."},
      {"wrapper_made_with_arguments",
       "\x80\x04" + kWrapperClass + "(NNNNK\x10tR}(" + kDict + "ub" +
           kElements + "0N."},
      {"new_wrapper_with_arguments",
       "\x80\x04" + kWrapperClass + "(NNNNK\x10t\x81}(" + kDict + "ub" +
           kElements + "0N."},
      {"object_of_arguments",
       "\x80\x04(" + kWrapperClass + "NNNNK\x10o}(" + kDict + "ub" + kElements +
           "0N."},
      {"instance_of_arguments",
       "\x80\x04(NNNNK\x10i" + kWrapperClass.substr(1) + "}(" + kDict + "ub" +
           kElements + "0N."},
      {"alignment_of_an_old_copy",
       "\x80\x04"
       "csklearn.externals.joblib.numpy_pickle\nNumpyArrayWrapper\n)\x81}(" +
           kAligned + kDict + "ub\x01\xff"s + kElements + "0N."},
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
  EXPECT_NE(
      ckpt::scan(make_source(as_byte_span(bytes)), "a.joblib").verdict,
      Verdict::kClean);
}

INSTANTIATE_TEST_SUITE_P(
    Rows,
    UnknownJoblib,
    testing::ValuesIn(unknown_rows()),
    [](const auto& row) { return std::string(row.param.title); });

} // namespace
} // namespace lockstep::ckpt
