// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli_train/command_flags.h"
#include "cli_train/commands.h"
#include "cli_train/data_text.h"
#include "lockstep/base/error.h"
#include "lockstep/base/fs.h"
#include "lockstep/base/internal/numbers.h"
#include "lockstep/base/strings.h"
#include "lockstep/data/augment.h"
#include "lockstep/data/open_dataset.h"
#include "lockstep/train/settings/internal/commands.h"

namespace lockstep::cli_train {
namespace {

constexpr const train::TrainCommand& kData = train::kTrainCommands[5];
static_assert(kData.name == "data");

constexpr std::string_view kDataAbout =
    "Shows what 'lockstep train --data DIR' reads: counts of each class, "
    "sizes,\n"
    "mean and std, damaged files, and files that are in both parts. All\n"
    "samples are read once. Exits with 0, or the status of the worst damage.";

/// Units: pixels of both sides that the sheet's images of files have.
constexpr std::int64_t kSheetSize = 128;

double val_share(const CommandFlags& flags) {
  if (!flags.has("--val-split")) {
    return SplitOptions().val_share;
  }
  const std::string text = flags.text("--val-split");
  const auto share = parse_number<double>(text);
  if (!share || !(*share > 0 && *share < 1)) {
    flags.fail(format(
        "--val-split: expected a number between 0 and 1, got '{}'",
        escape(text)));
  }
  return *share;
}

// That of the worst damaged sample.
int status_of(const std::vector<Error>& problems) {
  int status = 0;
  for (const Error& error : problems) {
    status = std::max(status, error_info(error.code).exit_code);
  }
  return status;
}

} // namespace

int data_command(Arguments args) {
  const CommandFlags flags(kData, args);
  if (flags.has("--help")) {
    flags.print_help(kDataAbout);
    return 0;
  }
  if (flags.arguments().size() != 1) {
    flags.fail(
        flags.arguments().empty()
            ? std::string("no folder or file is named")
            : format(
                  "one folder or file at a time; '{}' is left over",
                  escape(flags.arguments()[1])));
  }
  DataReport report{.path = flags.arguments().front()};
  const SplitOptions split{.val_share = val_share(flags)};
  report.kind =
      flags.has("--data") ? flags.text("--data") : dataset_at(report.path);
  const DatasetParts data = open_dataset(
      report.kind,
      report.path,
      internal::plain_options(
          report.kind,
          {.image_size = kSheetSize,
           .split = split,
           .target = flags.text("--target")}));
  report.notes = data.notes;
  report.has_files = data.has_files;
  report.facts = internal::look_at(data);
  if (flags.has("--sheet")) {
    internal::ContactSheet sheet = internal::contact_sheet(data);
    report.sheet_path = flags.text("--sheet");
    write_png(report.sheet_path, sheet.image);
    report.sheet_samples = std::move(sheet.samples);
  }
  print(
      flags.has("--json") ? data_json(report).dump() + "\n"
                          : data_text(report));
  return status_of(report.facts.problems);
}

} // namespace lockstep::cli_train
