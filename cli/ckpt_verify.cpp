// SPDX-License-Identifier: BSD-3-Clause
//
// `lockstep ckpt verify FILE`: every CRC, bound and offset; with --salvage, or
// as `repair`, what is sound goes into a new file.
#include <utility>

#include <CLI/CLI.hpp>

#include "cli/arguments.h"
#include "cli/color.h"
#include "cli/command.h"
#include "cli/input.h"
#include "cli/output.h"
#include "lockstep/base/strings.h"
#include "lockstep/ckpt/inspect/deep_check.h"
#include "lockstep/ckpt/inspect/salvage.h"
#include "lockstep/ckpt/verify.h"

namespace lockstep::cli {
namespace {

struct VerifyArgs {
  std::string file = {};
  bool deep = false;
  std::string salvage = {};
  bool force = false;
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

Json verify_json(const ckpt::VerifyReport& report) {
  return Json::object()
      .set("records", report.records)
      .set("tensors", report.tensors)
      .set("checked_bytes", report.checked_bytes)
      .set("errors", findings_json(report.errors))
      .set("warnings", findings_json(report.warnings));
}

std::string findings_text(
    std::string_view label,
    const std::vector<ckpt::Finding>& findings,
    bool color) {
  const Tone tone = label == "damaged" ? Tone::kBad : Tone::kDoubtful;
  constexpr std::size_t kShown = 20;
  std::string text;
  for (std::size_t i = 0; i < findings.size() && i < kShown; ++i) {
    const ckpt::Finding& finding = findings[i];
    text += format(
        "{} {}: {}{}\n",
        paint(format("{:<10}", label), tone, color),
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

Json deep_json(const ckpt::DeepCheck& deep) {
  Json rows = Json::array();
  for (const ckpt::NotFinite& row : deep.not_finite) {
    rows.push(Json::object()
                  .set("name", row.name)
                  .set("nan", row.nan_count)
                  .set("inf", row.inf_count));
  }
  return Json::object()
      .set("digest", deep.digest)
      .set("elements", deep.elements)
      .set("not_finite", std::move(rows));
}

std::string deep_text(const ckpt::DeepCheck& deep) {
  std::string text;
  for (const ckpt::NotFinite& row : deep.not_finite) {
    text += format(
        "{:<10} {}: {} NaN, {} Inf\n",
        "not finite",
        escape(row.name, 200),
        with_commas(row.nan_count),
        with_commas(row.inf_count));
  }
  return text + format("{:<10} {}\n", "digest", deep.digest);
}

Result<ckpt::DeepCheck> check_deep(const Input& input, const Common& common) {
  ckpt::LoadOptions options = common.load;
  options.strict = false;
  options.check_crc = false; // was compared before
  LOCKSTEP_ASSIGN(const ckpt::Checkpoint file, input.load(options));
  auto deep = ckpt::check_elements(file.root, options.limits);
  if (!deep) {
    deep.error().path = input.name();
  }
  return deep;
}

Result<int> verify(const VerifyArgs& args, const Common& common) {
  constexpr const char* kVerifySchema = "lockstep.ckpt.verify/1";
  LOCKSTEP_ASSIGN(const Input input, Input::open(args.file));
  auto report = args.file == "-"
                    ? ckpt::verify(input.source(), input.name(), common.load)
                    : ckpt::verify(args.file, common.load);
  if (!report) {
    report.error().path = input.name();
    return std::move(report).error();
  }
  if (!common.json) {
    print(
        findings_text("damaged", report->errors, common.color) +
        findings_text("warning", report->warnings, common.color));
  }
  if (!report->is_sound()) {
    return print_error(
        damaged(*report, input.name()),
        kVerifySchema,
        common.json,
        verify_json(*report));
  }
  Json json = verify_json(*report);
  std::string text = format(
      "sound: {} records, {} tensors, {} checked\n",
      report->records,
      report->tensors,
      human_bytes(report->checked_bytes));
  if (args.deep) {
    LOCKSTEP_ASSIGN(const auto deep, check_deep(input, common));
    json.set("deep", deep_json(deep));
    text += deep_text(deep);
  }
  common.json ? print_result(kVerifySchema, std::move(json)) : print(text);
  return common.load.strict && !report->warnings.empty() ? 1 : 0;
}

Json salvage_json(const ckpt::SalvageReport& report, const std::string& out) {
  Json lost = Json::array();
  for (const ckpt::LostTensor& row : report.lost) {
    lost.push(Json::object().set("name", row.name).set("reason", row.reason));
  }
  return Json::object()
      .set("out", out)
      .set("rescued", report.rescued)
      .set("lost", std::move(lost))
      .set("without_directory", report.is_without_directory)
      .set("flat", report.is_flat);
}

std::string salvage_text(
    const ckpt::SalvageReport& report,
    const std::string& out) {
  std::string text;
  for (const ckpt::LostTensor& row : report.lost) {
    text += format(
        "{:<10} {}: {}\n",
        "lost",
        escape(row.name, 200),
        escape(row.reason, 200));
  }
  text += report.is_without_directory
              ? "the directory was lost: records were found one by one\n"
              : "";
  text += report.is_flat ? "classes are not written: the new file is one dict "
                           "of names and tensors\n"
                         : "";
  return text + format(
                    "rescued: {} of {} tensors, in {}\n",
                    report.rescued,
                    report.rescued + report.lost.size(),
                    escape(out, 200));
}

Result<int> salvage(const VerifyArgs& args, const Common& common) {
  if (real_fs().stat(args.salvage) && !args.force) {
    return Error{
        .code = ErrorCode::kInvalidArgument,
        .op = "ckpt.repair",
        .message = "the output exists",
        .hint = "name another file, or add --force",
        .path = args.salvage,
        .detail = "E_EXISTS"};
  }
  ckpt::LoadOptions options = common.load;
  options.strict = false;
  auto report = ckpt::salvage(args.file, args.salvage, options);
  if (!report) {
    Error error = std::move(report).error();
    error.path = error.path.empty() ? args.file : error.path;
    return error;
  }
  if (common.json) {
    print_result("lockstep.ckpt.repair/1", salvage_json(*report, args.salvage));
  } else {
    print(salvage_text(*report, args.salvage));
  }
  return report->lost.empty() ? 0 : 1;
}

} // namespace

Runner setup_verify(CLI::App& app, const Common& common) {
  auto args = std::make_shared<VerifyArgs>();
  add_file(app, args->file);
  app.add_flag(
      "--deep",
      args->deep,
      "also read every element: digest, NaN, Inf");
  app.add_option(
      "--salvage",
      args->salvage,
      "write what is sound in a damaged zip file to this file");
  app.add_flag("--force", args->force, "overwrite the file of --salvage");
  return [args, &common] {
    return args->salvage.empty() ? verify(*args, common)
                                 : salvage(*args, common);
  };
}

Runner setup_repair(CLI::App& app, const Common& common) {
  auto args = std::make_shared<VerifyArgs>();
  add_file(app, args->file);
  app.add_option("OUT", args->salvage, "file to write")->required();
  app.add_flag("--force", args->force, "overwrite OUT");
  return [args, &common] { return salvage(*args, common); };
}

} // namespace lockstep::cli
