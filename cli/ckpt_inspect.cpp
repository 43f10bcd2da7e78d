// SPDX-License-Identifier: BSD-3-Clause
//
// `lockstep ckpt FILE`: one screen about a checkpoint.
#include <CLI/CLI.hpp>

#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/input.h"
#include "cli/output.h"
#include "lockstep/base/strings.h"
#include "lockstep/ckpt/inspect.h"

namespace lockstep::cli {
namespace {

struct InspectArgs {
  std::string file = {};
};

Result<int> run_inspect(const InspectArgs& args, const Common& common) {
  LOCKSTEP_ASSIGN(const Input input, Input::open(args.file));
  LOCKSTEP_ASSIGN(const ckpt::Checkpoint file, input.load(common.load));
  LOCKSTEP_ASSIGN(const ckpt::Summary summary, ckpt::summarize(file));
  if (common.json) {
    print_result("lockstep.ckpt.inspect/1", ckpt::to_json(summary));
  } else {
    print(ckpt::to_text(summary, input.name()));
  }
  return 0;
}

} // namespace

Runner setup_inspect(CLI::App& app, const Common& common) {
  auto args = std::make_shared<InspectArgs>();
  add_file(app, args->file);
  return [args, &common] { return run_inspect(*args, common); };
}

} // namespace lockstep::cli
