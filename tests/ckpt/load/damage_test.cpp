// SPDX-License-Identifier: BSD-3-Clause
//
// Damages small files in every place. A zip file has checksums: the reader must
// give a clean error or the right data, never other data. The other formats
// have none: there a clean error, or data that lies within the file.
#include <gmock/gmock.h>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/byte_source.h"
#include "lockstep/ckpt/load.h"
#include "lockstep/ckpt/print.h"
#include "lockstep/ckpt/verify.h"
#include "lockstep/ckpt/walk.h"
#include "tests/ckpt/formats/safetensors/safetensors_fixture.h"
#include "tests/ckpt/logical_bytes.h"
#include "tests/ckpt/pickle/pickle_fixture.h"
#include "tests/support/shell.h"

namespace lockstep::ckpt {
namespace {

// Everything a user can see of a checkpoint.
Result<std::string> content_of(const std::string& bytes) {
  LOCKSTEP_ASSIGN(
      const Checkpoint file,
      load(make_source(as_byte_span(bytes)), "input"));
  std::string content = to_text(file.root);
  Status damage;
  LOCKSTEP_TRY(for_each_tensor(
      file.root,
      [&](const std::string& name, const Tensor& tensor) {
        const auto crc = logical_crc(tensor);
        if (!crc) {
          damage = crc.error();
          return;
        }
        content += format("{} {} {}\n", name, describe(tensor), *crc);
      }));
  LOCKSTEP_TRY(damage);
  return content;
}

class Damage : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    whole_ = test::file_text(std::string("testdata/valid/") + GetParam());
    const auto content = content_of(whole_);
    ASSERT_TRUE(content) << to_string(content.error());
    content_ = *content;
  }
  // True if the bytes still give the data.
  bool is_right_or_clean(const std::string& bytes, std::size_t place) {
    const auto content = content_of(bytes);
    if (content) {
      EXPECT_EQ(*content, content_) << "byte " << place;
      return true;
    }
    EXPECT_FALSE(content.error().detail.empty()) << "byte " << place;
    return false;
  }

  std::string whole_;
  std::string content_;
};

TEST_P(Damage, EveryFlippedByteGivesAnErrorOrTheData) {
  std::size_t errors = 0;
  for (std::size_t i = 0; i < whole_.size(); ++i) {
    for (const char mask : {'\x01', '\x80', '\xff'}) {
      std::string bytes = whole_;
      bytes[i] = static_cast<char>(bytes[i] ^ mask);
      const bool right = is_right_or_clean(bytes, i);
      errors += right ? 0 : 1;
      // What gives an error must not verify, either.
      const auto report = verify(make_source(as_byte_span(bytes)), "input");
      EXPECT_FALSE(report && report->is_sound() && !right) << "byte " << i;
    }
  }
  EXPECT_GT(errors, whole_.size() / 2); // the rest is padding, mostly
}

TEST_P(Damage, EveryTruncationGivesAnError) {
  for (std::size_t size = 0; size < whole_.size(); ++size) {
    EXPECT_FALSE(is_right_or_clean(whole_.substr(0, size), size)) << size;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Files,
    Damage,
    testing::Values("tiny.pt", "parameter.pt"),
    [](const auto& param) { return std::string(param.param).substr(0, 4); });

// Files without checksums, made here.
std::string safetensors_file() {
  return safetensors(
      R"({"__metadata__":{"format":"pt"},)"
      R"("a":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},)"
      R"("b":{"dtype":"I64","shape":[],"data_offsets":[8,16]}})",
      "0123456789abcdef");
}

std::string legacy_file() {
  const auto name = [](Pickle& p) -> Pickle& {
    return p.op('}').text("w").global("torch._utils", "_rebuild_tensor_v2");
  };
  Pickle tree;
  name(tree).mark().storage("FloatStorage", "7", 4).int8(0);
  tree.ints({2, 2}).ints({2, 1}).op(0x89).hooks().op('t').op('R').op('s');
  std::string bytes(
      "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.");
  bytes += Pickle().int4(1001).stop().bytes();
  bytes += Pickle().op('}').stop().bytes();
  bytes += tree.stop().bytes();
  bytes += Pickle().op(']').text("7").op('a').stop().bytes();
  put_le<std::int64_t>(bytes, 4);
  return bytes + "0123456789abcdef";
}

struct NoChecksum {
  std::string name = {};
  std::string bytes = {};
};

class DamageWithoutChecksum : public testing::TestWithParam<NoChecksum> {
 protected:
  const std::string& whole_ = GetParam().bytes;
};

TEST_P(DamageWithoutChecksum, EveryFlippedByteGivesAnErrorOrDataOfTheFile) {
  const auto sound = content_of(whole_);
  ASSERT_TRUE(sound) << to_string(sound.error());
  std::size_t errors = 0;
  for (std::size_t i = 0; i < whole_.size(); ++i) {
    for (const char mask : {'\x01', '\x80', '\xff'}) {
      std::string bytes = whole_;
      bytes[i] = static_cast<char>(bytes[i] ^ mask);
      const auto content = content_of(bytes);
      errors += content ? 0 : 1;
      EXPECT_FALSE(!content && content.error().detail.empty()) << "byte " << i;
    }
  }
  EXPECT_GT(errors, whole_.size());
}

TEST_P(DamageWithoutChecksum, EveryTruncationGivesAnError) {
  for (std::size_t size = 0; size < whole_.size(); ++size) {
    const auto content = content_of(whole_.substr(0, size));
    ASSERT_FALSE(content) << size;
    EXPECT_FALSE(content.error().detail.empty()) << size;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Files,
    DamageWithoutChecksum,
    testing::Values(
        NoChecksum{"safetensors", safetensors_file()},
        NoChecksum{"legacy", legacy_file()}),
    [](const auto& param) { return param.param.name; });

} // namespace
} // namespace lockstep::ckpt
