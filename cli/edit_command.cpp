// SPDX-License-Identifier: BSD-3-Clause
#include "cli/edit_command.h"

#include <utility>

#include <CLI/CLI.hpp>

#include "cli/arguments.h"
#include "cli/file_warnings.h"
#include "cli/flag_words.h"
#include "cli/input.h"
#include "cli/output.h"
#include "cli/target_format.h"
#include "cli/usage_errors.h"
#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/read_error.h"
#include "lockstep/ckpt/load/format_table.h"

namespace lockstep::cli {
namespace {

// Rows of a dry run; --json shows all.
constexpr std::uint64_t kMaxReportRows = 1000;

// A tensor or number that was picked by its name.
std::string alone_text(const ckpt::Edited& edited) {
  return edited.root.is_container()
             ? ""
             : format(
                   "the file is '{}' itself, without a name; pick its module "
                   "to keep one\n",
                   escape(edited.report.weights_key));
}

// What lies beside the weights of a second file.
std::string others_text(const ckpt::KeyReport& report) {
  return report.left_out.empty()
             ? ""
             : format(
                   "left out: {} of the second file; the first has its own, "
                   "or weights alone\n",
                   names_text(report.left_out));
}

void print_edit(
    const Common& common,
    const EditJob& job,
    const ckpt::Edited& edited,
    const Written& written) {
  const ckpt::KeyReport& report = edited.report;
  const auto records = records_without_place(
      job.records,
      ckpt::format_to_write(written.format)->writer);
  if (common.json) {
    Json result = ckpt::to_json(report);
    std::vector<std::string> left_out = report.left_out;
    left_out.insert(left_out.end(), records.begin(), records.end());
    if (!left_out.empty()) {
      result.set("left_out", Json::array(left_out));
    }
    set_written(result, written);
    print_result(job.schema, std::move(result));
    return;
  }
  print(
      (written.is_dry_run
           ? ckpt::to_text(report, kMaxReportRows) + "would have "
           : "") +
      ckpt::counts_text(report) + "\n" + in_flags(ckpt::prefixes_text(report)) +
      alone_text(edited) + others_text(report) +
      left_out_text(records, written.format) + wrote_text(written));
}

// FILE itself, unless there is another name.
Result<Target> target_of(const EditArgs& args) {
  Target target = args.target;
  if (target.path.empty()) {
    target.path = args.file;
  }
  if (target.path == "-" && args.file == "-") {
    return usage_error(
        "standard input cannot be changed in place",
        "name a file with --output");
  }
  return target;
}

Result<CheckedTarget> check_edit(
    const EditArgs& args,
    const EditJob& job,
    const Target& target,
    const ckpt::Checkpoint& file,
    const Common& common,
    const PathLock* lock) {
  LOCKSTEP_ASSIGN(
      std::string format,
      format_of_edit(file, args.file, args.target.path));
  std::vector<std::string> inputs{args.file};
  inputs.insert(inputs.end(), job.others.begin(), job.others.end());
  return CheckedTarget::check(
      target,
      {.format = std::move(format),
       .is_format_asked = args.target.path.empty(), // a name that is there
       .inputs = std::move(inputs),
       .own_input = job.own_input,
       .result = job.result,
       .limits = common.load.limits,
       .lock = lock});
}

// Where the format of the first file has a place for them.
Status add_records(ckpt::Checkpoint& file, const EditJob& job) {
  LOCKSTEP_ASSIGN(const std::string format, ckpt::writer_of(file));
  if (job.records.empty() ||
      !ckpt::format_to_write(format)->writer.keeps_records) {
    return {};
  }
  LOCKSTEP_ASSIGN(
      file.extra_records,
      ckpt::in_file(
          ckpt::merge_records(file.extra_records, job.records, job.merge),
          job.others.front()));
  return {};
}

} // namespace

Result<std::string> format_of_edit(
    const ckpt::Checkpoint& file,
    const std::string& input,
    const std::string& output) {
  LOCKSTEP_ASSIGN(std::string format, ckpt::writer_of(file, input));
  std::string named = format_by_name(output);
  const bool is_taken_out = ckpt::format_to_write(format)->writer.needs_file &&
                            !output.empty() && named != format;
  return is_taken_out && named == ckpt::SaveOptions().format
             ? std::move(named)
             : std::move(format);
}

Result<Written> write_edit(
    const CheckedTarget& target,
    const ckpt::Checkpoint& file,
    const ckpt::Value& root) {
  return target.format() == ckpt::format_of(file).writer.name
             ? target.rewrite(file, root)
             : target.save(file, root, {.extra_records = file.extra_records});
}

void add_edit(CLI::App& app, EditArgs& args, bool takes_more) {
  add_file(app, args.file);
  // Behind further arguments OUT could not be told from them.
  app.add_option(
      takes_more ? "-o,--output" : "OUT,-o,--output",
      args.target.path,
      "write here; without it FILE itself is replaced");
  add_namespace_flag(app, args.namespaces);
  add_target_flags(app, args.target);
}

void add_weights_key(CLI::App& app, std::string& key) {
  app.add_option(
      "--key",
      key,
      "entry that holds the weights; default: the usual names");
}

void add_namespace_flag(CLI::App& app, bool& chosen) {
  app.add_flag(
      "--namespace-as-dict",
      chosen,
      "write argparse.Namespace as a dict, which Python's safe loader takes");
}

Result<int>
run_edit(const EditArgs& args, const Common& common, const EditJob& job) {
  LOCKSTEP_ASSIGN(const Target place, target_of(args));
  LOCKSTEP_ASSIGN(const auto lock, lock_own_input(place, args.file));
  LOCKSTEP_ASSIGN(const Input input, Input::open(args.file));
  LOCKSTEP_ASSIGN(ckpt::Checkpoint file, input.load(common.load));
  warn_of_left_out(file);
  LOCKSTEP_ASSIGN(
      const auto target,
      check_edit(args, job, place, file, common, lock.get()));
  LOCKSTEP_ASSIGN(
      ckpt::Edited edited,
      ckpt::in_file(job.edit(file), input.name()));
  if (args.namespaces) {
    LOCKSTEP_ASSIGN(edited.root, ckpt::plain_namespaces(edited.root));
  }
  LOCKSTEP_TRY(add_records(file, job));
  LOCKSTEP_ASSIGN(const Written written, write_edit(target, file, edited.root));
  print_edit(common, job, edited, written);
  return 0;
}

} // namespace lockstep::cli
