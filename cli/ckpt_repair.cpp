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
#include "lockstep/ckpt/core/read_error.h"
#include "lockstep/ckpt/inspect.h"

namespace lockstep::cli {
namespace {

struct RepairArgs {
  std::string file = {};
  Target target = {};
};

Json lost_row(const ckpt::LostPart& row) {
  return Json::object().set("name", row.name).set("reason", row.reason);
}

Json salvage_json(const ckpt::SalvageReport& report, const Written& written) {
  Json json = Json::object();
  json.set("rescued", report.rescued)
      .set("lost", Json::array(report.lost, lost_row))
      .set("lost_records", Json::array(report.lost_records, lost_row))
      .set("warnings", Json::array(report.warnings, ckpt::to_string))
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
  LOCKSTEP_ASSIGN(
      const ckpt::SalvageReport report,
      ckpt::in_file(
          ckpt::salvage(
              input.source(),
              args.target.path,
              options,
              target.save_options(),
              target.fs()),
          input.name()));
  LOCKSTEP_ASSIGN(const Written written, target.written(report.rescued));
  if (common.json) {
    print_result("lockstep.ckpt.repair/1", salvage_json(report, written));
  } else {
    print(salvage_text(report, written));
  }
  return report.lost.empty() && report.lost_records.empty() ? 0 : 1;
}

} // namespace

Runner setup_repair(CLI::App& app, const Common& common) {
  auto args = std::make_shared<RepairArgs>();
  add_file(app, args->file);
  add_output(app, args->target.path);
  add_target_flags(app, args->target);
  return [args, &common] { return run_repair(*args, common); };
}

} // namespace lockstep::cli
