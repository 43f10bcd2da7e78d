// SPDX-License-Identifier: BSD-3-Clause
//
// What `lockstep` says about lockstep-train, without LibTorch, against
// lockstep-train itself.
#include "lockstep/train/settings/internal/commands.h"

#include <algorithm>
#include <regex>
#include <set>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "cli_train/flags.h"
#include "lockstep/base/strings.h"
#include "lockstep/data/open_dataset.h"
#include "lockstep/models/model.h"
#include "tests/support/shell.h"

namespace lockstep::cli_train {
namespace {

using test::run_shell;
using ::testing::HasSubstr;

constexpr const char* kBin = "'" LOCKSTEP_BINARY_DIR "/bin/";

std::vector<std::string> suggestions(std::string_view key) {
  return split(train::find_key(key)->suggestions, '|');
}

TEST(Suggestions, AreTheNamesOfTheRegistries) {
  EXPECT_EQ(suggestions("model"), model_names());
  EXPECT_EQ(suggestions("data"), dataset_names());
}

TEST(Commands, AreListedAndHaveHelp) {
  const std::string all = run_shell(std::string(kBin) + "lockstep-train'").out;
  for (const train::TrainCommand& command : train::kTrainCommands) {
    EXPECT_THAT(all, HasSubstr(format("  {:<8} ", command.name)));
    const auto help =
        run_shell(format("{}lockstep-train' {} --help", kBin, command.name));
    EXPECT_EQ(help.status, 0) << command.name;
    EXPECT_THAT(help.out, HasSubstr(format("lockstep {}", command.name)));
    const auto page =
        run_shell(format("{}lockstep' man {}", kBin, command.name));
    EXPECT_EQ(page.status, 0) << page.err;
  }
}

// One line of findings, each of a kind that the doctor knows.
TEST(Facts, AreWhatTheDoctorShows) {
  const auto told = run_shell(format("{}lockstep-train' --facts", kBin));
  EXPECT_EQ(told.status, 0) << told.err;
  const auto findings = nlohmann::json::parse(told.out)["findings"];
  const auto doctor = run_shell(format("{}lockstep' doctor --json", kBin));
  const auto shown = nlohmann::json::parse(doctor.out)["result"]["findings"];
  std::vector<std::string> names;
  for (const auto& finding : findings) {
    names.push_back(finding["name"].get<std::string>());
    EXPECT_NE(std::find(shown.begin(), shown.end(), finding), shown.end())
        << finding;
  }
  for (const char* const name :
       {"version", "folder", "build", "threads", "bfloat16", "host"}) {
    EXPECT_THAT(names, ::testing::Contains(name));
  }
}

// Long flags at the start of an entry; "\-" is roff's hyphen.
std::set<std::string> flags_of(std::string text, const std::string& entry) {
  text = std::regex_replace(text, std::regex(R"(\\-)"), "-");
  std::set<std::string> flags;
  const std::regex pattern(entry);
  for (std::sregex_iterator at(text.begin(), text.end(), pattern), end;
       at != end;
       ++at) {
    flags.insert((*at)[1]);
  }
  return flags;
}

TEST(Commands, TheManualHasTheFlagsOfTheHelp) {
  const auto documented = flags_of(
      run_shell(std::string(kBin) + "lockstep' man train").out,
      R"(fB(--[a-z-]+))");
  auto taken = flags_of(help_text(), R"(\n  (?:-[a-z],)?(--[a-z-]+))");
  taken.erase("--help");
  EXPECT_EQ(documented, taken);
}

TEST(Commands, ExamplesAreCommandLines) {
  for (const std::string_view example : train::kTrainCommands[0].examples) {
    const auto words = run_shell(
        "lockstep() { shift; printf '%s\\n' \"$@\"; }; " +
        std::string(example));
    auto args = split(words.out, '\n');
    args.pop_back();
    train::TrainConfig config;
    train::SettingSources sources;
    EXPECT_NO_THROW(apply(parse_command_line(args), config, sources))
        << example;
  }
}

} // namespace
} // namespace lockstep::cli_train
