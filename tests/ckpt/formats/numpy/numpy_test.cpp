// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <iterator>

#include <gmock/gmock.h>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/formats/numpy/npy_header.h"
#include "lockstep/ckpt/load/format_table.h"
#include "lockstep/ckpt/scan.h"
#include "lockstep/ckpt/verify.h"
#include "tests/ckpt/formats/safetensors/safetensors_fixture.h"
#include "tests/ckpt/logical_bytes.h"
#include "tests/ckpt/value_fixture.h"
#include "tests/support/memory_fs.h"

namespace lockstep::ckpt {
namespace {

using testing::HasSubstr;

// An npy file of version 1 with this literal.
std::string npy(const std::string& literal, const std::string& data = "") {
  std::string bytes("\x93NUMPY\x01\x00", 8);
  put_le<std::uint16_t>(bytes, static_cast<std::uint16_t>(literal.size()));
  return bytes + literal + data;
}

std::string literal(const std::string& descr, const std::string& shape) {
  return format(
      "{{'descr': {}, 'fortran_order': False, 'shape': {}, }}\n",
      descr,
      shape);
}

// The verdict on several arrays, or other things, that one file holds.
std::string verdict_on(const std::string& bytes) {
  const ScanReport report = scan(make_source(as_byte_span(bytes)), "a.npy");
  return format(
      "{} {}",
      verdict_name(report.verdict),
      report.notes.empty() ? "" : report.notes[0].detail);
}

TEST(NpyScan, LooksAtWhatFollowsTheArray) {
  const std::string pickle = "cos\nsystem\n.";
  const std::string number = npy(literal("'<f4'", "(2,)"), "abcdefgh");
  const std::string text = npy(literal("'<U1'", "()"), "abcd");
  const std::string structure =
      npy(literal("[('a', '<f4', (2,)), ('b', [('c', '|S3')])]", "(1,)"),
          "abcdefghijk");
  for (const std::string& array : {number, text, structure}) {
    EXPECT_EQ(verdict_on(array), "clean ");
    EXPECT_EQ(verdict_on(array + array), "clean ");
    EXPECT_EQ(verdict_on(array + npy(literal("'|O'", "()"), pickle)), "found ");
    EXPECT_EQ(verdict_on(format("{}{}{}", array, array, pickle)), "found ");
    EXPECT_EQ(verdict_on(array + "\n"), "clean W_TRAILING");
  }
  EXPECT_EQ(verdict_on(npy(literal("'|S'", "()"), pickle)), "found ");
}

// NumPy tells such names apart; PyTorch, which does not, reads no such archive.
TEST(NpzScan, TakesNamesThatDifferInLetterCase) {
  const std::string number = npy(literal("'|u1'", "(1,)"), "a");
  ZipBytes zip;
  zip.add("W.npy", number);
  zip.add("w.npy", number);
  EXPECT_EQ(verdict_on(zip.finish()), "clean ");
  zip.add("O.npy", npy(literal("'|O'", "()"), "cos\nsystem\n."));
  EXPECT_EQ(verdict_on(zip.finish()), "found ");
  ZipBytes twice = zip;
  twice.add("w.npy", number);
  EXPECT_EQ(verdict_on(twice.finish()), "found E_DUP_CASEFOLD");
  ZipBytes mixed;
  for (const char* name : {"a/w.npy", "a/data.pkl", "a/DATA.PKL"}) {
    mixed.add(name, name[2] == 'w' ? number : "\x80\x02N.");
  }
  EXPECT_EQ(verdict_on(mixed.finish()), "unreadable E_DUP_CASEFOLD");
}

// As PyTorch's storages lie there, which nobody unpickles.
TEST(NpzScan, LooksIntoFoldersNamedData) {
  ZipBytes zip;
  zip.add("w.npy", npy(literal("'|u1'", "(1,)"), "a"));
  zip.add("data/o.npy", npy(literal("'|O'", "()"), "cos\nsystem\n."));
  EXPECT_EQ(verdict_on(zip.finish()), "found ");
}

TEST(NpyScan, SaysWhatItDoesNotLookAt) {
  const std::string number = npy(literal("'|u1'", "(1,)"), "a");
  const std::string harmless = npy(literal("'|O'", "()"), "\x80\x02N.");
  EXPECT_EQ(verdict_on(harmless), "clean ");
  EXPECT_EQ(verdict_on(harmless + number), "unreadable E_TRAILING");
  EXPECT_EQ(verdict_on(number + "PK\x03\x04"), "unreadable E_TRAILING");
  std::string many;
  for (int i = 0; i < 1001; ++i) {
    many += number;
  }
  EXPECT_EQ(verdict_on(many), "clean ");
  EXPECT_EQ(verdict_on(many.substr(number.size())), "clean ");
  EXPECT_EQ(
      verdict_on(npy(literal("'<U3'", "()"), "a")),
      "unreadable E_TRUNCATED");
}

TEST(NpyReader, TakesEveryHarmlessSpelling) {
  for (const char* text :
       {"{'descr': '|u1', 'fortran_order': False, 'shape': (2,), }  \n",
        R"({"shape":(2L,),"fortran_order":False,"descr":"<u1"})",
        " {'shape' : (1, 2), 'descr': '=u1', 'fortran_order':True}\n"}) {
    const std::string bytes = npy(text, "ab");
    const auto file = load_bytes(bytes);
    ASSERT_TRUE(file) << text << to_string(file.error());
    EXPECT_EQ(file->format, "npy");
    EXPECT_EQ(*logical_bytes(*file->root.as_tensor()), "ab");
  }
}

TEST(NpyReader, KnowsTheBfloat16OfMlDtypes) {
  const std::string bytes = npy(literal("'<V2'", "(1,)"), "ab");
  const auto file = load_bytes(bytes);
  ASSERT_TRUE(file) << to_string(file.error());
  EXPECT_EQ(file->root.as_tensor()->dtype, DType::kBFloat16);
}

TEST(NpyReader, WarnsOfBytesBehindTheArray) {
  const std::string bytes = npy(literal("'|u1'", "(1,)"), "ab");
  const auto file = load_bytes(bytes);
  ASSERT_TRUE(file);
  EXPECT_EQ(
      to_string(file->warnings.at(0)),
      "W_TRAILING: 1 byte follows the array");
}

struct BadArray {
  const char* name;
  std::string bytes;
  const char* detail;
};

std::string deep_fields() {
  std::string text = "'<f4'";
  for (int i = 0; i < 40; ++i) {
    text = format("[('a', {})]", text);
  }
  return text;
}

std::vector<BadArray> bad_npy_types() {
  const char* header = "E_NPY_HEADER";
  return {
      {"Object", npy(literal("'|O'", "(1,)"), "x"), "E_NPY_OBJECT"},
      {"ObjectOrder", npy(literal("'<O8'", "(1,)"), "x"), "E_NPY_OBJECT"},
      {"ObjectField",
       npy(literal("[('a', '<f4'), ('b', '|O')]", "(1,)"), "x"),
       "E_NPY_OBJECT"},
      {"ObjectInNestedField",
       npy(literal("[('a', [('b', '<f4'), ('c', '|O')])]", "()"), "x"),
       "E_NPY_OBJECT"},
      {"ObjectSaidLast",
       npy("{'descr': '<U3', 'descr': '|O', 'fortran_order': False, "
           "'shape': ()}"),
       header},
      {"TypeInAnotherSpelling", npy(literal("'i4,O'", "()"), "x"), header},
      {"ParameterOfANumber", npy(literal("'<i4[O]'", "()"), "x"), header},
      {"DateOfASentence", npy(literal("'<M8[D],O[]'", "()"), "x"), header},
      {"FieldsWithoutEnd",
       npy(literal(std::string(40, '['), "()"), "x"),
       header},
      {"FieldsTooDeep", npy(literal(deep_fields(), "()"), "x"), header},
      {"Text", npy(literal("'<U1'", "(1,)"), "xxxx"), "E_DTYPE"},
      {"Date", npy(literal("'<M8[25us]'", "(1,)"), "xxxxxxxx"), "E_DTYPE"},
      {"FieldCalledO",
       npy(literal("[(('O', 'xO'), '<i1', (2, 3)), ('O', '|S1')]", "()"),
           "xxxxxxx"),
       "E_DTYPE"},
      {"FieldOfSeveral",
       npy(literal("[('bfloat16', '<u2', (2,))]", "()"), "xxxx"),
       "E_DTYPE"},
      {"LongDouble",
       npy(literal("'<f16'", "(1,)"), std::string(16, 'x')),
       "E_DTYPE"},
      {"Void", npy(literal("'|V2'", "(1,)"), "xx"), "E_DTYPE"},
      {"Structure",
       npy(literal("[('a', '<f4'), ('b', '<f4')]", "(1,)"), "xxxxxxxx"),
       "E_DTYPE"},
      {"WrongField",
       npy(literal("[('bfloat16', '<u4')]", "()"), "xxxx"),
       "E_DTYPE"},
  };
}

std::vector<BadArray> bad_npy_headers() {
  const char* header = "E_NPY_HEADER";
  std::string version = npy(literal("'<f4'", "()"), "abcd");
  version[6] = 4;
  std::string long_header = npy(literal("'<f4'", "()"), "abcd");
  long_header[9] = '\x7f';
  std::string rank = "(1";
  for (int i = 0; i < 64; ++i) {
    rank += ", 1";
  }
  return {
      {"Version", version, header},
      {"HeaderLongerThanFile", long_header, header},
      {"CutInMagic", "\x93NUMPY\x01", "E_TRUNCATED"},
      {"Expression", npy("__import__('os').system('id')"), header},
      {"Call", npy(literal("'<f4'", "(int('1'),)")), header},
      {"UnknownKey", npy("{'descr': '<f4', 'x': 1}"), header},
      {"TwiceDescr", npy("{'descr': '<f4', 'descr': '<f8'}"), header},
      {"MissingKey", npy("{'descr': '<f4', 'shape': ()}"), header},
      {"Rest", npy(literal("'<f4'", "()") + "; x", "abcd"), header},
      {"NegativeShape", npy(literal("'<f4'", "(-1,)")), header},
      {"NoTuple", npy(literal("'<f4'", "(3)")), header},
      {"Escape", npy(literal("'<\\x664'", "()")), header},
      {"Shape2To63",
       npy(literal("'<f4'", "(9223372036854775808,)")),
       "E_OVERFLOW"},
      {"Product",
       npy(literal("'<f8'", "(2305843009213693952, 2)")),
       "E_OVERFLOW"},
      {"EmptyProduct",
       npy(literal("'<f8'", "(0, 2305843009213693952, 16)")),
       "E_OVERFLOW"},
      {"Rank", npy(literal("'|u1'", rank + ")"), "x"), "E_RANK"},
      {"TextCut", npy(literal("'<U3'", "(1,)"), "x"), "E_TRUNCATED"},
      {"TextOfUnknownSize", npy(literal("'|S'", "(1,)")), "E_DTYPE"},
      {"Cut", npy(literal("'<f4'", "(2,)"), "abcdefg"), "E_TRUNCATED"},
  };
}

std::vector<BadArray> bad_arrays() {
  std::vector<BadArray> all = bad_npy_types();
  std::ranges::copy(bad_npy_headers(), std::back_inserter(all));
  return all;
}

class BadNpy : public testing::TestWithParam<BadArray> {};

TEST_P(BadNpy, GivesItsError) {
  const auto file = load_bytes(GetParam().bytes);
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().detail, GetParam().detail) << to_string(file.error());
}

TEST_P(BadNpy, IsNamedInsideAnArchive) {
  ZipBytes zip;
  zip.add("good.npy", npy(literal("'|u1'", "(1,)"), "a"));
  zip.add("bad.npy", GetParam().bytes);
  const std::string bytes = zip.finish();
  const auto file = load_bytes(bytes);
  const std::string detail = GetParam().detail;
  if (detail == "E_DTYPE" || detail == "E_NPY_OBJECT") {
    ASSERT_TRUE(file) << to_string(file.error());
    ASSERT_EQ(file->warnings.size(), 1U);
    EXPECT_EQ(file->warnings[0].name, "W_ARRAY");
    EXPECT_THAT(file->warnings[0].text, HasSubstr("'bad' is not read: "));
    EXPECT_NE(file->root.find("good")->as_tensor(), nullptr);
    EXPECT_NE(file->root.find("bad")->as_object(), nullptr);
    return;
  }
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().detail, detail) << to_string(file.error());
  EXPECT_EQ(file.error().record, "bad.npy");
}

// A copy without the array would lose it, and nobody would know.
TEST(NpzReader, KeepsAnArrayThatIsNoTensorFromBeingLost) {
  ZipBytes zip;
  zip.add("odd.npy", npy(literal("'|O'", "(1,)"), "."));
  zip.add("good.npy", npy(literal("'|u1'", "(1,)"), "a"));
  const std::string bytes = zip.finish();
  const auto file = load_bytes(bytes);
  ASSERT_TRUE(file) << to_string(file.error());
  for (const FormatWriter& writer : format_writers()) {
    MemoryFs fs;
    const Status status =
        save("out", file->root, {.format = std::string(writer.name)}, fs);
    ASSERT_FALSE(status) << writer.name;
    EXPECT_EQ(status.error().detail, "E_NOT_TENSOR");
    EXPECT_EQ(
        status.error().hint,
        "'lockstep ckpt drop' takes it out of a copy");
    EXPECT_EQ(status.error().path, "out");
  }
}

INSTANTIATE_TEST_SUITE_P(
    Row64,
    BadNpy,
    testing::ValuesIn(bad_arrays()),
    [](const auto& row) { return std::string(row.param.name); });

TEST(NpzReader, ChecksTheCrcOfAnArray) {
  MemoryFs fs;
  const Value tree =
      Value::dict({{"w", tensor_of<float>(DType::kFloat32, {1, 2}, {2})}});
  ASSERT_TRUE(save("m.npz", tree, {.format = "npz"}, fs));
  std::string bytes = *read_text(fs, "m.npz");
  const std::size_t place = bytes.find(std::string("\0\0\x80\x3f", 4));
  ASSERT_NE(place, std::string::npos);
  EXPECT_EQ(place % 64, 0U);
  bytes[place] = 1;
  const auto file = load_bytes(bytes);
  ASSERT_TRUE(file) << to_string(file.error());
  const auto loaded =
      file->root.find("w")->as_tensor()->storage->source->load();
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().detail, "E_CRC");
}

// Of what is not read, too: objects, and texts that fill their record.
TEST(NpzVerify, FindsDamageInAnArrayThatIsNoTensor) {
  for (const char* descr : {"'|O'", "'<U1'"}) {
    ZipBytes zip;
    zip.add("s.npy", npy(literal(descr, "(1,)"), "wxyz"));
    zip.add("good.npy", npy(literal("'|u1'", "(1,)"), "a"));
    std::string bytes = zip.finish();
    const auto sound = verify(make_source(as_byte_span(bytes)), "m.npz");
    ASSERT_TRUE(sound) << to_string(sound.error());
    EXPECT_TRUE(sound->is_sound());
    EXPECT_EQ(sound->records, 2U);
    ++bytes[bytes.find("wxyz")];
    const auto damaged = verify(make_source(as_byte_span(bytes)), "m.npz");
    ASSERT_TRUE(damaged) << to_string(damaged.error());
    ASSERT_EQ(damaged->errors.size(), 1U) << descr;
    EXPECT_EQ(damaged->errors[0].detail, "E_CRC");
    EXPECT_EQ(damaged->errors[0].record, "s.npy");
  }
}

// All are in one folder, so that the archive could be PyTorch's, too.
TEST(NpzVerify, DoesNotCallAnArrayOfTextsDamage) {
  ZipBytes zip;
  zip.add("a/s.npy", npy(literal("'<U1'", "(1,)"), "wxyz"));
  std::string bytes = zip.finish();
  const auto odd = verify(make_source(as_byte_span(bytes)), "m.npz");
  ASSERT_TRUE(odd) << to_string(odd.error());
  ASSERT_EQ(odd->errors.size(), 1U);
  EXPECT_EQ(odd->errors[0].detail, "E_DTYPE");
  EXPECT_FALSE(odd->errors[0].is_damage());
  EXPECT_THAT(odd->errors[0].hint, HasSubstr("numpy.load"));
  ++bytes[bytes.find("wxyz")];
  const auto damaged = verify(make_source(as_byte_span(bytes)), "m.npz");
  ASSERT_TRUE(damaged) << to_string(damaged.error());
  EXPECT_TRUE(damaged->errors[0].is_damage());
}

TEST(NpzReader, RefusesOtherRecords) {
  ZipBytes zip;
  zip.add("good.npy", npy(literal("'|u1'", "(1,)"), "a"));
  zip.add("notes.txt", "hello");
  const std::string bytes = zip.finish();
  EXPECT_EQ(load_bytes(bytes).error().detail, "E_NPZ_RECORD");
}

Error npz_refusal(const Value& value) {
  MemoryFs fs;
  const Status status = save("m.npz", value, {.format = "npz"}, fs);
  EXPECT_EQ(fs.list(".")->size(), 0U);
  return status ? Error() : status.error();
}

TEST(NpzWriter, NamesWhatItCannotHold) {
  const Tensor t = tensor_of<float>(DType::kFloat32, {1}, {1});
  const Error number = npz_refusal(Value::dict({{"w", t}, {"epoch", 3}}));
  EXPECT_EQ(number.detail, "E_NOT_TENSOR");
  EXPECT_THAT(number.message, HasSubstr("'epoch' is"));
  const Error nothing = npz_refusal(Value::dict({}));
  EXPECT_EQ(nothing.detail, "E_NOT_TENSOR");
  EXPECT_THAT(nothing.message, HasSubstr("no tensor to write"));
  EXPECT_EQ(npz_refusal(Value::dict({{"../x", t}})).detail, "E_NAME");
  EXPECT_EQ(npz_refusal(Value::dict({{"/x", t}})).detail, "E_NAME");
  EXPECT_EQ(
      npz_refusal(Value::dict({{"a", t}, {"b", t}})).detail,
      "E_SHARED_TENSOR");
  const Tensor q = tensor_of<std::uint8_t>(DType::kQUInt8, {1}, {1});
  EXPECT_EQ(npz_refusal(Value::dict({{"q", q}})).detail, "E_DTYPE");
}

TEST(NpzWriter, CallsABareTensorAsNumpyDoes) {
  MemoryFs fs;
  const Tensor t = tensor_of<float>(DType::kFloat32, {1}, {1});
  ASSERT_TRUE(save("m.npz", t, {.format = "npz"}, fs));
  const auto file = load("m.npz", {}, fs);
  ASSERT_TRUE(file) << to_string(file.error());
  EXPECT_NE(file->root.find("arr_0"), nullptr);
  const Tensor other = tensor_of<float>(DType::kFloat32, {2}, {1});
  const Value named = Value::dict({{"", t}, {"arr_0", other}});
  const auto saved = save("n.npz", named, {.format = "npz"}, fs);
  ASSERT_TRUE(saved) << to_string(saved.error());
  const auto both = load("n.npz", {}, fs);
  ASSERT_TRUE(both) << to_string(both.error());
  EXPECT_EQ(both->root.find("")->as_tensor()->sizes, t.sizes);
  EXPECT_NE(both->root.find("arr_0"), nullptr);
}

} // namespace
} // namespace lockstep::ckpt
