// SPDX-License-Identifier: BSD-3-Clause
//
// The completion script of bash, run by bash itself, and the manual.
#include <array>
#include <cstdio>

#include <gmock/gmock.h>

#include "lockstep/base/strings.h"

namespace lockstep {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsSupersetOf;
using testing::Not;

const std::string kFolder = LOCKSTEP_BINARY_DIR "/bin";

std::string output_of(const std::string& command) {
  std::FILE* pipe = ::popen(command.c_str(), "r");
  std::string text;
  std::array<char, 4096> block{};
  for (std::size_t n = 0;
       (n = std::fread(block.data(), 1, block.size(), pipe)) != 0;) {
    text.append(block.data(), n);
  }
  EXPECT_EQ(::pclose(pipe), 0) << command;
  return text;
}

// What bash offers for the last word.
std::vector<std::string> offers(const std::string& words) {
  const std::string script =
      "export PATH=" + kFolder +
      ":$PATH; source <(lockstep completion bash); COMP_WORDS=(lockstep " +
      words +
      "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _lockstep; "
      "printf \"%s\\n\" \"${COMPREPLY[@]}\"";
  return split(output_of("bash -c '" + script + "'"), '\n');
}

TEST(BashCompletion, OffersCommands) {
  EXPECT_THAT(offers("\"\""), Contains("ckpt"));
  EXPECT_THAT(offers("tr"), Contains("train"));
  EXPECT_THAT(offers("ckpt ver"), Contains("verify"));
  EXPECT_THAT(offers("ckpt ver"), Not(Contains("ls")));
}

TEST(BashCompletion, OffersFlagsOfTheCommand) {
  const auto flags = offers("ckpt ls --f");
  EXPECT_THAT(flags, Contains("--filter"));
  EXPECT_THAT(flags, Not(Contains("--rtol")));
  EXPECT_THAT(offers("ckpt diff --r"), Contains("--rtol"));
  EXPECT_THAT(offers("ckpt ls --max-p"), Contains("--max-pickle-bytes"));
}

TEST(BashCompletion, OffersFilesAndTheNamesInThem) {
  EXPECT_THAT(
      offers("ckpt ls testdata/valid/tiny.p"),
      Contains("testdata/valid/tiny.pt"));
  EXPECT_THAT(
      offers("ckpt show testdata/valid/views.pt tra"),
      Contains("transposed"));
}

TEST(BashCompletion, OffersTheValuesOfAFlag) {
  EXPECT_THAT(offers("ckpt ls --sort \"\""), Contains("dtype"));
  EXPECT_THAT(offers("ckpt ls --color = al"), ElementsAre("always", ""));
  EXPECT_THAT(
      offers("completion \"\""),
      ElementsAre("bash", "zsh", "fish", ""));
  EXPECT_THAT(offers("ckpt ls --filter test"), ElementsAre("", ""));
}

TEST(BashCompletion, KnowsTheFlagsAndValuesOfTrain) {
  EXPECT_THAT(offers("train --lr-s"), Contains("--lr-scheduler"));
  EXPECT_THAT(offers("train --opt ad"), ElementsAre("adam", "adamw", ""));
  EXPECT_THAT(offers("train --model resnet1"), Contains("resnet18"));
  EXPECT_THAT(offers("train --data fa"), Contains("fashion-mnist"));
  EXPECT_THAT(offers("train --resume \"\""), IsSupersetOf({"auto", "tests"}));
  EXPECT_THAT(offers("train --data-dir testd"), ElementsAre("testdata", ""));
  EXPECT_THAT(offers("train --initial-checkpoint READ"), Contains("README.md"));
  EXPECT_THAT(offers("train --epochs \"\""), ElementsAre("", ""));
}

TEST(BashCompletion, KnowsTheModelsThatSummaryTakes) {
  EXPECT_THAT(offers("summary vgg11"), ElementsAre("vgg11", "vgg11_bn", ""));
}

TEST(BashCompletion, KnowsWhatHelpExplains) {
  EXPECT_THAT(offers("help ex"), ElementsAre("explain", ""));
  EXPECT_THAT(offers("help ckpt str"), ElementsAre("strip", ""));
  EXPECT_THAT(offers("ckpt help str"), ElementsAre("strip", ""));
}

TEST(Manual, HasAPageForTheFlagsOfTrain) {
  const std::string page = output_of(kFolder + "/lockstep man train");
  EXPECT_TRUE(page.starts_with(".TH lockstep\\-train 1 "));
  EXPECT_THAT(page, HasSubstr("\\-\\-lr\\-scheduler"));
  EXPECT_THAT(page, HasSubstr("sgd, adam or adamw [default: sgd]"));
}

TEST(Manual, IsAPageThatRoffReads) {
  const std::string page = output_of(kFolder + "/lockstep man");
  EXPECT_TRUE(page.starts_with(".TH LOCKSTEP 1 "));
  for (const char* part : {".SH NAME", ".SH SYNOPSIS", ".SH EXIT STATUS"}) {
    EXPECT_THAT(page, HasSubstr(part));
  }
  EXPECT_THAT(page, HasSubstr("\\-\\-max\\-pickle\\-bytes"));
  for (const std::string& line : split(page, '\n')) {
    const bool is_macro = line.starts_with('.');
    EXPECT_TRUE(!is_macro || line.size() >= 3) << line;
    EXPECT_FALSE(line.starts_with('\'')) << line;
  }
}

} // namespace
} // namespace lockstep
