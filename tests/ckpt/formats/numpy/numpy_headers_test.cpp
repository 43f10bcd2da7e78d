// SPDX-License-Identifier: BSD-3-Clause
//
// What NumPy reads and refuses in the header of an array, as a table; the
// oracle test asks NumPy itself. It evaluates any Python literal; we read what
// writers write, and the rows say where that differs.
#include <gtest/gtest.h>

#include "lockstep/ckpt/scan.h"
#include "tests/ckpt/formats/safetensors/safetensors_fixture.h"
#include "tests/support/python.h"
#include "tests/support/scratch_dir.h"

namespace lockstep::ckpt {
namespace {

// Who reads an array.
enum class ReadBy { kBoth, kNobody, kNumpyOnly };

struct Row {
  std::string literal = {};
  ReadBy read_by = ReadBy::kBoth;
  int major = 1;
};

std::string npy_of(const Row& row) {
  std::string bytes("\x93NUMPY", 6);
  bytes += static_cast<char>(row.major);
  bytes += '\0';
  const std::size_t length = row.literal.size();
  if (row.major == 1) {
    put_le<std::uint16_t>(bytes, static_cast<std::uint16_t>(length));
  } else {
    put_le<std::uint32_t>(bytes, static_cast<std::uint32_t>(length));
  }
  return bytes + row.literal + "abcdefgh";
}

std::string literal_of(
    const std::string& descr,
    const std::string& order = "False",
    const std::string& shape = "(2,)") {
  return "{'descr': " + descr + ", 'fortran_order': " + order +
         ", 'shape': " + shape + ", }\n";
}

std::string with_shape(const std::string& shape) {
  return literal_of("'<f4'", "False", shape);
}

std::vector<Row> frames() {
  using enum ReadBy;
  const std::string plain = literal_of("'<f4'");
  std::string tabs = plain;
  std::string quotes = plain;
  std::ranges::replace(tabs, ' ', '\t');
  std::ranges::replace(quotes, '\'', '"');
  return {
      {plain},
      {plain, kBoth, 2},
      {plain, kBoth, 3},
      {plain, kNobody, 0},
      {plain, kNobody, 4},
      {plain.substr(0, plain.size() - 1)},
      {"  " + plain},
      {"\n" + plain},
      {plain + "  \n"},
      {tabs},
      {quotes},
      {"{'shape': (2,), 'descr': '<f4', 'fortran_order': False}"},
      {"{u'shape': (2,), u'descr': u'<f4', u'fortran_order': False}"},
      {"{'descr':'<f4','fortran_order':False,'shape':(2,)}"},
      {"{'descr': '<f4', 'shape': (2,)}", kNobody},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'x': 1}",
       kNobody},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,),,}", kNobody},
      {"dict(descr='<f4', fortran_order=False, shape=(2,))", kNobody},
      {plain + "x", kNobody},
      {plain + ";", kNobody},
      {plain + std::string(1, '\0'), kNobody},
      {"", kNobody},
      {"{}", kNobody},
      {"{'descr': '<f8', 'descr': '<f4', 'fortran_order': False, "
       "'shape': (2,)}",
       kNumpyOnly},
      {plain + "# note", kNumpyOnly},
      {"(" + plain + ")", kNumpyOnly},
  };
}

std::vector<Row> shapes() {
  using enum ReadBy;
  return {
      {with_shape("()")},
      {with_shape("(2L,)")},
      {with_shape("(1, 2)")},
      {with_shape("( 2 , )")},
      {with_shape("(0,)")},
      {with_shape("(2)"), kNobody},
      {with_shape("2"), kNobody},
      {with_shape("[2]"), kNobody},
      {with_shape("(,)"), kNobody},
      {with_shape("(1,,2)"), kNobody},
      {with_shape("(-2,)"), kNobody},
      {with_shape("(2.0,)"), kNobody},
      {with_shape("('2',)"), kNobody},
      {with_shape("(True, True)"), kNobody},
      {with_shape("None"), kNobody},
      {with_shape("(3,)"), kNobody}, // more than there is
      {with_shape("(+2,)"), kNumpyOnly},
      {with_shape("(0x2,)"), kNumpyOnly},
      {with_shape("((2,))"), kNumpyOnly},
      {literal_of("'<f4'", "True")},
      {literal_of("'<f4'", "0"), kNobody},
      {literal_of("'<f4'", "None"), kNobody},
      {literal_of("'<f4'", "false"), kNobody},
      {literal_of("'<f4'", "'False'"), kNobody},
  };
}

std::vector<Row> types() {
  using enum ReadBy;
  return {
      {literal_of("'<i4'")},
      {literal_of("'>f4'")},
      {literal_of("'=f4'")},
      {literal_of("'f4'")},
      {literal_of("'|f4'")},
      {literal_of("'|u1'")},
      {literal_of("'<V2'")},
      {literal_of("'!f4'"), kNobody},
      {literal_of("'<F4'"), kNobody},
      {literal_of("'<f4 '"), kNobody},
      {literal_of("b'<f4'"), kNobody},
      {literal_of("''"), kNobody},
      {literal_of("None"), kNobody},
      {literal_of("4"), kNobody},
      {literal_of("['<f4']"), kNobody},
      {literal_of("'float32'"), kNumpyOnly},
      {literal_of("'f'"), kNumpyOnly},
      {literal_of("'<' 'f4'"), kNumpyOnly},
      {literal_of("r'<f4'"), kNumpyOnly},
      {literal_of(R"('\x3cf4')"), kNumpyOnly},
      {literal_of("('<f4', (1,))"), kNumpyOnly},
  };
}

std::vector<Row> all_rows() {
  std::vector<Row> rows;
  for (auto* part : {frames, shapes, types}) {
    for (Row& row : part()) {
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

TEST(NpyHeaders, AreReadAsTheTableSays) {
  for (const Row& row : all_rows()) {
    const std::string bytes = npy_of(row);
    const auto file = load_bytes(bytes);
    EXPECT_EQ(file.has_value(), row.read_by == ReadBy::kBoth)
        << row.literal << "\n"
        << (file ? "" : to_string(file.error()));
  }
}

TEST(NpyHeaderOracle, TheTableIsNumPys) {
  const test::ScratchDir dir;
  std::string wanted;
  std::size_t count = 0;
  for (const Row& row : all_rows()) {
    const auto file =
        real_fs().create(dir / (std::to_string(count++) + ".npy"), 0644);
    ASSERT_TRUE(file);
    ASSERT_TRUE((*file)->write(as_byte_span(npy_of(row))));
    wanted += row.read_by == ReadBy::kNobody ? "no\n" : "yes\n";
  }
  EXPECT_EQ(
      test::run_python(
          "ckpt_numpy.py",
          {"accepts", dir.path(), std::to_string(count)}),
      wanted);
}

Verdict verdict_on_archive(const std::string& bytes) {
  return scan(make_source(as_byte_span(bytes)), "a.npz").verdict;
}

TEST(NpzReader, AnEmptyZipFileIsAnArchiveOfNoArrays) {
  const std::string end = ZipBytes().finish();
  const std::string with_comment = ZipBytes().finish({.comment = "none"});
  for (const std::string& bytes : {end, with_comment}) {
    const auto file = load_bytes(bytes);
    ASSERT_TRUE(file) << to_string(file.error());
    EXPECT_EQ(file->format, "npz");
    EXPECT_TRUE(file->root.as_dict()->items.empty());
    EXPECT_TRUE(file->warnings.empty());
  }
  EXPECT_EQ(verdict_on_archive(end), Verdict::kClean);
}

// Other readers take the last end record, and with it other records.
TEST(NpzReader, AnEmptyArchiveInFrontOfAnotherIsRefused) {
  ZipBytes zip;
  zip.add("a.npy", npy_of({with_shape("()")}));
  const auto file = load_bytes(ZipBytes().finish() + zip.finish());
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().detail, "E_PREFIX");
  const auto cut = load_bytes(ZipBytes().finish().substr(0, 20));
  ASSERT_FALSE(cut);
}

} // namespace
} // namespace lockstep::ckpt
