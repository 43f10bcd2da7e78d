// SPDX-License-Identifier: BSD-3-Clause
//
// Files that are of two formats: each loader goes by its own marks, torch.load
// by the first bytes of a zip file, then by the checksum of a tar file, then by
// a pickle; joblib by the first bytes of compressed data. What any of them
// would run is found.
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/formats/tar/tar_header.h"
#include "lockstep/ckpt/scan.h"
#include "tests/ckpt/tools/scan/archives.h"

namespace lockstep::ckpt {
namespace {

using namespace std::string_literals;

const std::string kRunsId = "cos\nsystem\n(Vid\ntR.";

// Makes the first block of `bytes` the header of a tar file with `size` bytes
// behind it, from before POSIX.
std::string with_tar_header(std::string bytes, std::size_t size = 0) {
  bytes.replace(100, 24, 24, ' ');
  bytes.replace(124, 12, format("{:011o} ", size));
  bytes.replace(136, 12, 12, ' ');
  bytes.replace(148, 8, 8, ' ');
  bytes[156] = '0';
  bytes.replace(329, 16, 16, ' ');
  unsigned sum = 0;
  for (std::size_t i = 0; i < kTarBlock; ++i) {
    sum += static_cast<unsigned char>(bytes[i]);
  }
  bytes.replace(148, 7, format("{:06o} ", sum));
  return bytes;
}

// A tar file whose first member is called `name`, and whose second runs code.
std::string tar_behind(const std::string& name) {
  std::string head = name;
  head.resize(kTarBlock, '\0');
  return with_tar_header(head) + test::tar_of("storages", kRunsId);
}

std::string safetensors_with(const std::string& tar) {
  const std::string end =
      "\"},\"w\":{\"dtype\":\"U8\",\"shape\":[" + std::to_string(tar.size()) +
      "],\"data_offsets\":[0," + std::to_string(tar.size()) + "]}}";
  std::string head = "\xf8\x03\0\0\0\0\0\0{\"__metadata__\":{\"x\":\""s;
  head.resize(2 * kTarBlock - end.size(), ' ');
  return with_tar_header(head + end, kTarBlock) + tar;
}

// The name of its first record holds what makes the header.
std::string zip_with(const std::string& tar) {
  constexpr std::size_t kNameAt = 30;
  const std::string plain =
      test::zip_of({{std::string(kTarBlock - kNameAt, 'a'), tar}});
  const std::string head = with_tar_header(plain).substr(0, kTarBlock);
  return test::zip_of({{head.substr(kNameAt), tar}});
}

std::string npy_with(const std::string& tar) {
  std::string head =
      "\x93NUMPY\x01\0\xf6\x01{'descr':'|u1','fortran_order':False,'shape':("s +
      std::to_string(tar.size()) + ",)}";
  head.resize(kTarBlock, ' ');
  return with_tar_header(head) + tar;
}

struct PolyglotRow {
  const char* title = "";
  std::string bytes = {};
  Verdict verdict = Verdict::kFound;
};

const std::vector<PolyglotRow>& polyglots() {
  static const std::string kTar = test::tar_of("storages", kRunsId);
  static const std::vector<PolyglotRow> kRows{
      {"old_tar", tar_behind("a")},
      {"tar_and_pickle", tar_behind("\x80\x03X\x01") + "."},
      {"tar_and_safetensors", safetensors_with(kTar)},
      {"tar_and_zip", zip_with(kTar)},
      {"tar_and_npy", npy_with(kTar)},
      {"tar_in_a_zip",
       test::zip_of({{"a/b", tar_behind("a")}}),
       Verdict::kUnreadable},
      {"gzip_and_tar",
       with_tar_header("\x1f\x8b\x08" + std::string(509, '\0')),
       Verdict::kUnreadable},
      {"gzip_and_zip",
       "\x1f\x8b\x08" + test::zip_of({{"a/b", "c"}}),
       Verdict::kUnreadable},
      {"zlib", "x\x9c\x01\x02\x03", Verdict::kUnreadable},
      {"old_zlib", "ZF0x1f               x\x9c\x01", Verdict::kUnreadable},
      {"old_zlib_without_0x",
       "ZF1f                 x\x9c\x01",
       Verdict::kUnreadable},
      {"old_zlib_begins_blank",
       "ZF 0X1F_0            x\x9c\x01",
       Verdict::kUnreadable},
      {"text_begins_like_it", "ZFS is a file system.", Verdict::kOther},
      {"gzip", "\x1f\x8b\x08\x01", Verdict::kUnreadable},
      {"bzip2", "BZh91AY&SY\x01", Verdict::kUnreadable},
      {"xz", "\xfd\x37zXZ\0\0"s, Verdict::kUnreadable},
      {"lzma", "\x5d\0\0\x80\0\0"s, Verdict::kUnreadable},
      {"lzma_with_a_small_dictionary", "\x5d\0\x01\0\0"s, Verdict::kUnreadable},
      {"lz4", "\x04\x22\x4d\x18\x01", Verdict::kUnreadable},
  };
  return kRows;
}

class Polyglot : public testing::TestWithParam<PolyglotRow> {};

TEST_P(Polyglot, IsScannedAsBoth) {
  const std::string& bytes = GetParam().bytes;
  const ScanReport report = scan(make_source(as_byte_span(bytes)), "m.dat");
  EXPECT_EQ(report.verdict, GetParam().verdict);
  if (GetParam().verdict == Verdict::kUnreadable) {
    ASSERT_FALSE(report.notes.empty());
    EXPECT_EQ(report.notes[0].detail, "E_WRONG_FORMAT");
  }
}

INSTANTIATE_TEST_SUITE_P(
    Rows,
    Polyglot,
    testing::ValuesIn(polyglots()),
    [](const auto& row) { return std::string(row.param.title); });

// A header whose checksum is spelled so; `sum` is that of bytes from 0 to 255.
std::string spelled(const std::string& field, const std::string& name = "a") {
  std::string head = name;
  head.resize(kTarBlock, '\0');
  return head.replace(148, 8, (field + std::string(8, '\0')).substr(0, 8));
}

// Each was given to Python's tarfile.
TEST(TarHeader, IsWhatPythonTakes) {
  constexpr unsigned kSum = 256 + 'a';
  const std::string octal = format("{:o}", kSum);
  const std::string binary = "\x80\0\0\0\0\0"s + static_cast<char>(kSum >> 8) +
                             static_cast<char>(kSum & 0xFF);
  for (const std::string& field :
       {octal,
        octal + " ",
        " \t" + octal + "\n",
        "+0o" + octal,
        "0O_" + octal,
        "5_4_1"s,
        binary}) {
    EXPECT_TRUE(starts_like_tar(as_byte_span(spelled(field)))) << field;
  }
  for (const std::string& field :
       {"542"s,
        "5__41"s,
        "_541"s,
        "541_"s,
        "0o"s,
        "5 41"s,
        "549"s,
        "-541"s,
        "\xff\xff\xff\xff\xff\xff\x01\x61"s,
        "541\xa0"s}) {
    EXPECT_FALSE(starts_like_tar(as_byte_span(spelled(field)))) << field;
  }
  // Bytes of 128 and more: some programs took them for negative ones.
  EXPECT_TRUE(starts_like_tar(as_byte_span(spelled("600", "\x80"))));
  EXPECT_TRUE(starts_like_tar(as_byte_span(spelled("200", "\x80"))));
  EXPECT_TRUE(starts_like_tar(as_byte_span(spelled("", "\x80\x80"))));
  EXPECT_TRUE(starts_like_tar(as_byte_span(
      spelled("\xff\xff\xff\xff\xff\xff\xff\x80", "\x80\x80\x80"))));
  std::string odd = spelled("541");
  odd[100] = '9';
  EXPECT_FALSE(starts_like_tar(as_byte_span(odd)));
  EXPECT_FALSE(starts_like_tar(as_byte_span(odd.substr(0, 511))));
}

struct LinkRow {
  const char* title = "";
  std::string name = {};
  char type = '1';
  std::string target = {};
  Verdict verdict = Verdict::kFound;
};

const std::vector<LinkRow>& links() {
  static const std::vector<LinkRow> kRows{
      {"hard", "storages", '1', "a/z"},
      {"symbolic", "storages", '2', "a/z"},
      {"in_a_folder", "a/storages", '2', "z"},
      {"out_of_the_file", "storages", '1', "/dev/x", Verdict::kUnreadable},
      {"to_itself", "pickle", '2', "pickle", Verdict::kUnreadable},
      {"pipe", "storages", '6', "", Verdict::kUnreadable},
      {"of_another_name", "b", '2', "a/z", Verdict::kClean},
      {"with_the_name_of_a_file", "a/z", '1', "a/z", Verdict::kUnreadable},
  };
  return kRows;
}

// Plain pickles end at the dot; storages have raw bytes there.
std::string storages_that_run() {
  return "\x80\x02(K\x01K\x01"
         "ctorch\nByteStorage\nt.\xf7\0\0\0\0\0\0\0"s +
         "\x80\x03"
         "B\xf1\0\0\0"s +
         std::string(240, '\0') + kRunsId;
}

void set_type(std::string& header, char type) {
  header[156] = type;
  header.replace(148, 8, 8, ' ');
  const unsigned sum =
      std::accumulate(header.begin(), header.begin() + kTarBlock, 0U);
  header.replace(148, 7, format("{:06o} ", sum));
}

class LinkInATar : public testing::TestWithParam<LinkRow> {};

TEST_P(LinkInATar, IsTheMember) {
  const LinkRow& row = GetParam();
  const std::string content = storages_that_run();
  std::string link = test::tar_of(row.name, "").substr(0, kTarBlock);
  link.replace(157, row.target.size(), row.target);
  set_type(link, row.type);
  const std::string plain = "\x80\x02N.";
  const std::string& member = row.verdict == Verdict::kFound ? content : plain;
  const ScanReport report = scan(
      make_source(as_byte_span(test::tar_of("a/z", member) + link)),
      "m.tar");
  EXPECT_EQ(report.verdict, row.verdict);
}

INSTANTIATE_TEST_SUITE_P(
    Rows,
    LinkInATar,
    testing::ValuesIn(links()),
    [](const auto& row) { return std::string(row.param.title); });

// An extended header with one record, of at most 89 bytes.
std::string extended(const std::string& record, const std::string& behind) {
  const std::string line = format("{:02} {}\n", record.size() + 4, record);
  std::string member = test::tar_of("pax", line);
  set_type(member, 'x');
  return member.replace(kTarBlock + line.size(), behind.size(), behind);
}

TEST(ExtendedTar, HasTheNamesThatPythonGives) {
  for (const std::string name : {"storages", "storages/", "a/storages//"}) {
    const std::string tar =
        extended("path=" + name, "") + test::tar_of("x", storages_that_run());
    EXPECT_EQ(
        scan(make_source(as_byte_span(tar)), "m.tar").verdict,
        Verdict::kFound)
        << name;
  }
}

// Of two headers Python takes the first, and it reads the fill bytes.
TEST(ExtendedTar, IsRefusedWherePythonReadsAnother) {
  const std::string member = test::tar_of("x", "\x80\x02N.");
  const auto scan_of = [&member](const std::string& headers) {
    return scan(make_source(as_byte_span(headers + member)), "m.tar").verdict;
  };
  const std::string one = extended("path=a", "");
  EXPECT_EQ(scan_of(one), Verdict::kClean);
  EXPECT_EQ(scan_of(extended("mtime=1", "") + one), Verdict::kClean);
  EXPECT_EQ(scan_of(one + extended("mtime=1", "")), Verdict::kUnreadable);
  EXPECT_EQ(scan_of(extended("size=4", "") + one), Verdict::kUnreadable);
  EXPECT_EQ(scan_of(one + one), Verdict::kUnreadable);
  EXPECT_EQ(
      scan_of(extended("mtime=1", "17 path=storages\n")),
      Verdict::kUnreadable);
}

} // namespace
} // namespace lockstep::ckpt
