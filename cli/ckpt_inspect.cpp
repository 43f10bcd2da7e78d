// SPDX-License-Identifier: BSD-3-Clause
//
// `lockstep ckpt FILE`: one screen about a checkpoint.
#include <utility>
#include <vector>

#include "cli/command.h"
#include "cli/input.h"
#include "cli/output.h"
#include "lockstep/base/strings.h"
#include "lockstep/ckpt/summary.h"

namespace lockstep::cli {
namespace {

// A missing file may be a mistyped command.
Error explain_missing(Error error, const std::string& file) {
  std::vector<std::string> names;
  for (const Command& command : commands()) {
    if (command.group == "ckpt") {
      names.emplace_back(command.name);
    }
  }
  const std::string near = nearest(file, names);
  if (error.code == ErrorCode::kNotFound && !near.empty()) {
    error.hint = format("did you mean 'lockstep ckpt {}'?", near);
  }
  return error;
}

} // namespace

Result<int> run_inspect(const Request& request) {
  auto input = Input::open(request.file);
  if (!input) {
    return explain_missing(std::move(input).error(), request.file);
  }
  LOCKSTEP_ASSIGN(const ckpt::Checkpoint file, input->load());
  LOCKSTEP_ASSIGN(const ckpt::Summary summary, ckpt::summarize(file));
  if (request.json) {
    print_result("lockstep.ckpt.inspect/1", ckpt::to_json(summary));
  } else {
    print(ckpt::to_text(summary, input->name()));
  }
  // Names that could run code are a finding.
  return summary.unsafe_names.empty() ? 0 : 1;
}

} // namespace lockstep::cli
