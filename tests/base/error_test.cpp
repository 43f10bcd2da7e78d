// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/base/error.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <fstream>
#include <map>
#include <memory>

#include <gmock/gmock.h>

#include "lockstep/base/internal/errno_error.h"
#include "lockstep/base/strings.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;

const Error kFull{
    .code = ErrorCode::kUnsafe,
    .op = "ckpt.read",
    .message = "global 'os.system' is not on the allow list",
    .hint = "run 'lockstep ckpt scan model.pth' to list every global",
    .path = "model.pth",
    .record = "archive/data.pkl",
    .offset = 0x1f4};

TEST(ErrorText, HasTheWholeForm) {
  EXPECT_EQ(
      to_string(kFull),
      "[ckpt.read] global 'os.system' is not on the allow list (model.pth, "
      "record archive/data.pkl, offset 0x1f4). Hint: run 'lockstep ckpt scan "
      "model.pth' to list every global.");
}

TEST(ErrorText, LeavesOutWhatIsAbsent) {
  EXPECT_EQ(to_string({.message = "stop"}), "stop.");
  EXPECT_EQ(to_string({.op = "a.b", .message = "stop."}), "[a.b] stop.");
  EXPECT_EQ(to_string({.message = "m", .offset = 0}), "m (offset 0x0).");
  EXPECT_EQ(
      to_string({.message = "m", .hint = "did you mean 'x'?"}),
      "m. Hint: did you mean 'x'?");
}

TEST(ErrnoError, ChoosesClassAndDetail) {
  const Error missing = errno_error("fs.open", "a", ENOENT);
  EXPECT_EQ(missing.code, ErrorCode::kNotFound);
  const Error full = errno_error("fs.write", "a", ENOSPC);
  EXPECT_EQ(full.code, ErrorCode::kIo);
  EXPECT_EQ(full.detail, "E_NO_SPACE");
  EXPECT_EQ(
      to_string(full),
      "[fs.write] No space left on device (a). Hint: free some space, or write "
      "to another disk.");
  EXPECT_EQ(errno_error("fs.read", "a", EIO).detail, "");
  const Error large = errno_error("fs.write", "a", EFBIG);
  EXPECT_EQ(large.detail, "E_NO_SPACE");
  EXPECT_NE(large.hint.find("ulimit -f"), std::string::npos);
  for (const int number : {EACCES, EPERM, EROFS}) {
    const Error kept = errno_error("fs.open", "a", number);
    EXPECT_EQ(kept.detail, "E_PERMISSION");
    EXPECT_NE(kept.hint, "");
  }
}

TEST(Exception, CarriesTheErrorAndItsText) {
  try {
    raise(kFull);
  } catch (const std::exception& exception) {
    EXPECT_EQ(exception.what(), to_string(kFull));
    EXPECT_EQ(dynamic_cast<const Exception&>(exception).error(), kFull);
  }
}

TEST(Check, NamesTheBrokenCondition) {
  LOCKSTEP_CHECK(true);
  try {
    LOCKSTEP_CHECK(1 + 1 == 3);
    FAIL();
  } catch (const Exception& exception) {
    EXPECT_EQ(exception.error().code, ErrorCode::kInternal);
    EXPECT_THAT(exception.error().message, HasSubstr("1 + 1 == 3"));
  }
}

Result<int> half(int value) {
  if (value % 2 != 0) {
    return Error{.code = ErrorCode::kInvalidArgument, .message = "odd"};
  }
  return value / 2;
}

Result<std::string> quarter(int value) {
  LOCKSTEP_ASSIGN(const int once, half(value));
  LOCKSTEP_ASSIGN(const int twice, half(once));
  return std::to_string(twice);
}

Status check_even(int value) {
  LOCKSTEP_TRY(half(value));
  return {};
}

TEST(Result, HoldsAValueOrAnError) {
  EXPECT_EQ(half(4).value(), 2);
  EXPECT_FALSE(half(3).has_value());
  EXPECT_EQ(half(3).error().message, "odd");
  EXPECT_THROW(static_cast<void>(half(3).value()), Exception);
}

TEST(Result, MacrosPassTheFirstErrorOn) {
  EXPECT_EQ(*quarter(8), "2");
  EXPECT_EQ(quarter(8)->size(), 1U);
  EXPECT_EQ(quarter(6).error().message, "odd");
  EXPECT_TRUE(check_even(2));
  EXPECT_EQ(check_even(1).error().code, ErrorCode::kInvalidArgument);
  EXPECT_THROW(check_even(1).value(), Exception);
}

TEST(Result, PassesAnErrorOnWithoutACopy) {
  Status status = Error{.message = "a message that is too long to be inside"};
  const Error* const error = &status.error();
  const auto pass = [&]() -> Result<std::string> {
    LOCKSTEP_TRY(status);
    return std::string();
  };
  const auto passed = pass();
  EXPECT_EQ(&passed.error(), error);
  EXPECT_EQ(sizeof(Status), sizeof(void*));
}

TEST(Result, MovesOutWhatCannotBeCopied) {
  Result<std::unique_ptr<int>> owner = std::make_unique<int>(7);
  EXPECT_EQ(**owner, 7);
  const std::unique_ptr<int> taken = *std::move(owner);
  EXPECT_EQ(*taken, 7);
}

// One section of docs/errors.md: the facts that the table also holds.
struct Section {
  std::string meaning = {};
  std::string exit_code = {};
  std::string text = {};
};

std::map<std::string, Section> read_sections() {
  std::ifstream file("docs/errors.md");
  constexpr std::string_view kMeaning = "- Meaning: ";
  constexpr std::string_view kExitCode = "- Exit code: ";
  std::map<std::string, Section> sections;
  std::string name;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("## ")) {
      name = line.substr(3);
    } else if (line.starts_with(kMeaning)) {
      sections[name].meaning = line.substr(kMeaning.size());
    } else if (line.starts_with(kExitCode)) {
      sections[name].exit_code = line.substr(kExitCode.size());
    } else if (!name.empty()) {
      sections[name].text += line;
    }
  }
  return sections;
}

TEST(ErrorTable, EqualsTheDocument) {
  auto sections = read_sections();
  for (const ErrorInfo& info : error_table()) {
    const Section section = sections[std::string(info.name)];
    EXPECT_EQ(section.meaning, info.meaning) << info.name;
    EXPECT_EQ(section.exit_code, std::to_string(info.exit_code)) << info.name;
    EXPECT_THAT(section.text, HasSubstr("What to do:")) << info.name;
    std::string anchor(info.name);
    std::ranges::transform(anchor, anchor.begin(), [](unsigned char c) {
      return static_cast<char>(std::tolower(c));
    });
    EXPECT_EQ(info.anchor, anchor);
  }
  EXPECT_EQ(sections.size(), error_table().size());
}

TEST(ErrorTable, IsInTheOrderOfTheCodes) {
  for (const ErrorInfo& info : error_table()) {
    EXPECT_EQ(&error_info(info.code), &info);
  }
}

} // namespace
} // namespace lockstep
