// SPDX-License-Identifier: BSD-3-Clause
//
// `lockstep ckpt verify FILE`: every CRC, bound and offset.
#include <utility>

#include <CLI/CLI.hpp>

#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/input.h"
#include "cli/output.h"
#include "lockstep/base/strings.h"
#include "lockstep/ckpt/verify.h"

namespace lockstep::cli {
namespace {

struct Args {
  std::string file = {};
  bool strict = false;
};

Json findings_json(const std::vector<ckpt::Finding>& findings) {
  Json array = Json::array();
  for (const ckpt::Finding& finding : findings) {
    Json tensors = Json::array();
    for (const std::string& name : finding.tensors) {
      tensors.push(name);
    }
    array.push(Json::object()
                   .set("code", finding.detail)
                   .set("message", finding.message)
                   .set("record", finding.record)
                   .set("tensors", std::move(tensors)));
  }
  return array;
}

Json report_json(const ckpt::VerifyReport& report) {
  return Json::object()
      .set("records", report.records)
      .set("tensors", report.tensors)
      .set("checked_bytes", report.checked_bytes)
      .set("errors", findings_json(report.errors))
      .set("warnings", findings_json(report.warnings));
}

std::string findings_text(
    std::string_view label,
    const std::vector<ckpt::Finding>& findings) {
  constexpr std::size_t kShown = 20;
  std::string text;
  for (std::size_t i = 0; i < findings.size() && i < kShown; ++i) {
    const ckpt::Finding& finding = findings[i];
    text += format(
        "{:<10} {}: {}{}\n",
        label,
        finding.detail,
        finding.record.empty() ? "" : escape(finding.record, 60) + ": ",
        escape(finding.message, 200));
    for (std::size_t t = 0; t < finding.tensors.size() && t < kShown; ++t) {
      text += format("{:<10}   tensor {}\n", "", escape(finding.tensors[t]));
    }
  }
  if (findings.size() > kShown) {
    text += format("{:<10} ... {} more\n", "", findings.size() - kShown);
  }
  return text;
}

Error damaged(const ckpt::VerifyReport& report, const std::string& path) {
  return {
      .code = ErrorCode::kCorrupt,
      .op = "ckpt.verify",
      .message = format(
          "the file is damaged: {} of {} records",
          report.errors.size(),
          report.records),
      .hint = "restore it from another copy, or go back to an older checkpoint",
      .path = path,
      .detail = report.errors.front().detail};
}

Result<int> run(const Args& args, const Common& common) {
  LOCKSTEP_ASSIGN(const Input input, Input::open(args.file));
  auto report = ckpt::verify(input.source(), input.name());
  if (!report) {
    report.error().path = input.name();
    return std::move(report).error();
  }
  constexpr const char* kSchema = "lockstep.ckpt.verify/1";
  if (!common.json) {
    print(
        findings_text("damaged", report->errors) +
        findings_text("warning", report->warnings));
  }
  if (!report->is_sound()) {
    return print_error(
        damaged(*report, input.name()),
        kSchema,
        common.json,
        report_json(*report));
  }
  if (common.json) {
    print_result(kSchema, report_json(*report));
  } else {
    print(format(
        "sound: {} records, {} tensors, {} checked\n",
        report->records,
        report->tensors,
        human_bytes(report->checked_bytes)));
  }
  return args.strict && !report->warnings.empty() ? 1 : 0;
}

} // namespace

Runner setup_verify(CLI::App& app, const Common& common) {
  auto args = std::make_shared<Args>();
  add_file(app, args->file);
  app.add_flag("--strict", args->strict, "warnings give exit status 1");
  return [args, &common] { return run(*args, common); };
}

} // namespace lockstep::cli
