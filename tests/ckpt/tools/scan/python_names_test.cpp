// SPDX-License-Identifier: BSD-3-Clause
//
// What Python's unpicklers ask for up to their first error is in the scan,
// whatever else is wrong with the bytes. Rows: bytes and the names in them.
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "lockstep/ckpt/scan.h"
#include "lockstep/ckpt/tools/scan/pickle_scan.h"

namespace lockstep::ckpt {
namespace {

using namespace std::string_literals;
using testing::ElementsAreArray;

struct StreamRow {
  const char* title = "";
  std::string bytes = {};
  std::vector<std::string> names = {"os.system"};
  Verdict verdict = Verdict::kFound;
};

const std::vector<StreamRow>& rows() {
  static const std::string kOs = "\x8c\x02os";
  static const std::string kSystem = "\x8c\x06system";
  static const std::vector<StreamRow> kRows{
      {"no_proto", kOs + kSystem + "\x93)R."},
      {"no_proto_memo", kOs + "\x94" + kSystem + "\x94\x93\x94)R."},
      {"no_proto_old_strings", "U\x02osT\x06\0\0\0system\x93."s},
      {"no_proto_lines", "Vos\nVsystem\n\x93Vid\n\x85R."},
      {"no_proto_quoted", "S'os'\nS\"sy\\x73\\164em\"\n\x93."},
      {"proto_twice", "\x80\x02\x80\x05" + kOs + kSystem + "\x93."},
      {"proto_later", "(\x80\x04" + kOs + kSystem + "\x93)R."},
      {"proto_of_the_future_later", kOs + kSystem + "\x93\x80\x09."},
      {"proto_0_with_new_opcodes", "\x80\x00"s + kOs + kSystem + "\x93."},
      {"frame_too_long",
       "\x80\x04\x95\xff\0\0\0\0\0\0\0"s + kOs + kSystem + "\x93."},
      {"frame_too_short",
       "\x80\x04\x95\x01\0\0\0\0\0\0\0"s + kOs + kSystem + "\x93."},
      // From a file without `peek`, as torch.load does, the unpickler in C
      // drops what of an operand stands in front of the frame's end.
      {"name_across_a_frame",
       "\x80\x04\x95\x07\0\0\0\0\0\0\0cos\nrt_system\n)R."s,
       {"os.rt_system", "os.system"}},
      {"text_across_a_frame",
       "\x80\x04\x95\x08\0\0\0\0\0\0\0\x8c\x02os\x8c\x06"s + "absystem\x93)R."},
      {"frame_in_frame",
       "\x80\x04\x95\x20\0\0\0\0\0\0\0\x95\x01\0\0\0\0\0\0\0"s + kOs + kSystem +
           "\x93."},
      {"hyphen_later",
       "cos\nsystem\n(Vid\ntR0cmy-module\nx\n.",
       {"os.system", "my-module.x"}},
      {"hyphen_alone", "cmy-module\nx\n.", {"my-module.x"}},
      {"hyphen_broken", "cmy-module\nx\n(tR", {"my-module.x"}},
      {"not_ascii", "cm\xc3\xbcnch\nx\n.", {"m\xc3\xbcnch.x"}},
      {"not_ascii_later", "cos\nsystem\n0c\xff\nx\n.", {"os.system", "\xff.x"}},
      {"surrogate",
       "\x8c\x03\xed\xa0\x80" + kSystem + "\x93.",
       {"\xed\xa0\x80.system"}},
      {"carriage_return", "cos\r\nsystem\r\n.", {"os\r.system\r"}},
      {"line_feed_in_a_name",
       "\x8c\x03os\n" + kSystem + "\x93.",
       {"os\n.system"}},
      {"empty_names", "c\n\n0cos\nsystem\n.", {".", "os.system"}},
      {"spaces_to_the_end", "cno module\nx y\n.", {"no module.x y"}},
      {"inst_without_mark", "ios\nsystem\n."},
      {"obj_without_mark", "cos\nsystem\no."},
      {"unknown_opcode_behind", "cos\nsystem\n\xff"},
      {"cut_behind_a_call", "cos\nsystem\n(Vid\ntR"},
      {"cut_in_the_name", "cos\nsystem", {"os.syste"}},
      {"memo_numbers_as_int_reads_them",
       "Vos\np+1_0\n0Vsystem\np 007\n0g10\ng7\r\n\x93."},
      {"memo_numbers_beyond_64_bits",
       "Vos\np99999999999999999999\n0Vsystem\np1\n0g99999999999999999999\ng1\n"
       "\x93."},
      {"unknown_escape", "S'o\\s'\nVsystem\n\x93.", {"o\\s.system"}},
      {"text_by_a_call",
       "c_codecs\nencode\n(Vbf\nVrot13\ntRVsystem\n\x93.",
       {"_codecs.encode", "?"}},
      {"garbage_behind_stop", "cos\nsystem\n.\xff\xff\xff"},
      {"second_without_proto", "\x80\x02N." + kOs + kSystem + "\x93."},
  };
  return kRows;
}

class PythonNames : public testing::TestWithParam<StreamRow> {};

TEST_P(PythonNames, AreSeen) {
  const StreamRow& row = GetParam();
  const ScanReport report = scan(make_source(as_byte_span(row.bytes)), "input");
  EXPECT_EQ(report.verdict, row.verdict);
  std::vector<std::string> names;
  std::uint64_t at = 0;
  do {
    const PickleScan found = scan_pickle(as_byte_span(row.bytes).subspan(at));
    for (const PickleName& name : found.names) {
      names.push_back(name.name);
    }
    at += found.broken ? row.bytes.size() : found.consumed;
  } while (at < row.bytes.size() && names.empty());
  EXPECT_THAT(names, ElementsAreArray(row.names));
}

INSTANTIATE_TEST_SUITE_P(
    Rows,
    PythonNames,
    testing::ValuesIn(rows()),
    [](const auto& row) { return std::string(row.param.title); });

TEST(PythonNamesOfStrings, ArePutTogetherOnce) {
  // Two texts of a megabyte, put together 20,000 times.
  const std::string text = "X\0\0\x10\0"s + std::string(1 << 20, 'a');
  std::string bytes = text + "q"s + '\0' + text + "q\1";
  for (int i = 0; i < 20'000; ++i) {
    bytes += "h"s + '\0' + "h\1\x93" + "0";
  }
  const PickleScan scan = scan_pickle(as_byte_span(bytes + "N."));
  EXPECT_FALSE(scan.broken);
  ASSERT_EQ(scan.names.size(), 1U);
  EXPECT_EQ(scan.names[0].count, 20'000U);
}

} // namespace
} // namespace lockstep::ckpt
