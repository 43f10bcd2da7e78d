// SPDX-License-Identifier: BSD-3-Clause
//
// `lockstep ckpt repair FILE OUT`: what is sound in a damaged file goes into a
// new one.
#include <utility>

#include <CLI/CLI.hpp>

#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/input.h"
#include "cli/output.h"
#include "cli/target.h"
#include "lockstep/base/strings.h"
#include "lockstep/ckpt/inspect.h"

namespace lockstep::cli {
namespace {

struct RepairArgs {
  std::string file = {};
  Target target = {};
};

Json lost_json(const std::vector<ckpt::LostPart>& lost) {
  Json rows = Json::array();
  for (const ckpt::LostPart& row : lost) {
    rows.push(Json::object().set("name", row.name).set("reason", row.reason));
  }
  return rows;
}

Json warnings_json(const std::vector<ckpt::Warning>& warnings) {
  Json rows = Json::array();
  for (const ckpt::Warning& warning : warnings) {
    rows.push(to_string(warning));
  }
  return rows;
}

Json salvage_json(const ckpt::SalvageReport& report, const Written& written) {
  Json json = Json::object();
  json.set("rescued", report.rescued)
      .set("lost", lost_json(report.lost))
      .set("lost_records", lost_json(report.lost_records))
      .set("warnings", warnings_json(report.warnings))
      .set("foreign_bytes", report.foreign_bytes)
      .set("without_directory", report.is_without_directory)
      .set("flat", report.is_flat);
  set_written(json, written);
  return json;
}

std::string lost_text(
    const std::vector<ckpt::LostPart>& lost,
    std::string_view what) {
  std::string text;
  for (const ckpt::LostPart& row : lost) {
    text += format(
        "{:<10} {}{}: {}\n",
        "lost",
        what,
        escape(row.name, 200),
        escape(row.reason, 200));
  }
  return text;
}

std::string salvage_text(
    const ckpt::SalvageReport& report,
    const Written& written) {
  std::string text =
      lost_text(report.lost, "") + lost_text(report.lost_records, "record ");
  for (const ckpt::Warning& warning : report.warnings) {
    text += format("{:<10} {}\n", "warning", to_string(warning));
  }
  text += report.foreign_bytes == 0
              ? ""
              : format(
                    "{} left out\n",
                    counted(
                        report.foreign_bytes,
                        "foreign byte in front of the archive was",
                        "foreign bytes in front of the archive were"));
  text += report.is_without_directory
              ? "the file's directory was lost: records were found one by one\n"
              : "";
  text += report.is_flat ? "classes are not written: the new file is one dict "
                           "of names and tensors\n"
                         : "";
  return text +
         format(
             "rescued: {} of {}\n",
             with_commas(report.rescued),
             counted(report.rescued + report.lost.size(), "tensor")) +
         wrote_text(written);
}

Result<int> run_repair(const RepairArgs& args, const Common& common) {
  LOCKSTEP_ASSIGN(
      const auto target,
      CheckedTarget::check(
          args.target,
          {.format = "pt",
           .inputs = {args.file},
           .result = "what can be rescued",
           .limits = common.load.limits}));
  LOCKSTEP_ASSIGN(const Input input, Input::open(args.file));
  if (input.source() == nullptr) {
    return Error{
        .code = ErrorCode::kUnsupported,
        .op = "ckpt.repair",
        .message = "a folder cannot be repaired",
        .hint = "name a file in it",
        .path = input.name(),
        .detail = "E_NOT_REGULAR"};
  }
  ckpt::LoadOptions options = common.load;
  options.strict = false;
  auto report = ckpt::salvage(
      input.source(),
      args.target.dry_run ? "" : args.target.path,
      options,
      target.save_options());
  if (!report) {
    Error error = std::move(report).error();
    error.path = error.path.empty() ? input.name() : error.path;
    return error;
  }
  LOCKSTEP_ASSIGN(const Written written, target.written(report->rescued));
  if (common.json) {
    print_result("lockstep.ckpt.repair/1", salvage_json(*report, written));
  } else {
    print(salvage_text(*report, written));
  }
  return report->lost.empty() && report->lost_records.empty() ? 0 : 1;
}

} // namespace

Runner setup_repair(CLI::App& app, const Common& common) {
  auto args = std::make_shared<RepairArgs>();
  add_file(app, args->file);
  app.add_option(
         "OUT,-o,--output",
         args->target.path,
         "file to write, also as -o OUT")
      ->required();
  add_target_flags(app, args->target);
  return [args, &common] { return run_repair(*args, common); };
}

} // namespace lockstep::cli
