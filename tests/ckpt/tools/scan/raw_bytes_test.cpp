// SPDX-License-Identifier: BSD-3-Clause
//
// Raw bytes between pickles, in tar files and legacy checkpoints: their lengths
// come from the values that Python has, or the file is not clean. A pickle
// whose end is not known yet has no final error.
#include <cstdint>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "lockstep/ckpt/scan.h"
#include "lockstep/ckpt/tools/scan/pickle_scan.h"
#include "tests/ckpt/counted_source.h"
#include "tests/ckpt/tools/scan/archives.h"

namespace lockstep::ckpt {
namespace {

using namespace std::string_literals;

const std::string kEvilCall = "cos\nsystem\n(Vid\ntR.";

ScanReport scan_raw(const std::string& bytes) {
  return scan(make_source(as_byte_span(bytes)), "input");
}

std::string raw_length(std::uint8_t count) {
  return std::string(1, static_cast<char>(count)) + std::string(7, '\0');
}

// One storage of 48 bytes, of which Python reads 6 and the pickle behind them.
std::string storages_of(const std::string& arguments) {
  const std::string raw = raw_length(6) + "abcdef" + kEvilCall;
  return "\x80\x02K\x01." + arguments + raw +
         std::string(56 - raw.size(), '\0') + "\x80\x02]."s;
}

TEST(RawBytesOfTar, AreThoseOfTheValue) {
  const std::string bytes = "ctorch\nByteStorage\n";
  const std::string doubles = "ctorch\nDoubleStorage\n";
  const std::string sound =
      "(U\x01kU\x03"
      "cpu" +
      doubles + "t.";
  EXPECT_EQ(
      scan_raw(test::tar_of("storages", storages_of(sound))).verdict,
      Verdict::kClean);
  for (const std::string& arguments :
       {doubles +
            "0(U\x01kU\x03"
            "cpu" +
            bytes + "t.",
        "(U\x01kU\x03"
        "cpu" +
            bytes + "l" + doubles + "0.",
        "(U\x01kU\x03"
        "cpu" +
            doubles +
            "t0(U\x01kU\x03"
            "cpu" +
            bytes + "t.",
        "(U\x01kU\x03"
        "cpu" +
            doubles +
            "tq\x01"
            "0(U\x01kU\x03"
            "cpu" +
            bytes + "l."}) {
    const ScanReport report =
        scan_raw(test::tar_of("storages", storages_of(arguments)));
    EXPECT_NE(report.verdict, Verdict::kClean) << arguments;
  }
}

TEST(RawBytesOfTar, OfTensorsHaveDimensions) {
  const std::string tensor = raw_length(1) + std::string(24, '\0');
  const std::string arguments =
      "ctorch\nDoubleStorage\n0(K\x01K\0ctorch\nFloatTensor\nt."s;
  EXPECT_EQ(
      scan_raw(
          test::tar_of("tensors", "\x80\x02\x8a\x01\x01." + arguments + tensor))
          .verdict,
      Verdict::kClean);
  EXPECT_EQ(
      scan_raw(
          test::tar_of("tensors", "K\x01." + arguments + tensor + kEvilCall))
          .verdict,
      Verdict::kFound);
}

// A legacy checkpoint with one storage '0' of doubles; 6 bytes by what Python
// may see in it, and a pickle behind them.
std::string legacy_of(
    const std::string& ids,
    const std::string& keys,
    const std::string& raw) {
  return "\x80\x02\x8a\x0al\xfc\x9c\x46\xf9 j\xa8P\x19.\x80\x02M\xe9\x03."
         "\x80\x02}.\x80\x02" +
         ids + "\x80\x02" + keys + raw;
}

std::string id_of(const std::string& word, const std::string& type) {
  return "(U" + std::string(1, static_cast<char>(word.size())) + word +
         "ctorch\n" + type +
         "Storage\nU\x01"
         "0U\x03"
         "cpuK\x06NtQ";
}

TEST(RawBytesOfLegacy, AreThoseOfTheKeysAtTheEnd) {
  const std::string doubles = id_of("storage", "Double");
  const std::string sound = raw_length(6) + std::string(48, 'x');
  const std::string keys =
      "](U\x01"
      "0e.";
  EXPECT_EQ(
      scan_raw(legacy_of(doubles + ".", keys, sound)).verdict,
      Verdict::kClean);
  EXPECT_EQ(
      scan_raw(legacy_of(
                   doubles + ".",
                   "(lU\x01"
                   "0a.",
                   sound))
          .verdict,
      Verdict::kClean);
  EXPECT_EQ(
      scan_raw(legacy_of(
                   "(U\x06modulecm\nC\nU\x01mU\x01stQ0" + doubles + ".",
                   keys,
                   sound))
          .findings.size(),
      1U);
  // A text that is no key, or something that the list may hold besides.
  for (const std::string& odd :
       {"U\x01"
        "00](U\x01"
        "0e."s,
        "](U\x01"
        "0e0]."s,
        "]q\x01(U\x01"
        "0eh\x01K\0U\x01"
        "1s0."s,
        "](U\x01"
        "0eK\0U\x01"
        "1s."s,
        "](U\x01"
        "0Ne."s,
        "U\x01"
        "0."s,
        "(U\x01"
        "0t."s}) {
    const std::string raw = odd.starts_with(
                                "U\x01"
                                "00")
                                ? sound + "\xff"
                                : sound;
    EXPECT_NE(
        scan_raw(legacy_of(doubles + ".", odd, raw)).verdict,
        Verdict::kClean)
        << odd;
  }
}

TEST(RawBytesOfLegacy, AreThoseOfTheFirstStorageOfAKey) {
  const std::string doubles = id_of("storage", "Double");
  const std::string view =
      "(U\x07storagectorch\nByteStorage\nU\x01"
      "1U\x03"
      "cpuK\x06U\x01"
      "0K\0K\x01\x87tQ"s;
  const std::string raw = raw_length(6) + std::string(48, 'x');
  for (const std::string& first :
       {id_of("storage", "Byte"),
        id_of("storage", "Mine"),
        view,
        "(C\x07storagectorch\nByteStorage\nU\x01"
        "0U\x03"
        "cpuK\x06NtQ"s}) {
    EXPECT_NE(
        scan_raw(legacy_of(
                     first + "0" + doubles + ".",
                     "](U\x01"
                     "0e.",
                     raw))
            .verdict,
        Verdict::kClean)
        << first;
  }
}

struct ChangeRow {
  const char* title = "";
  /// Leaves nothing on the stack.
  std::string change = {};
};

// What a class says of its storages can be changed, under any of its names.
const std::vector<ChangeRow>& changes() {
  static const std::string kClass = "ctorch\nFloatStorage\n";
  static const std::string kTagged =
      "ctorch.jit._pickle\nrestore_type_tag\n(" + kClass + "U\0tR"s;
  static const std::string kObjects =
      "cnumpy\ndtype\n(U\x02O8\x89\x88tR" + kClass + "\x86R";
  static const std::vector<ChangeRow> kRows{
      {"build", kClass + "N}U\x06_dtypectorch\nuint8\ns\x86" + "b0"},
      {"build_of_the_memo", kClass + "q\x07" + "0h\x07}b0"},
      {"build_of_a_double", kClass + "2}b00"},
      {"setitem", kClass + "U\x01kNs0"},
      {"setitems", kClass + "(U\x01kNu0"},
      {"append", kClass + "Na0"},
      {"appends", kClass + "(Ne0"},
      {"additems", kClass + "(N\x90" + "0"},
      {"tagged", kTagged + "}b0"},
      {"scalar", "cnumpy._core.multiarray\nscalar\n" + kObjects + "}b0"},
      {"old_scalar", "cnumpy.core.multiarray\nscalar\n" + kObjects + "}b0"},
  };
  return kRows;
}

class ChangedClass : public testing::TestWithParam<ChangeRow> {};

TEST_P(ChangedClass, TellsNoLengths) {
  const std::string change = GetParam().change;
  const std::string sound =
      "(U\x01kU\x03"
      "cpuctorch\nDoubleStorage\nt.";
  const auto tar = [](const std::string& arguments) {
    return scan_raw(test::tar_of("storages", storages_of(arguments))).verdict;
  };
  EXPECT_EQ(tar("N0" + sound), Verdict::kClean);
  EXPECT_NE(tar(change + sound), Verdict::kClean);
  EXPECT_NE(tar(change + "N.\x80\x02" + sound), Verdict::kClean);
  const std::string raw = raw_length(6) + std::string(48, 'x');
  const std::string id = id_of("storage", "Double") + ".";
  const std::string keys =
      "](U\x01"
      "0e.";
  const auto legacy = [&](const std::string& ids, const std::string& last) {
    return scan_raw(legacy_of(ids, last, raw)).verdict;
  };
  EXPECT_EQ(legacy("N0" + id, "N0" + keys), Verdict::kClean);
  EXPECT_NE(legacy(change + id, keys), Verdict::kClean);
  EXPECT_NE(legacy(id, change + keys), Verdict::kClean);
}

INSTANTIATE_TEST_SUITE_P(
    Rows,
    ChangedClass,
    testing::ValuesIn(changes()),
    [](const auto& row) { return std::string(row.param.title); });

// torch gives the class of a module's id back.
TEST(RawBytesOfLegacy, AreUnknownBehindAChangedModule) {
  const std::string module = "(U\x06modulectorch\nFloatStorage\nU\0U\0tQ"s;
  const std::string id = id_of("storage", "Double") + ".";
  const auto legacy = [&](const std::string& ids) {
    return scan_raw(legacy_of(
                        ids,
                        "](U\x01"
                        "0e.",
                        raw_length(6) + std::string(48, 'x')))
        .verdict;
  };
  EXPECT_EQ(legacy(module + "0" + id), Verdict::kClean);
  EXPECT_NE(legacy(module + "}b0" + id), Verdict::kClean);
}

// torch asks the storage itself for the size of an element.
TEST(RawBytesOfLegacy, AreUnknownBehindAChangedStorage) {
  const std::string id = id_of("storage", "Double");
  const std::string type =
      "}U\x05"
      "dtypectorch\nuint8\ns";
  const auto legacy = [](const std::string& ids) {
    return scan_raw(legacy_of(
                        ids + ".",
                        "](U\x01"
                        "0e.",
                        raw_length(6) + std::string(48, 'x')))
        .verdict;
  };
  const std::string set = "ctorch._utils\n_set_obj_state\n";
  const std::string by_type = "ctorch._tensor\n_rebuild_from_type_v2\n(";
  const std::string tensor = "ctorch._utils\n_rebuild_tensor_v2\n";
  const std::string view = "(" + id + "K\0K\x06\x85K\x01\x85\x89NtR"s;
  EXPECT_EQ(legacy(tensor + view), Verdict::kClean);
  EXPECT_EQ(
      legacy(
          by_type + tensor + "ctorch\nFloatTensor\n" +
          view.substr(0, view.size() - 1) + "}tR"),
      Verdict::kClean);
  for (const std::string& changed :
       {id + type + "b",
        id + "K\0K\x01s"s,
        id + "q\x07" + "0h\x07" + type + "b",
        set + id + type + "\x86R",
        by_type + set + "ctorch\nDoubleStorage\n" + id + type + "\x86NtR"}) {
    EXPECT_NE(legacy(changed), Verdict::kClean) << changed;
  }
}

TEST(CutPickles, HaveNoFinalError) {
  // Python's unpickler in C takes the last text from behind the frame.
  for (const std::size_t gap : {1U, 400U, 1000U, 10'000U}) {
    std::string bytes = "\x80\x04\x95\x08\0\0\0\0\0\0\0N0X\x04\0\0\0abcd.0"s;
    for (std::size_t i = 0; i < gap; ++i) {
      bytes += "N0";
    }
    EXPECT_EQ(scan_raw(bytes + kEvilCall).verdict, Verdict::kFound) << gap;
  }
  // The fill bytes of an array stand at the end of what is read first.
  const std::string array =
      "cjoblib.numpy_pickle\nNumpyArrayWrapper\n)\x81}("
      "\x8c\x05shapeK\x02\x85\x8c\x05"
      "dtypecnumpy\ndtype\n(\x8c\x02"
      "f8\x89\x88tR\x8c\x1bnumpy_array_alignment_bytesK\x10ub\x03\xff\xff\xff" +
      std::string(16, '\x01') + ".";
  for (std::size_t gap = 300; gap < 520; ++gap) {
    const std::string in_front = "\x80\x04X" +
                                 std::string(1, static_cast<char>(gap)) +
                                 std::string(1, static_cast<char>(gap >> 8)) +
                                 "\0\0"s + std::string(gap, 'p') + "0";
    EXPECT_EQ(scan_raw(in_front + array).verdict, Verdict::kClean) << gap;
  }
}

// Bytes read of a tar file with a broken header and `count` blocks behind it.
std::uint64_t read_of_blocks(std::string block, std::size_t count) {
  block.resize(512, 'a');
  std::string bytes = test::tar_of("a", "");
  bytes[150] ^= 1;
  bytes = test::tar_of("sys", "\x80\x02N.") + bytes;
  for (std::size_t i = 0; i < count; ++i) {
    bytes += block;
  }
  const auto source = std::make_shared<CountedSource>(bytes);
  EXPECT_EQ(scan(source, "input.tar").verdict, Verdict::kUnreadable);
  return source->bytes_read;
}

TEST(BlocksOfABrokenTar, AreReadInLinearTime) {
  for (const std::string& block :
       {"V"s, "ga\n"s, "X\xff\xff\xff\x7f"s, "N0V"s}) {
    // What is free in any case, and some for each byte.
    EXPECT_LT(read_of_blocks(block, 4000), (64U << 20) + 30 * 4000 * 512U)
        << block;
  }
}

} // namespace
} // namespace lockstep::ckpt
