// SPDX-License-Identifier: BSD-3-Clause
#include "cli/edit_command.h"

#include <string_view>
#include <utility>

#include <CLI/CLI.hpp>

#include "cli/input.h"
#include "cli/output.h"
#include "lockstep/base/strings.h"

namespace lockstep::cli {
namespace {

// Rows of a dry run; --json shows all.
constexpr std::uint64_t kMaxReportRows = 1000;

std::string method_text(const ckpt::RewriteReport& written) {
  return written.method == ckpt::RewriteMethod::kAppended
             ? format("in place, {} appended", human_bytes(written.bytes))
             : format("{} written", human_bytes(written.bytes));
}

void print_edit(
    const EditArgs& args,
    const Common& common,
    const EditJob& job,
    const ckpt::KeyReport& report,
    const ckpt::RewriteReport& written) {
  const std::string target = args.output.empty() ? args.file : args.output;
  if (common.json) {
    Json result = ckpt::to_json(report);
    result.set("output", target)
        .set("method", ckpt::method_name(written.method))
        .set("bytes_written", written.bytes);
    print_result(job.schema, std::move(result));
    return;
  }
  const std::string counts = ckpt::counts_text(report);
  if (args.dry_run) {
    print(
        ckpt::to_text(report, kMaxReportRows) +
        format("would have {}; nothing was written\n", counts));
  } else {
    print(format(
        "{}: {} ({})\n",
        escape(target, 200),
        counts,
        method_text(written)));
  }
}

} // namespace

void add_edit(CLI::App& app, EditArgs& args) {
  app.add_option("FILE", args.file, "checkpoint; - is standard input")
      ->required();
  app.add_option(
      "-o,--output",
      args.output,
      "write here; without it FILE itself is changed");
  app.add_flag("--dry-run", args.dry_run, "show the new keys, write nothing");
  app.add_flag("--force", args.force, "overwrite an output file that exists");
}

Status check_output(const EditArgs& args) {
  if (args.file == "-" && args.output.empty()) {
    return Error{
        .code = ErrorCode::kInvalidArgument,
        .op = "cli.args",
        .message = "standard input cannot be changed in place",
        .hint = "name a file with --output"};
  }
  if (args.output.empty() || args.force || args.dry_run ||
      ckpt::is_same_file(args.file, args.output) ||
      !real_fs().stat(args.output)) {
    return {};
  }
  return Error{
      .code = ErrorCode::kInvalidArgument,
      .op = "cli.args",
      .message = "the output file exists",
      .hint = "--force overwrites it",
      .path = args.output,
      .detail = "E_EXISTS"};
}

Result<ckpt::RewriteReport> write_edited(
    const EditArgs& args,
    const ckpt::Checkpoint& file,
    const ckpt::Value& root,
    InPlace in_place) {
  return ckpt::rewrite(
      file,
      root,
      args.output.empty() ? args.file : args.output,
      {.input = args.file, .may_append = in_place == InPlace::kAppend});
}

Result<int>
run_edit(const EditArgs& args, const Common& common, const EditJob& job) {
  LOCKSTEP_TRY(check_output(args));
  LOCKSTEP_ASSIGN(const Input input, Input::open(args.file));
  LOCKSTEP_ASSIGN(ckpt::Checkpoint file, input.load());
  auto edited = job.edit(file.root);
  if (!edited) {
    edited.error().path = input.name();
    return std::move(edited).error();
  }
  ckpt::RewriteReport written{.method = ckpt::RewriteMethod::kNothing};
  if (!args.dry_run) {
    LOCKSTEP_ASSIGN(
        written,
        write_edited(args, file, edited->root, job.in_place));
  }
  print_edit(args, common, job, edited->report, written);
  keep_until_exit(std::move(file));
  keep_until_exit(*std::move(edited));
  return 0;
}

} // namespace lockstep::cli
