// SPDX-License-Identifier: BSD-3-Clause
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "cli_train/command_flags.h"
#include "cli_train/commands.h"
#include "cli_train/eval_files.h"
#include "cli_train/eval_job.h"
#include "cli_train/eval_text.h"
#include "lockstep/base/internal/answer.h"
#include "lockstep/base/strings.h"
#include "lockstep/train/settings/internal/commands.h"

namespace lockstep::cli_train {
namespace {

constexpr const train::TrainCommand& kEval = train::kTrainCommands[4];
static_assert(kEval.name == "eval");

constexpr std::string_view kEvalAbout =
    "Tests a trained model: the best checkpoint of a run folder, or a\n"
    "checkpoint file, on the data of its run. Prints all metrics of the task,\n"
    "a row for each class, and which class is taken for which.";

constexpr std::array<std::string_view, 3> kParts{"test", "train", "all"};
constexpr std::int64_t kMostWorst = 10'000;

} // namespace

int eval_command(Arguments args) {
  const CommandFlags flags(kEval, args);
  if (flags.has("--help")) {
    flags.print_help(kEvalAbout);
    return 0;
  }
  const std::vector<std::string>& words = flags.arguments();
  if (words.size() != 1) {
    flags.fail(
        words.empty()
            ? std::string("no run or checkpoint is named")
            : format("one run at a time; '{}' is left over", escape(words[1])),
        "'lockstep eval runs/animals'");
  }
  const EvalAnswer answer = evaluate_run(
      {.model = words.front(),
       .data = flags.text("--data"),
       .part = flags.choice("--part", kParts),
       .batch_size = flags.number("--batch-size", 0),
       .workers = flags.number("--workers", 1, 1024),
       .worst = flags.number("--worst", 25, kMostWorst),
       .devices = flags.devices()});
  const std::string folder = flags.text("--output");
  std::vector<std::string> names;
  if (!folder.empty()) {
    names = write_eval_files(answer, folder);
  }
  if (flags.has("--json")) {
    print(answer_json("lockstep.eval/1", eval_json(answer)).dump() + "\n");
    return 0;
  }
  std::string text = eval_text(answer);
  if (!names.empty()) {
    text += format("\n{}: {}\n", folder, join(names, ", "));
  }
  print(text);
  return 0;
}

} // namespace lockstep::cli_train
