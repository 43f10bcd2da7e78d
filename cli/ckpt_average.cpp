// SPDX-License-Identifier: BSD-3-Clause
//
// `lockstep ckpt average A B C -o OUT`: the mean of the weights of several
// files.
#include <algorithm>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/command.h"
#include "cli/convert_choice.h"
#include "cli/edit_command.h"
#include "cli/file_warnings.h"
#include "cli/input.h"
#include "cli/output.h"
#include "cli/target_format.h"
#include "lockstep/base/strings.h"
#include "lockstep/ckpt/edit.h"
#include "lockstep/ckpt/load/format_table.h"
#include "lockstep/ckpt/walk.h"

namespace lockstep::cli {
namespace {

struct AverageArgs {
  std::vector<std::string> files = {};
  std::string key = {};
  Target target = {};
};

Result<CheckedTarget> check_target(
    const AverageArgs& args,
    const ckpt::Checkpoint& last,
    const Common& common) {
  const std::string named = format_by_name(args.target.path);
  const bool is_program =
      last.program != nullptr && named == ckpt::format_of(last).writer.name;
  if (!is_program) {
    LOCKSTEP_TRY(check_format(named));
  }
  return CheckedTarget::check(
      args.target,
      {.format = named,
       .inputs = args.files,
       .own_input = OwnInput::kStays,
       .result = "the mean of the weights",
       .limits = common.load.limits});
}

void print_averaged(
    const AverageArgs& args,
    const Common& common,
    const ckpt::Averaged& mean,
    const Chosen& chosen,
    const Written& written) {
  if (common.json) {
    Json json = Json::object();
    json.set("files", args.files.size())
        .set("averaged", mean.averaged)
        .set("kept", Json::array(mean.kept))
        .set("left_out", Json::array(left_out_names(chosen)));
    set_written(json, written);
    print_result(
        "lockstep.ckpt.average/1",
        with_warnings(std::move(json), chosen.warnings));
    return;
  }
  std::string text = format(
      "mean of {} in {}\n",
      counted(mean.averaged, "tensor"),
      counted(args.files.size(), "file"));
  if (!mean.kept.empty()) {
    text += format(
        "from the last file, since no mean is taken of integers and of what is "
        "no entry: {}\n",
        some_names(mean.kept));
  }
  print_warnings(chosen.warnings);
  print(text + left_out_text(chosen, written.format) + wrote_text(written));
}

// Nothing for the program itself, all of which is kept.
Result<Chosen>
choose_mean(ckpt::Averaged& mean, bool is_program, std::string_view to) {
  if (is_program) {
    return Chosen{.root = mean.root};
  }
  LOCKSTEP_ASSIGN(Chosen chosen, choose_all(mean.weights, to));
  if (ckpt::format_to_write(to)->writer.is_tensors_only) {
    LOCKSTEP_ASSIGN(const auto apart, ckpt::unnamed_tensors(mean.weights));
    std::erase_if(mean.kept, [&apart](const std::string& name) {
      return std::ranges::find(apart, name) != apart.end();
    });
  }
  return chosen;
}

Result<int> run_average(const AverageArgs& args, const Common& common) {
  std::vector<ckpt::NamedRoot> roots;
  ckpt::Checkpoint last;
  for (const std::string& path : args.files) {
    LOCKSTEP_ASSIGN(const Input input, Input::open(path));
    LOCKSTEP_ASSIGN(last, input.load(common.load));
    warn_of_left_out(last);
    roots.push_back({.name = input.name(), .root = last.root});
  }
  LOCKSTEP_ASSIGN(const auto target, check_target(args, last, common));
  LOCKSTEP_ASSIGN(
      auto mean,
      ckpt::average(roots, args.key, common.load.limits.max_expanded_bytes));
  const bool is_program =
      target.format() == ckpt::format_of(last).writer.name &&
      last.program != nullptr;
  LOCKSTEP_ASSIGN(
      const Chosen chosen,
      choose_mean(mean, is_program, target.format()));
  LOCKSTEP_ASSIGN(
      const Written written,
      is_program ? target.rewrite(last, mean.root)
                 : target.save(last, mean.weights));
  print_averaged(args, common, mean, chosen, written);
  return 0;
}

} // namespace

Runner setup_average(CLI::App& app, const Common& common) {
  auto args = std::make_shared<AverageArgs>();
  app.add_option("FILE", args->files, "checkpoints of one model, the last last")
      ->required();
  app.add_option("-o,--output", args->target.path, "file to write")->required();
  add_weights_key(app, args->key);
  add_target_flags(app, args->target);
  return [args, &common] { return run_average(*args, common); };
}

} // namespace lockstep::cli
