// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>
#include <thread>

#include <gmock/gmock.h>

#include "lockstep/base/internal/atomic_file.h"
#include "lockstep/ckpt/byte_source.h"
#include "lockstep/ckpt/load.h"
#include "lockstep/ckpt/print.h"
#include "lockstep/ckpt/tensor.h"
#include "lockstep/ckpt/verify.h"
#include "tests/ckpt/pickle/pickle_fixture.h"
#include "tests/ckpt/value_fixture.h"
#include "tests/ckpt/zip/zip_fixture.h"
#include "tests/support/memory_fs.h"

namespace lockstep::ckpt {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsSupersetOf;
using testing::UnorderedElementsAre;

// {'w': tensor of `numel` floats over storage '0', 'v': the same again}
Pickle two_views() {
  const auto view = [](Pickle& p, const char* key) {
    p.text(key).global("torch._utils", "_rebuild_tensor_v2").mark();
    p.storage("FloatStorage", "0", 4).int4(0).ints({4}).ints({1});
    p.op(0x89).hooks().op('t').op('R').op('s');
  };
  Pickle pickle;
  pickle.op('}');
  view(pickle, "w");
  view(pickle, "v");
  return pickle.stop();
}

std::string archive(
    const std::string& pickle,
    const EntryLies& data_lies = {},
    const std::string& payload = std::string(16, '\1')) {
  ZipBytes zip;
  zip.add("a/data.pkl", pickle);
  zip.add("a/data/0", payload, data_lies);
  zip.add("a/version", "3\n");
  return zip.finish();
}

Result<Checkpoint> open(const std::string& bytes, LoadOptions options = {}) {
  return load(make_source(as_byte_span(bytes)), "input", options);
}

TEST(PtReader, ViewsOfOneStorageShareIt) {
  const std::string bytes = archive(two_views().bytes());
  const auto file = open(bytes);
  ASSERT_TRUE(file) << to_string(file.error());
  EXPECT_EQ(
      file->root.find("w")->as_tensor()->storage,
      file->root.find("v")->as_tensor()->storage);
  EXPECT_EQ(file->storages.size(), 1U);
  EXPECT_EQ(file->version, 3);
  EXPECT_EQ(file->byteorder, "");
  EXPECT_EQ(file->era, "torch 1.6 to 2.0");
}

TEST(PtReader, AliasesStableBytes) {
  const std::string bytes = archive(two_views().bytes());
  const auto file = open(bytes);
  ASSERT_TRUE(file);
  const auto view = file->root.find("w")->as_tensor()->storage->source->load();
  ASSERT_TRUE(view);
  const auto* data = reinterpret_cast<const char*>(view->data());
  EXPECT_GE(data, bytes.data());
  EXPECT_LT(data, bytes.data() + bytes.size());
}

TEST(PtReader, ChecksTheCrcWhenBytesAreAskedForAndOnlyThen) {
  const std::string bytes = archive(two_views().bytes(), {.crc = 5});
  const auto file = open(bytes);
  ASSERT_TRUE(file) << "opening reads no tensor bytes";
  const auto& source = file->root.find("w")->as_tensor()->storage->source;
  const auto checked = source->load();
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().detail, "E_CRC");
  const auto unchecked = open(bytes, {.check_crc = false});
  EXPECT_TRUE(unchecked->root.find("w")->as_tensor()->storage->source->load());
  const auto aliased = open(bytes, {.check_tensor_crc = false});
  EXPECT_TRUE(aliased->root.find("w")->as_tensor()->storage->source->load());
}

TEST(PtReader, LoadsFromSeveralThreads) {
  const std::string bytes = archive(two_views().bytes());
  const auto file = open(bytes);
  const auto& source = file->root.find("w")->as_tensor()->storage->source;
  std::vector<std::jthread> threads;
  threads.reserve(4);
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&source] {
      const auto loaded = source->load();
      EXPECT_TRUE(loaded);
      EXPECT_EQ(loaded->size(), 16U);
    });
  }
}

TEST(PtReader, NamesTheTensorWhoseBytesAreMissing) {
  ZipBytes zip;
  zip.add("a/data.pkl", two_views().bytes());
  zip.add("a/version", "3\n");
  const auto file = open(zip.finish());
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().detail, "E_NO_STORAGE");
  EXPECT_EQ(file.error().record, "a/data/0");
  EXPECT_EQ(file.error().path, "input");
  EXPECT_THAT(file.error().message, HasSubstr("'w'"));
}

TEST(PtReader, WarnsOfALongRecordAndOfTrailingPickles) {
  const std::string second = Pickle().global("os", "system").stop().bytes();
  const std::string bytes =
      archive(two_views().bytes() + second, {}, std::string(20, '\1'));
  const auto file = open(bytes);
  ASSERT_TRUE(file) << to_string(file.error());
  ASSERT_EQ(file->warnings.size(), 2U);
  EXPECT_EQ(file->warnings[0].name, "W_TRAILING_PICKLE");
  EXPECT_EQ(file->warnings[1].name, "W_STORAGE_LONG");
  EXPECT_EQ(file->globals.back().name, "os.system");
}

TEST(PtReader, RefusesUnknownNamesWhenAsked) {
  const std::string bytes = archive(Pickle()
                                        .global("os", "system")
                                        .text("x")
                                        .tuple(1)
                                        .op('R')
                                        .stop()
                                        .bytes());
  const auto shown = open(bytes);
  ASSERT_TRUE(shown) << "nothing is executed";
  const auto refused = open(bytes, {.refuse_unknown_globals = true});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().detail, "E_UNSAFE_GLOBAL");
  EXPECT_EQ(refused.error().code, ErrorCode::kUnsafe);
  EXPECT_THAT(refused.error().message, HasSubstr("os.system"));
}

TEST(PtReader, OpensThroughAnyFileSystem) {
  MemoryFs fs;
  ASSERT_TRUE(write_file_atomically(fs, "m.pt", archive(two_views().bytes())));
  const auto file = load("m.pt", {}, fs);
  ASSERT_TRUE(file) << to_string(file.error());
  const auto missing = load("absent.pt", {}, fs);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::kNotFound);
}

TEST(Verify, NamesEveryTensorOfADamagedRecord) {
  const std::string bytes = archive(two_views().bytes(), {.crc = 5});
  const auto report = verify(make_source(as_byte_span(bytes)), "input");
  ASSERT_TRUE(report);
  ASSERT_EQ(report->errors.size(), 1U);
  EXPECT_EQ(report->errors[0].detail, "E_CRC");
  EXPECT_EQ(report->errors[0].record, "data/0");
  EXPECT_THAT(report->errors[0].tensors, ElementsAre("w", "v"));
}

TEST(Verify, TellsOfWhatFollowsThePickleAndOfWhatFollowsTheArchive) {
  const std::string bytes = archive(two_views().bytes() + "x") + "foreign";
  const auto report = verify(make_source(as_byte_span(bytes)), "input");
  ASSERT_TRUE(report);
  std::vector<std::string> details;
  for (const Finding& finding : report->warnings) {
    details.push_back(finding.detail);
  }
  EXPECT_THAT(details, IsSupersetOf({"W_TRAILING", "W_TRAILING_PICKLE"}));
}

TEST(Verify, WarnsOfNamesThatAreNoUtf8) {
  const Value root =
      Value::dict({{"\xed\xa0\x80", floats({1})}, {"w", floats({2})}});
  for (const char* name : {"pt", "pt-legacy"}) {
    MemoryFs fs;
    ASSERT_TRUE(save("m.pt", root, {.format = name}, fs));
    const auto report = verify("m.pt", {}, fs);
    ASSERT_TRUE(report) << to_string(report.error());
    EXPECT_TRUE(report->is_sound());
    ASSERT_EQ(report->warnings.size(), 1U) << name;
    EXPECT_EQ(report->warnings[0].detail, "W_NAME");
    EXPECT_THAT(report->warnings[0].tensors, ElementsAre("\xed\xa0\x80"));
  }
}

TEST(Verify, WarnsOfLayoutAlignmentAndUnusedRecords) {
  ZipBytes zip;
  zip.add("a/data.pkl", two_views().bytes());
  zip.add("a/data/0", std::string(16, '\1'));
  zip.add("a/version", "3\n");
  zip.add("a/data/9", "left over");
  const std::string bytes = zip.finish();
  const auto report = verify(make_source(as_byte_span(bytes)), "input");
  ASSERT_TRUE(report);
  EXPECT_TRUE(report->is_sound());
  std::vector<std::string> details;
  for (const Finding& finding : report->warnings) {
    details.push_back(finding.detail);
  }
  EXPECT_THAT(
      details,
      UnorderedElementsAre(
          "W_ALIGNMENT",
          "W_LAYOUT",
          "W_ALIGNMENT",
          "W_UNUSED"));
}

TEST(Element, ReadsSmallFloats) {
  const auto number = [](std::uint16_t bits, DType dtype) {
    return *read_number(reinterpret_cast<const std::byte*>(&bits), dtype);
  };
  EXPECT_EQ(number(0x3C00, DType::kFloat16), 1.0);
  EXPECT_EQ(number(0x0001, DType::kFloat16), 5.9604644775390625e-08);
  EXPECT_EQ(number(0xC040, DType::kBFloat16), -3.0);
  EXPECT_EQ(number(0x3C, DType::kFloat8E5M2), 1.0);
  EXPECT_EQ(number(0x7E, DType::kFloat8E4M3FN), 448.0);
  EXPECT_EQ(number(0x7F, DType::kFloat8E4M3FNUZ), 240.0);
  EXPECT_EQ(number(0x7F, DType::kFloat8E5M2FNUZ), 57344.0);
  EXPECT_EQ(number(0x7F, DType::kFloat8E8M0FNU), 1.0);
  EXPECT_TRUE(std::isnan(number(0x80, DType::kFloat8E4M3FNUZ)));
  EXPECT_TRUE(std::isinf(number(0x7C00, DType::kFloat16)));
}

TEST(Print, LooksLikePythonAndEscapesTheFile) {
  const Value root = Value::dict(
      {{"a", Value::list({1, 2.5, true})},
       {"\x1b[31m", Value::tuple({"x"})},
       {"b", Bytes{"\xff"}}});
  EXPECT_EQ(
      to_text(root),
      "{\n  'a': [1, 2.5, True],\n  '\\x1b[31m': (\n    'x',\n  ),\n"
      "  'b': b'\\xff',\n}");
}

TEST(Print, JsonOfASharedTextIsLimited) {
  const Value text = std::string(1 << 20, 'x');
  Value list = List{};
  list.as_list()->items.assign(64, text);
  EXPECT_TRUE(to_json(list));
  list.as_list()->items.assign(65, text);
  const auto json = to_json(list);
  ASSERT_FALSE(json);
  EXPECT_EQ(json.error().detail, "E_LIMIT");
}

// A deflated record takes less room in the file than its content would.
TEST(CutArchive, NamesWhatFollowsADeflatedRecord) {
  ZipBytes zip;
  zip.add("m/note", "packed", {.size = 5000, .method = 8});
  zip.add("m/version", "3\n");
  const std::string bytes = zip.finish();
  const std::string cut = bytes.substr(0, bytes.find("PK\x01\x02"));
  const auto file = load(make_source(as_byte_span(cut)), "m.pt");
  ASSERT_FALSE(file);
  EXPECT_THAT(
      file.error().message,
      testing::HasSubstr("2 records are whole: 'note', 'version'"));
}

// As in a TorchScript program: no pickle tells the size of what comes first.
TEST(CutArchive, FindsTheEndsOfStoragesBeforeThePickle) {
  MemoryFs fs;
  ASSERT_TRUE(save("m.pt", Value::dict({{"a", floats({1})}}), {}, fs));
  const std::string bytes = *read_text(fs, "m.pt");
  const auto record = [&](const std::string& name) {
    const std::size_t start = bytes.find("m/" + name) - 30;
    return bytes.substr(start, bytes.find("PK\3\4", start + 1) - start);
  };
  const std::string cut =
      record("data/0") + record("data.pkl") + record("version").substr(0, 50);
  const auto file = load(make_source(as_byte_span(cut)), "m.pt");
  ASSERT_FALSE(file);
  EXPECT_THAT(
      file.error().message,
      testing::HasSubstr("2 records are whole: 'data/0', 'data.pkl'; 'version' "
                         "is cut"));
  EXPECT_THAT(file.error().hint, testing::HasSubstr("ckpt repair"));
}

// Where the pickle and a storage are whole.
TEST(CutArchive, NamesTheRepairThatHelps) {
  MemoryFs fs;
  ASSERT_TRUE(save(
      "m.pt",
      Value::dict({{"a", floats({1})}, {"b", floats({2})}}),
      {},
      fs));
  const std::string bytes = *read_text(fs, "m.pt");
  for (const char* record : {"m/data/0", "m/data/1"}) {
    const std::string cut = bytes.substr(0, bytes.find(record) + 9);
    const auto file = load(make_source(as_byte_span(cut)), "m.pt");
    ASSERT_FALSE(file);
    EXPECT_EQ(
        file.error().hint.find("repair FILE OUT") != std::string::npos,
        std::string(record) == "m/data/1");
  }
}

Error refusal_of(const std::string& bytes) {
  const auto file = load(make_source(as_byte_span(bytes)), "m.pt");
  return file ? Error() : file.error();
}

// Those of a server's answer, for example.
TEST(ForeignBytes, InFrontAreForRepair) {
  MemoryFs fs;
  ASSERT_TRUE(save("m.pt", Value::dict({{"a", floats({1})}}), {}, fs));
  const std::string bytes = "HTTP/1.1 200 OK\n" + *read_text(fs, "m.pt");
  const Error whole = refusal_of(bytes);
  EXPECT_EQ(whole.detail, "E_PREFIX");
  EXPECT_THAT(
      whole.hint,
      testing::HasSubstr("begins at byte 16: 'lockstep ckpt repair FILE OUT'"));
  const Error cut = refusal_of(bytes.substr(0, bytes.size() - 30));
  EXPECT_EQ(cut.detail, "E_WRONG_FORMAT");
  EXPECT_EQ(cut.hint, whole.hint);
}

TEST(ForeignBytes, HaveNoHintWhereTheRepairDoesNotHelp) {
  MemoryFs fs;
  ASSERT_TRUE(save("m.pt", Value::dict({{"a", floats({1})}}), {}, fs));
  const std::string torch = *read_text(fs, "m.pt");
  ZipBytes arrays;
  arrays.add("a/b.npy", "bytes");
  const std::string numpy = arrays.finish();
  for (const std::string& bytes :
       {"HTTP/1.1 200 OK\n" + numpy,
        std::string(70'000, '\n') + torch,
        numpy + numpy}) {
    const Error error = refusal_of(bytes);
    EXPECT_EQ(error.detail, "E_PREFIX");
    EXPECT_EQ(error.hint, "");
  }
}

TEST(Print, StopsAtTheLineLimit) {
  Value list = List{};
  for (int i = 0; i < 1000; ++i) {
    list.as_list()->items.emplace_back("x");
  }
  EXPECT_EQ(to_text(list, {.max_lines = 2}), "[\n  'x',\n  'x',\n  ...\n]");
}

} // namespace
} // namespace lockstep::ckpt
