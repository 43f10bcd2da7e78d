// SPDX-License-Identifier: BSD-3-Clause
//
// Folders and archives are scanned by their bytes, and "clean" is said only of
// what was read to its end.
#include <map>
#include <string>

#include <gmock/gmock.h>

#include "lockstep/ckpt/scan.h"
#include "tests/ckpt/tools/scan/archives.h"
#include "tests/support/memory_fs.h"

namespace lockstep::ckpt {
namespace {

using namespace std::string_literals;
using test::tar_of;
using test::zip_of;

const std::string kNoProto = "\x8c\x02os\x8c\x06system\x93\x8c\x02id\x85R.";
const std::string kOdd = "cos\nsystem\n(Vid\ntR0cmy-module\nx\n.";

std::vector<ScanReport> scan_files(
    const std::map<std::string, std::string>& files,
    const ScanPathOptions& options = {}) {
  MemoryFs disk;
  for (const auto& [name, bytes] : files) {
    const std::string path = "runs/" + name;
    EXPECT_TRUE(disk.create_directories(path.substr(0, path.rfind('/'))));
    auto file = disk.create(path, 0644);
    EXPECT_TRUE(file && (*file)->write(as_byte_span(bytes)));
  }
  const auto reports = scan_path("runs", options, disk);
  EXPECT_TRUE(reports) << to_string(reports.error());
  return reports ? *reports : std::vector<ScanReport>();
}

ScanReport scan_bytes(const std::string& bytes) {
  return scan(make_source(as_byte_span(bytes)), "input");
}

std::vector<std::string> codes_in(const ScanReport& report) {
  std::vector<std::string> codes;
  for (const Error& note : report.notes) {
    codes.push_back(note.detail);
  }
  return codes;
}

TEST(ScanFolder, LooksAtBytesWhateverTheEnding) {
  std::map<std::string, std::string> files;
  for (const char* name :
       {"a.joblib",
        "b.dat",
        "c.data",
        "d",
        ".hidden",
        "e.txt",
        "f.json",
        "g.npy",
        "h.safetensors",
        "i.png",
        "j.py",
        "sub/k.bin",
        "l.zip"}) {
    files[name] = name[0] % 2 == 0 ? kNoProto : kOdd;
  }
  const auto reports = scan_files(files);
  EXPECT_EQ(reports.size(), files.size());
  for (const ScanReport& report : reports) {
    EXPECT_EQ(report.verdict, Verdict::kFound) << report.path;
  }
}

TEST(ScanFolder, TakesTextsForTexts) {
  const auto reports = scan_files({
      {"a.py", "import os\nimport sys\n\nos.system('ls')\n"},
      {"b.py", "class A:\n    def f(self):\n        pass\n"},
      {"c.yaml", "checkpoint: best\nepochs: 3\n"},
      {"d.md", "(c) 2024 the authors\nAll rights reserved.\n"},
      {"e.txt", "cuda"},
      {"f.sh", "cd build\nmake -j\n"},
      {"g.csv", "index,class\n1,2\n"},
      {"h.csv", "cnt\n1\n2\n"},
  });
  EXPECT_EQ(worst(reports), Verdict::kOther);
  for (const ScanReport& report : reports) {
    EXPECT_EQ(report.verdict, Verdict::kOther) << report.path;
    EXPECT_TRUE(report.findings.empty()) << report.path;
  }
  EXPECT_THAT(codes_in(reports[1]), testing::Contains("W_UNLIKELY"))
      << "what Python would ask for is said";
}

TEST(ScanFolder, WithoutAPickleIsNotCalledClean) {
  EXPECT_EQ(worst({}), Verdict::kOther);
  EXPECT_EQ(worst(scan_files({{"a.txt", "a text"}})), Verdict::kOther);
  EXPECT_EQ(
      worst(scan_files({{"a.txt", "a text"}, {"b.pkl", "\x80\x02N."}})),
      Verdict::kClean);
}

TEST(Scan, SaysThatAnIndexNamesOtherFiles) {
  const std::string index = R"({"weight_map": {"w": "a.safetensors"}})";
  const auto report =
      scan(make_source(as_byte_span(index)), "model.safetensors.index.json");
  ASSERT_EQ(report.notes.size(), 1U);
  EXPECT_THAT(report.notes[0].message, testing::HasSubstr("or the folder"));
}

TEST(ScanFolder, SaysThatItDoesNotUnpack) {
  const auto reports = scan_files({
      {"a.gz", "\x1f\x8b\x08\0rest"s},
      {"b.joblib", "x\x9c\x01rest"},
      {"c.joblib", "x^\xcb\x48rest"},
      {"d.xz", "\xfd\x37zXZ\0rest"s},
      {"e.bz2", "BZh91AY"},
      {"f.zst", "\x28\xb5\x2f\xfdrest"},
  });
  for (const ScanReport& report : reports) {
    EXPECT_EQ(report.verdict, Verdict::kUnreadable) << report.path;
    ASSERT_FALSE(report.notes.empty()) << report.path;
    EXPECT_THAT(
        report.notes.back().message,
        testing::HasSubstr("not looked into"));
  }
}

TEST(ScanFolder, SaysWhatIsTooDeep) {
  const auto reports = scan_files(
      {{"a/b/c.pkl", kNoProto}, {"d.pkl", "\x80\x02N."}},
      {.max_depth = 1});
  EXPECT_EQ(worst(reports), Verdict::kUnreadable);
}

TEST(ScanFolder, ReachesAFolderOnceThroughLinks) {
  MemoryFs disk;
  ASSERT_TRUE(disk.create_directories("runs/b"));
  for (const char* path : {"runs/x.pkl", "runs/b/y.pkl"}) {
    auto file = disk.create(path, 0644);
    ASSERT_TRUE(file && (*file)->write(as_byte_span("\x80\x02N.")));
  }
  for (const auto& [target, path] : std::map<std::string, std::string>{
           {".", "runs/a"},
           {"../b", "runs/b/c"},
           {"../../runs", "runs/b/d"},
           {"b/d/b", "runs/e"}}) {
    ASSERT_TRUE(disk.symlink(target, path));
  }
  const auto reports = scan_path("runs", {}, disk);
  ASSERT_TRUE(reports) << to_string(reports.error());
  EXPECT_EQ(reports->size(), 2U);
  EXPECT_EQ(worst(*reports), Verdict::kClean);
}

TEST(ScanArchive, ReadsEveryRecordByItsBytes) {
  for (const char* name :
       {"a/tensors.bin",
        "a/notes.txt",
        "a/data/9",
        "a/data/sub/model.pt",
        "a/tensors/0",
        "a/.data/version",
        "a/extra/x"}) {
    for (const std::string& payload : {kNoProto, kOdd}) {
      const ScanReport report =
          scan_bytes(zip_of({{"a/data.pkl", "\x80\x02}."}, {name, payload}}));
      EXPECT_EQ(report.verdict, Verdict::kFound) << name;
    }
  }
}

TEST(ScanArchive, LeavesTheBytesOfTensorsAlone) {
  // Elements that begin like a pickle.
  const std::string pickle =
      "\x80\x02(U\x07storagectorch\nFloatStorage\nU\x01"
      "0U\x03"
      "cpuK\x04tQ.";
  const std::string elements =
      "\x80\x02(\x93"
      "c\xff\n\x01\n"s;
  const ScanReport report =
      scan_bytes(zip_of({{"a/data.pkl", pickle}, {"a/data/0", elements}}));
  EXPECT_EQ(report.verdict, Verdict::kClean);
  const ScanReport other =
      scan_bytes(zip_of({{"a/data.pkl", pickle}, {"a/data/1", elements}}));
  EXPECT_NE(other.verdict, Verdict::kClean);
}

TEST(ScanArchive, LooksAtTensorsThatSayWhatTheyAre) {
  const std::string pickle =
      "\x80\x02(U\x07storagectorch\nFloatStorage\nU\x05"
      "x.npyU\x03"
      "cpuK\x04tQ.";
  std::string header = "{'descr': '|O', 'fortran_order': False, 'shape': (1,)}";
  header.resize(118, ' ');
  const std::string evil = "\x80\x02" + kNoProto;
  for (const std::string& bytes :
       {"\x93NUMPY\x01\0v\0"s + header + evil,
        zip_of({{"b/data.pkl", evil}}),
        evil,
        "\x80\x02N." + evil}) {
    const ScanReport report =
        scan_bytes(zip_of({{"data.pkl", pickle}, {"data/x.npy", bytes}}));
    EXPECT_EQ(report.verdict, Verdict::kFound) << bytes.substr(0, 8);
  }
}

TEST(ScanArchive, AnArchiveInsideDoesNotSpeakForTheOuterOne) {
  const std::string pickle =
      "\x80\x02(U\x07storagectorch\nFloatStorage\nU\x01"
      "0U\x03"
      "cpuK\x04tQ.";
  const std::string inner = zip_of({{"b/data.pkl", pickle}});
  const ScanReport report = scan_bytes(zip_of(
      {{"a/data.pkl", "\x80\x02}."},
       {"a/inner", inner},
       {"a/data/0", kNoProto}}));
  EXPECT_EQ(report.verdict, Verdict::kFound);
}

TEST(ScanTar, ReadsEveryMemberByItsBytes) {
  for (const char* name : {"sys", "notes.txt", "storages", "x.png"}) {
    EXPECT_EQ(scan_bytes(tar_of(name, kNoProto)).verdict, Verdict::kFound)
        << name;
    EXPECT_EQ(scan_bytes(tar_of(name, kOdd)).verdict, Verdict::kFound) << name;
  }
}

TEST(ScanTar, ListsWhatStandsBehindABrokenHeader) {
  const std::string sound = tar_of("sys", "\x80\x02N.");
  std::string broken = tar_of("pickle", kNoProto);
  broken[150] ^= 1; // the checksum
  const ScanReport report = scan_bytes(sound + broken);
  EXPECT_EQ(report.verdict, Verdict::kFound);
  EXPECT_THAT(codes_in(report), testing::Contains("E_TAR"));
}

TEST(ScanStream, WhatFollowsAPickleUnreadIsNotClean) {
  const std::string plain = "\x80\x02N.";
  EXPECT_EQ(scan_bytes(plain).verdict, Verdict::kClean);
  EXPECT_EQ(scan_bytes(plain + "\0\0\0"s).verdict, Verdict::kClean);
  for (const std::string& rest : {"\xff\xff"s, "a text"s, "\x93NUMPY"s}) {
    const ScanReport report = scan_bytes(plain + rest);
    EXPECT_EQ(report.verdict, Verdict::kUnreadable) << rest;
    EXPECT_THAT(codes_in(report), testing::Contains("E_TRAILING"));
  }
}

TEST(ScanStream, ValuesInFrontHideNothing) {
  for (const std::string& value : {"N."s, "I1\n."s, "\x8a\x01\x07."s}) {
    EXPECT_EQ(scan_bytes(value + value + kNoProto).verdict, Verdict::kFound);
    EXPECT_EQ(scan_bytes(value + value).verdict, Verdict::kClean);
    EXPECT_EQ(scan_bytes(value + "a text").verdict, Verdict::kOther);
  }
}

TEST(ScanStream, ANameThatPromisesAPickleLeavesNoDoubt) {
  const std::string odd = "cmy module\nx\n(tR";
  const auto reports = scan_files({{"a.pkl", odd}, {"b", odd}});
  EXPECT_EQ(reports[0].verdict, Verdict::kFound);
  EXPECT_EQ(reports[1].verdict, Verdict::kOther);
  const ScanReport report = scan_bytes(zip_of({{"a/data.pkl", odd}}));
  EXPECT_EQ(report.verdict, Verdict::kFound);
}

TEST(ScanStream, NoiseIsNoPickle) {
  for (const std::string& bytes :
       {"\x82\x05\xff"s,
        "\x84\1\0\0\0\xff"s,
        "NN\x93\xff"s,
        "c\xff\xfe\na\n"s}) {
    const ScanReport report = scan_bytes(bytes);
    EXPECT_EQ(report.verdict, Verdict::kOther);
  }
  EXPECT_EQ(scan_bytes("\x82\x05."s).verdict, Verdict::kFound);
}

} // namespace
} // namespace lockstep::ckpt
