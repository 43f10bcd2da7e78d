// SPDX-License-Identifier: BSD-3-Clause
//
// What testdata_test does not say about legacy files: sharing, class sources,
// streams of several objects, and how much of a file is read.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/byte_source.h"
#include "lockstep/ckpt/formats/legacy/storage_views.h"
#include "lockstep/ckpt/load.h"
#include "tests/ckpt/counted_source.h"
#include "tests/ckpt/pickle/pickle_fixture.h"

namespace lockstep::ckpt {
namespace {

using testing::HasSubstr;

std::string number_bytes(std::uint64_t value) {
  return Pickle(0).number(value, 8).bytes();
}

// The three pickles before the object.
std::string head() {
  return Pickle()
             .op(0x8A)
             .number(10, 1)
             .raw({"\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19", 10})
             .stop()
             .bytes() +
         Pickle().int4(1001).stop().bytes() + Pickle().op('}').stop().bytes();
}

// A tensor of `numel` bytes under the key "w", and `text` before it.
std::string stream(std::size_t numel, std::string_view text = "") {
  Pickle object;
  object.op('}').mark().text("text").text(text).text("w");
  object.global("torch._utils", "_rebuild_tensor").mark();
  object.mark().text("storage").global("torch", "ByteStorage").text("7");
  object.text("cpu").int8(static_cast<std::int64_t>(numel)).op('N');
  object.op('t').op('Q').int4(0).ints({static_cast<std::int64_t>(numel)});
  object.ints({1}).op('t').op('R').op('u').stop();
  const Pickle keys = Pickle().op(']').mark().text("7").op('e').stop();
  return head() + object.bytes() + keys.bytes() + number_bytes(numel) +
         std::string(numel, 'x');
}

Result<Checkpoint> load_text(
    const std::string& bytes,
    const LoadOptions& options = {}) {
  return load(make_source(as_byte_span(bytes)), "file", options);
}

TEST(LegacyReader, ReadsOnlyThePicklesOfAFileThatIsNotMapped) {
  constexpr std::size_t kBlob = 1U << 22;
  const auto source = std::make_shared<CountedSource>(stream(kBlob));
  const auto file = load(source, "file");
  ASSERT_TRUE(file) << to_string(file.error());
  EXPECT_LT(source->bytes_read, kBlob / 8);
  const auto bytes = file->root.find("w")->as_tensor()->storage->source->load();
  ASSERT_TRUE(bytes);
  EXPECT_EQ(bytes->size(), kBlob);
  EXPECT_EQ((*bytes)[kBlob - 1], std::byte{'x'});
}

TEST(LegacyReader, FindsTheEndOfALongPickleInGrowingPieces) {
  const std::string text(300'000, 't');
  const auto source = std::make_shared<CountedSource>(stream(9, text));
  const auto file = load(source, "file");
  ASSERT_TRUE(file) << to_string(file.error());
  EXPECT_EQ(*file->root.find("text")->as_string(), text);
  EXPECT_EQ(file->root.find("w")->as_tensor()->sizes.at(0), 9);
}

TEST(LegacyReader, RefusesAPickleBeyondTheLimit) {
  const std::string bytes = stream(9, std::string(5000, 't'));
  const auto file = load_text(bytes, {.limits = {.max_pickle_bytes = 4000}});
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().detail, "E_LIMIT");
  EXPECT_EQ(file.error().code, ErrorCode::kUnsafe);
}

TEST(LegacyReader, PutsTensorsOnViewsOntoTheWholeStorage) {
  const auto file = load("testdata/valid/legacy_storage_views.pt");
  ASSERT_TRUE(file);
  const Tensor* whole = file->root.find("whole")->as_tensor();
  for (const char* name : {"front", "back", "again"}) {
    EXPECT_EQ(file->root.find(name)->as_tensor()->storage, whole->storage);
  }
  EXPECT_EQ(file->root.find("back")->as_tensor()->offset, 5);
  EXPECT_EQ(file->storages.size(), 1U);
}

TEST(LegacyReader, StreamsViewsWithoutReadingTheWholeStorage) {
  struct Viewed final : StorageSource {
    Result<ByteSpan> load() override {
      return Error{.code = ErrorCode::kIo, .message = "the whole is read"};
    }
    Result<ByteSpan> view(
        std::uint64_t offset,
        std::uint64_t length,
        std::vector<std::byte>& /*scratch*/) override {
      return as_byte_span("abcdefgh").subspan(offset, length);
    }
  };
  const auto root =
      std::make_shared<Storage>(Storage{.nbytes = 8, .dtype = DType::kInt16});
  root->source = std::make_shared<Viewed>();
  StorageViews views;
  const auto view = views.make(root, 1, 2);
  ASSERT_TRUE(view) << to_string(view.error());
  std::string streamed;
  EXPECT_TRUE((*view)->source->stream([&streamed](ByteSpan block) {
    streamed += as_text(block);
    return Status();
  }));
  EXPECT_EQ(streamed, "cdef");
}

TEST(LegacyReader, MakesTensorsOfOldParametersAndVariables) {
  const auto file = load("testdata/valid/legacy_variables.pt");
  ASSERT_TRUE(file) << to_string(file.error());
  const Tensor* first = file->root.find("first")->as_tensor();
  ASSERT_NE(first, nullptr);
  EXPECT_TRUE(first->is_parameter);
  EXPECT_EQ(first, file->root.find("again")->as_tensor());
  EXPECT_TRUE(file->root.find("second")->as_tensor()->is_parameter);
  EXPECT_FALSE(file->root.find("third")->as_tensor()->is_parameter);
}

TEST(LegacyReader, KeepsTheSourcesOfClasses) {
  const auto file = load("testdata/valid/legacy_whole_2017.pt");
  ASSERT_TRUE(file);
  ASSERT_EQ(file->class_sources.size(), 2U);
  EXPECT_EQ(file->class_sources[0].name, "model.Net");
  EXPECT_EQ(file->class_sources[0].file, "/home/me/model.py");
  EXPECT_THAT(file->class_sources[0].text, HasSubstr("class Net(nn.Module)"));
  EXPECT_EQ(file->class_sources[1].name, "torch.nn.modules.linear.Linear");
}

// A class that cloudpickle sends as a value: made by calls, nothing of it runs.
Pickle& class_by_value(Pickle& pickle, bool has_state) {
  const char* module = "cloudpickle.cloudpickle";
  if (has_state) {
    pickle.global(module, "_class_setstate");
  }
  pickle.global(module, "_make_skeleton_class").mark();
  pickle.global("__builtin__", "type").text("Net").op(')').op('}');
  pickle.text("1f").op('N').op('t').op('R');
  return has_state ? pickle.op('}').op('}').tuple(2).tuple(2).op('R') : pickle;
}

TEST(LegacyReader, ReadsClassesThatArePickledByValue) {
  for (const bool has_state : {false, true}) {
    Pickle object;
    object.mark().text("module");
    class_by_value(object, has_state);
    object.text("/home/me/run.py").text("class Net: pass").op('t').op('Q');
    object.op(')').op(0x81).op('}').mark().text("_modules").op('}').op('u');
    object.op('b').stop();
    const Pickle keys = Pickle().op(']').stop();
    const std::string bytes = head() + object.bytes() + keys.bytes();
    const auto file = load_text(bytes);
    ASSERT_TRUE(file) << to_string(file.error());
    ASSERT_EQ(file->class_sources.size(), 1U);
    EXPECT_EQ(file->class_sources[0].name, "Net");
    EXPECT_EQ(file->class_sources[0].text, "class Net: pass");
    const Object& made = *file->root.as_object();
    EXPECT_NE(made.state->find("_modules"), nullptr);
  }
}

TEST(LegacyReader, RefusesAClassThatIsNone) {
  Pickle object;
  object.mark().text("module").text("Net").text("f").text("s").op('t').op('Q');
  const std::string bytes = head() + object.stop().bytes();
  EXPECT_EQ(load_text(bytes).error().detail, "E_TYPE");
}

TEST(LegacyReader, WarnsOfAFurtherObjectAndSeesItsNames) {
  const std::string evil = Pickle()
                               .global("os", "system")
                               .text("ls")
                               .tuple(1)
                               .op('R')
                               .stop()
                               .bytes();
  const auto file = load_text(stream(4) + evil);
  ASSERT_TRUE(file) << to_string(file.error());
  ASSERT_EQ(file->warnings.size(), 1U);
  EXPECT_EQ(file->warnings[0].name, "W_TRAILING");
  EXPECT_EQ(file->globals.back().name, "os.system");
  EXPECT_FALSE(file->globals.back().is_safe);
}

TEST(LegacyReader, RefusesNamesOffTheAllowListOnRequest) {
  const auto file = load(
      "testdata/valid/legacy_whole_2017.pt",
      {.refuse_unknown_globals = true});
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().detail, "E_UNSAFE_GLOBAL");
}

TEST(LegacyReader, NamesTensorBlobAndOffsetOfACutFile) {
  const std::string bytes = stream(64);
  const auto file = load_text(bytes.substr(0, bytes.size() - 1));
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().detail, "E_LEGACY_SHORT");
  EXPECT_THAT(
      file.error().message,
      HasSubstr("storage 0 of tensor 'w'; expected 64 bytes, got 63"));
  EXPECT_EQ(file.error().offset, bytes.size() - 72);
}

TEST(LegacyReader, GivesOffsetsInTheFileForErrorsInAPickle) {
  std::string bytes = stream(4);
  const std::size_t at = bytes.find("torch._utils");
  bytes[at - 1] = '\x01'; // no opcode
  const auto file = load_text(bytes);
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().detail, "E_OPCODE");
  EXPECT_EQ(file.error().offset, at - 1);
}

TEST(LegacyReader, SurvivesEveryCutAndEveryFlip) {
  const std::string bytes = stream(4, "some text");
  for (std::size_t cut = 0; cut < bytes.size(); ++cut) {
    EXPECT_FALSE(load_text(bytes.substr(0, cut))) << cut;
  }
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string flipped = bytes;
      flipped[at] = static_cast<char>(flipped[at] ^ (1 << bit));
      const auto file = load_text(flipped);
      EXPECT_TRUE(file || !file.error().detail.empty()) << at;
    }
  }
}

} // namespace
} // namespace lockstep::ckpt
