// SPDX-License-Identifier: BSD-3-Clause
//
// Texts of protocol 0, read as CPython's unpickler reads them.
#include <random>

#include <gtest/gtest.h>

#include "lockstep/base/fs.h"
#include "lockstep/ckpt/pickle/pickle_text.h"
#include "tests/support/hex.h"
#include "tests/support/python.h"
#include "tests/support/scratch_dir.h"

namespace lockstep::ckpt {
namespace {

// Lines of characters that mean something in an escape, and others.
std::vector<std::string> random_texts(std::size_t count) {
  constexpr std::string_view kLetters = "\\\\\\\\uuUU0041dD8fFxn\"'\xff\xe9";
  std::mt19937 random(7);
  std::vector<std::string> texts{
      "a\\\\u0041",
      "\\\\",
      "\\",
      "\\u00e9",
      "\\\\\\u0041",
      "\\ud83d\\ude00",
      "\\U0010ffff",
      "\\U00110000"};
  while (texts.size() < count) {
    std::string text;
    for (std::size_t length = random() % 24; text.size() < length;) {
      text += kLetters[random() % kLetters.size()];
      if (random() % 8 == 0) { // whole ones are rare otherwise
        text += random() % 2 == 0 ? "\\u00e9" : "\\U0001f600";
      }
    }
    texts.push_back(std::move(text));
  }
  return texts;
}

TEST(PickleText, ABackslashTakesTheNextCharacterWithIt) {
  EXPECT_EQ(unescape_unicode("a\\\\u0041"), "a\\\\u0041");
  EXPECT_EQ(unescape_unicode("a\\\\\\u0041"), "a\\\\A");
  EXPECT_EQ(unescape_unicode("\\"), "\\");
  EXPECT_EQ(unescape_unicode("\\n\\"), "\\n\\");
  EXPECT_EQ(unescape_unicode("\\u004"), std::nullopt);
}

TEST(PickleTextOracle, EscapesAreDecodedAsCPythonDoes) {
  const test::ScratchDir dir;
  std::string lines;
  std::string ours;
  for (const std::string& text : random_texts(20'000)) {
    lines += text + "\n";
    const auto plain = unescape_unicode(text);
    ours += plain ? "=" + test::hex(*plain) + "\n" : "refused\n";
  }
  const auto file = real_fs().create(dir / "lines", 0644);
  ASSERT_TRUE(file);
  ASSERT_TRUE((*file)->write(as_byte_span(lines)));
  EXPECT_TRUE(
      test::run_python("ckpt_unicode_escapes.py", {dir / "lines"}) == ours);
}

} // namespace
} // namespace lockstep::ckpt
