// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/load/format_table.h"

#include <set>

#include <gmock/gmock.h>

#include "lockstep/ckpt/load.h"
#include "lockstep/ckpt/scan.h"
#include "lockstep/ckpt/verify.h"
#include "tests/ckpt/formats/safetensors/safetensors_fixture.h"
#include "tests/ckpt/value_fixture.h"
#include "tests/support/memory_fs.h"

namespace lockstep::ckpt {
namespace {

TEST(FormatTable, NamesAreUnique) {
  std::set<std::string_view> names;
  std::set<std::string_view> writers;
  for (const Format& format : formats()) {
    EXPECT_TRUE(names.insert(format.name).second) << format.name;
    EXPECT_EQ(&format_of(format.name), &format);
    if (format.writer.write != nullptr) {
      if (!format.writer.needs_file) {
        EXPECT_TRUE(writers.insert(format.writer.name).second);
      }
      EXPECT_EQ(format_to_write(format.writer.name), &format);
    }
  }
  EXPECT_EQ(format_writers().size(), writers.size());
  EXPECT_EQ(format_writers().front().name, SaveOptions().format);
  EXPECT_EQ(format_of("unheard of").name, "");
  EXPECT_EQ(format_to_write(""), nullptr);
}

// What a row writes, all that reads the table takes for that row.
TEST(FormatTable, WhatARowWritesIsReadAsThatRow) {
  const Value root =
      Value::dict({{"w", tensor_of<float>(DType::kFloat32, {1, 2}, {2})}});
  for (const Format& format : formats()) {
    if (format.writer.write == nullptr || format.writer.needs_file) {
      continue;
    }
    MemoryFs fs;
    const Status status =
        save("m", root, {.format = std::string(format.writer.name)}, fs);
    ASSERT_TRUE(status) << to_string(status.error());
    const auto file = load("m", {}, fs);
    ASSERT_TRUE(file) << to_string(file.error());
    EXPECT_EQ(file->format, format.name);
    const auto report = verify("m", {}, fs);
    ASSERT_TRUE(report) << to_string(report.error());
    EXPECT_TRUE(report->is_sound()) << format.name;
    const auto scans = scan_path("m", {}, fs);
    ASSERT_TRUE(scans) << to_string(scans.error());
    EXPECT_EQ(
        fs.stat("m")->kind == FileInfo::Kind::kDirectory,
        format.is_folder);
    if (format.pickles != PicklePlace::kNowhere) {
      continue;
    }
    EXPECT_EQ(scans->front().format, format.name);
    EXPECT_EQ(scans->front().verdict, Verdict::kClean);
  }
}

TEST(FormatTable, EndingsAreMatchedAsAWhole) {
  const Format& zip = format_of("zip");
  EXPECT_EQ(ending_of(zip, "a/m.pth.tar"), ".pth.tar");
  EXPECT_EQ(ending_of(zip, "m.pt"), ".pt");
  EXPECT_EQ(ending_of(zip, "m.tar"), "");
  EXPECT_EQ(ending_of(zip, "pt"), "");
  EXPECT_EQ(ending_of(format_of("sharded"), "m.json"), "");
}

TEST(FormatTable, AnArrayWhoseHeaderHas123BytesIsAnArray) {
  std::string header = "{'descr': '|u1', 'fortran_order': False, 'shape': ()}";
  header.resize(122, ' '); // 123, a brace, is what safetensors has there
  const std::string bytes =
      std::string("\x93NUMPY\1\0{\0", 10) + header + "\n" + "x";
  const auto file = load(make_source(as_byte_span(bytes)), "input");
  ASSERT_TRUE(file) << to_string(file.error());
  EXPECT_EQ(file->format, "npy");
}

// Loading and scanning once had a rule each.
TEST(FormatTable, LoadAndScanTakeTheSameFilesForSafetensors) {
  const std::string whole = safetensors("{}");
  const std::string cut = safetensors(R"({"a":{}})").substr(0, 12);
  const std::string spaced = safetensors(" {}");
  const std::string other = safetensors(" not an object");
  for (const std::string& bytes : {whole, cut, spaced, other}) {
    const auto source = make_source(as_byte_span(bytes));
    const auto file = load(source, "input");
    const ScanReport report = scan(source, "input");
    EXPECT_EQ(file.has_value(), report.verdict == Verdict::kClean);
    if (!file) {
      ASSERT_EQ(report.notes.size(), 1U);
      EXPECT_EQ(report.notes[0].detail, file.error().detail);
    }
  }
}

} // namespace
} // namespace lockstep::ckpt
