// SPDX-License-Identifier: BSD-3-Clause
#include <gmock/gmock.h>

#include "lockstep/ckpt/byte_source.h"
#include "lockstep/ckpt/model.h"
#include "lockstep/ckpt/zip/zip_writer.h"
#include "tests/support/memory_fs.h"

namespace lockstep::ckpt {
namespace {

using testing::HasSubstr;

TEST(ClassSources, AreThoseOfALegacyModel) {
  const auto file = load("testdata/valid/legacy_whole_2017.pt");
  ASSERT_TRUE(file);
  const auto sources = class_sources(*file, nullptr);
  ASSERT_TRUE(sources);
  ASSERT_EQ(sources->size(), 2U);
  EXPECT_THAT(sources->at(0).text, HasSubstr("return self.fc(x)"));
}

TEST(ClassSources, AreThoseOfATarModel) {
  const auto file = load("testdata/valid/tar_whole_model.pth");
  ASSERT_TRUE(file) << to_string(file.error());
  ASSERT_EQ(file->class_sources.size(), 1U);
  EXPECT_EQ(file->class_sources[0].name, "model.Net");
  EXPECT_EQ(file->class_sources[0].file, "/home/me/model.py");
}

TEST(ClassSources, AreTheCodeOfAScriptArchive) {
  MemoryFs fs;
  {
    auto out = fs.create("m.pt", 0644);
    ASSERT_TRUE(out);
    ZipWriter zip(**out, "m");
    ASSERT_TRUE(zip.add("code/__torch__/net.py", as_byte_span("x = 1\n")));
    ASSERT_TRUE(zip.add("code/__torch__/net.py.debug_pkl", ByteSpan()));
    ASSERT_TRUE(zip.finish());
    ASSERT_TRUE((*out)->close());
  }
  const auto source = open_source("m.pt", {}, fs);
  ASSERT_TRUE(source);
  const auto code = class_sources(Checkpoint{.format = "torchscript"}, *source);
  ASSERT_TRUE(code) << to_string(code.error());
  ASSERT_EQ(code->size(), 1U);
  EXPECT_EQ(code->at(0).name, "code/__torch__/net.py");
  EXPECT_EQ(code->at(0).text, "x = 1\n");
}

TEST(ClassSources, AreNoneInAPlainCheckpoint) {
  const auto file = load("testdata/valid/tiny.pt");
  ASSERT_TRUE(file);
  EXPECT_TRUE(class_sources(*file, nullptr)->empty());
}

} // namespace
} // namespace lockstep::ckpt
