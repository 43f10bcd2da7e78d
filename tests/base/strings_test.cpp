// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/base/strings.h"

#include <cmath>

#include <gmock/gmock.h>

namespace lockstep {
namespace {

TEST(Format, TakesEveryKindOfArgument) {
  EXPECT_EQ(
      format("{} {} {:.2f} {} {}", 1, 2U, 3.0, true, std::string("x")),
      "1 2 3.00 true x");
  EXPECT_EQ(format("{:.1f}", std::copysign(std::nan(""), -1)), "nan");
}

// tests/compile_fail shows that another number does not compile.
TEST(Format, CountsTheArgumentsOfAPattern) {
  using internal::argument_count;
  EXPECT_EQ(argument_count(""), 0);
  EXPECT_EQ(argument_count("{} of {:.1f} %"), 2);
  EXPECT_EQ(argument_count("{:>{}}|{:<{}}"), 4);
  EXPECT_EQ(argument_count("{0} {2:.0f} {0}"), 3);
  EXPECT_EQ(argument_count("{10}"), 11);
  EXPECT_EQ(argument_count("{{}} {{{}}}"), 1);
  EXPECT_EQ(argument_count("{"), std::nullopt);
  EXPECT_EQ(argument_count("{:>{}"), std::nullopt);
  EXPECT_EQ(argument_count("}"), std::nullopt);
  EXPECT_EQ(argument_count("{} {0}"), std::nullopt);
}

TEST(Shortest, ReadsBackAsTheSameNumberInPythonSpelling) {
  EXPECT_EQ(shortest(0.1F), "0.1");
  EXPECT_EQ(shortest(0.1), "0.1");
  EXPECT_EQ(shortest(1.0), "1.0");
  EXPECT_EQ(shortest(1e-05), "1e-05");
  EXPECT_EQ(shortest(2.3025851249694824F), "2.3025851");
  EXPECT_EQ(shortest(-0.0), "-0.0");
  EXPECT_EQ(shortest(std::copysign(std::nan(""), -1)), "nan");
}

TEST(Escape, MakesControlAndBrokenBytesVisible) {
  EXPECT_EQ(escape("a\x1b[31mb"), "a\\x1b[31mb");
  EXPECT_EQ(escape("\xff"), "\\xff");
  EXPECT_EQ(escape("\xc2\x9b"), "\\xc2\\x9b");
  EXPECT_EQ(escape("\xe4\xbd\xa0"), "\xe4\xbd\xa0");
  EXPECT_EQ(escape("\xe2\x80\xae"), "\\xe2\\x80\\xae");
  EXPECT_EQ(escape("\xe2\x81\xa6"), "\\xe2\\x81\\xa6");
  EXPECT_EQ(escape("\xe2\x80\xa6"), "\xe2\x80\xa6");
}

TEST(Escape, CutsLongText) {
  EXPECT_EQ(escape("abcdef", 3), "abc...");
}

TEST(Human, WritesSizesTimesAndThousands) {
  EXPECT_EQ(human_bytes(999), "999 B");
  EXPECT_EQ(human_bytes(1536), "1.5 KiB");
  EXPECT_EQ(human_seconds(64.4), "0:01:04");
  EXPECT_EQ(with_commas(11175370), "11,175,370");
  EXPECT_EQ(with_commas(999), "999");
}

TEST(DisplayWidth, CountsCharactersNotBytes) {
  EXPECT_EQ(display_width("abc"), 3);
  EXPECT_EQ(display_width("\xe2\x94\x81\xc3\xa4"), 2);
  EXPECT_EQ(padded("\xc3\xa4", 3), "\xc3\xa4  ");
  EXPECT_EQ(padded("abcd", 3), "abcd");
}

TEST(Nearest, FindsATypingMistakeAndNothingFar) {
  const std::vector<std::string> words{"--epochs", "--lr", "--output"};
  EXPECT_EQ(nearest("--epoch", words), "--epochs");
  EXPECT_EQ(nearest("--quantum", words), "");
  const std::vector<std::string> names{
      "adam",
      "cifar10",
      "mnist",
      "--lr",
      "--ema"};
  EXPECT_EQ(nearest("adma", names), "adam") << "two letters exchanged";
  EXPECT_EQ(nearest("cifar", names), "cifar10") << "its start";
  EXPECT_EQ(nearest("mnits", names), "mnist");
  EXPECT_EQ(nearest("nope", names), "");
  EXPECT_EQ(nearest("sgd", names), "");
  EXPECT_EQ(nearest("--foo", names), "");
  EXPECT_EQ(nearest("--la", names), "--lr");
}

TEST(LowerCase, ChangesLettersOfAsciiAlone) {
  EXPECT_EQ(lower_case("AZaz@[_1 \xc3\x84"), "azaz@[_1 \xc3\x84");
}

TEST(Split, KeepsEmptyParts) {
  EXPECT_THAT(split("a,,b", ','), testing::ElementsAre("a", "", "b"));
  EXPECT_THAT(split("", ','), testing::ElementsAre(""));
}

TEST(Utf8, EndsAtTheFirstByteThatIsNone) {
  EXPECT_EQ(utf8_prefix(""), 0U);
  EXPECT_EQ(utf8_prefix("a\xc3\xa4\xf0\x9f\x98\x80"), 7U);
  EXPECT_EQ(utf8_prefix("ab\xed\xa0\x80z"), 2U); // half a surrogate pair
  EXPECT_EQ(utf8_prefix("a\xc3"), 1U);
  EXPECT_TRUE(is_utf8(""));
  EXPECT_FALSE(is_utf8("\xc0\x80")); // an overlong NUL
}

TEST(Counted, AgreesWithItsNoun) {
  EXPECT_EQ(counted(0, "tensor"), "0 tensors");
  EXPECT_EQ(counted(1, "tensor"), "1 tensor");
  EXPECT_EQ(counted(11175, "tensor"), "11,175 tensors");
  EXPECT_EQ(counted(1, "entry", "entries"), "1 entry");
  EXPECT_EQ(counted(2, "entry", "entries"), "2 entries");
}

TEST(SomeNames, AreFiveAndACount) {
  std::vector<std::string> names{"a", "b\n", "c", "d", "e"};
  EXPECT_EQ(some_names({}), "");
  EXPECT_EQ(some_names(names), "'a', 'b\\x0a', 'c', 'd', 'e'");
  names.resize(1005, "x");
  EXPECT_EQ(some_names(names), "'a', 'b\\x0a', 'c', 'd', 'e' and 1,000 more");
}

} // namespace
} // namespace lockstep
