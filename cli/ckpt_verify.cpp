// SPDX-License-Identifier: BSD-3-Clause
//
// `lockstep ckpt verify PATH...`: every CRC, bound and offset.
#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/color.h"
#include "cli/command.h"
#include "cli/file_list.h"
#include "cli/input.h"
#include "cli/output.h"
#include "lockstep/base/internal/caught.h"
#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/budget.h"
#include "lockstep/ckpt/core/read_error.h"
#include "lockstep/ckpt/inspect.h"
#include "lockstep/ckpt/verify.h"

namespace lockstep::cli {
namespace {

struct VerifyArgs {
  std::vector<std::string> paths = {};
  bool deep = false;
};

Json verify_finding_json(const ckpt::Finding& finding) {
  return Json::object()
      .set("code", finding.detail)
      .set("message", finding.message)
      .set("record", finding.record)
      .set("tensors", Json::array(finding.tensors));
}

Json verify_json(const ckpt::VerifyReport& report) {
  return Json::object()
      .set("records", report.records)
      .set("tensors", report.tensors)
      .set("checked_bytes", report.checked_bytes)
      .set("errors", Json::array(report.errors, verify_finding_json))
      .set("warnings", Json::array(report.warnings, verify_finding_json));
}

constexpr std::string_view kLimit = "E_LIMIT";

// What is no damage.
struct CodeLabel {
  ErrorCode code = ErrorCode::kUnsafe;
  std::string_view text = {};
};
constexpr std::array kCodeLabels{
    CodeLabel{ErrorCode::kUnsafe, "refused"},
    CodeLabel{ErrorCode::kUnsupported, "not read"}};

std::string_view label_of(ErrorCode code) {
  const auto* row = std::ranges::find(kCodeLabels, code, &CodeLabel::code);
  return row == kCodeLabels.end() ? "damaged" : row->text;
}

std::string findings_text(
    std::string_view kind,
    const std::vector<ckpt::Finding>& findings,
    bool color) {
  const bool are_errors = kind == "error";
  const Tone tone = are_errors ? Tone::kBad : Tone::kDoubtful;
  constexpr std::size_t kShown = 20;
  std::string text;
  for (std::size_t i = 0; i < findings.size() && i < kShown; ++i) {
    const ckpt::Finding& finding = findings[i];
    const std::string_view label = are_errors ? label_of(finding.code) : kind;
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

Error not_sound(const ckpt::VerifyReport& report, const std::string& path) {
  const auto damage =
      std::ranges::find_if(report.errors, &ckpt::Finding::is_damage);
  if (damage != report.errors.end()) {
    return {
        .code = ErrorCode::kCorrupt,
        .op = "ckpt.verify",
        .message = format(
            "the file is damaged: {} of {} records",
            std::ranges::count_if(report.errors, &ckpt::Finding::is_damage),
            report.records),
        .hint =
            "restore it from another copy, or go back to an older checkpoint",
        .path = path,
        .detail = damage->detail};
  }
  const ckpt::Finding& first = report.errors.front();
  if (first.detail == kLimit) {
    return {
        .code = ErrorCode::kUnsafe,
        .op = "ckpt.verify",
        .message = "the file asks for more than the limits allow",
        .hint = "'lockstep ckpt limits' lists them and the flags to raise them",
        .path = path,
        .detail = first.detail};
  }
  return {
      .code = first.code,
      .op = "ckpt.verify",
      .message = first.message,
      .hint = first.hint,
      .path = path,
      .record = first.record,
      .detail = first.detail};
}

Json not_finite_json(const ckpt::NotFinite& row) {
  return Json::object()
      .set("name", row.name)
      .set("nan", row.nan_count)
      .set("inf", row.inf_count);
}

Json deep_json(const ckpt::DeepCheck& deep) {
  return Json::object()
      .set("digest", deep.digest)
      .set("elements", deep.elements)
      .set("not_finite", Json::array(deep.not_finite, not_finite_json));
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
  return ckpt::in_file(
      ckpt::check_elements(file.root, ckpt::counting(options.limits, file)),
      input.name());
}

/// What was found in one file.
struct FileCheck {
  std::string name = {};
  ckpt::VerifyReport report = {};
  std::optional<ckpt::DeepCheck> deep = {};
  /// Why it is not sound.
  std::optional<Error> error = {};
  /// False if it could not even be opened.
  bool is_read = false;
};

Status check(
    const std::string& path,
    const VerifyArgs& args,
    const Common& common,
    FileCheck& check) {
  LOCKSTEP_ASSIGN(const Input input, Input::open(path));
  check.name = input.name();
  auto report = path == "-"
                    ? ckpt::verify(input.source(), input.name(), common.load)
                    : ckpt::verify(path, common.load);
  if (!report) {
    return std::move(report).error();
  }
  check.is_read = true;
  check.report = *std::move(report);
  if (!check.report.is_sound()) {
    return not_sound(check.report, check.name);
  }
  if (args.deep) {
    LOCKSTEP_ASSIGN(check.deep, check_deep(input, common));
  }
  return {};
}

FileCheck check_file(
    const std::string& path,
    const VerifyArgs& args,
    const Common& common) {
  FileCheck result{.name = path};
  Status status =
      caught("ckpt.verify", [&] { return check(path, args, common, result); });
  if (!status) {
    result.error = std::move(status).error();
    result.error->path =
        result.error->path.empty() ? result.name : result.error->path;
  }
  return result;
}

Json check_json(const FileCheck& check) {
  Json json = check.is_read ? verify_json(check.report) : Json();
  if (check.deep) {
    json.set("deep", deep_json(*check.deep));
  }
  return json;
}

std::string sound_text(const FileCheck& check) {
  return format(
      "{}, {}, {} checked",
      counted(check.report.records, "record"),
      counted(check.report.tensors, "tensor"),
      human_bytes(check.report.checked_bytes));
}

std::string check_findings(const FileCheck& check, bool color) {
  return findings_text("error", check.report.errors, color) +
         findings_text("warning", check.report.warnings, color);
}

// Warnings count with --strict.
int warning_status(const FileCheck& check, const Common& common) {
  return common.load.strict && !check.report.warnings.empty() ? 1 : 0;
}

int verify_one(const FileCheck& check, const Common& common) {
  constexpr const char* kVerifySchema = "lockstep.ckpt.verify/1";
  if (!common.json) {
    print(check_findings(check, common.color));
  }
  if (check.error) {
    return print_error(
        *check.error,
        kVerifySchema,
        common.json,
        check.is_read ? std::optional(check_json(check)) : std::nullopt);
  }
  if (common.json) {
    print_result(kVerifySchema, check_json(check));
  } else {
    print(
        format("sound: {}\n", sound_text(check)) +
        (check.deep ? deep_text(*check.deep) : ""));
  }
  return warning_status(check, common);
}

// A line for each file, then what was found in it.
std::string file_text(const FileCheck& check, bool color) {
  const std::string_view state = !check.error     ? "sound"
                                 : !check.is_read ? "unreadable"
                                                  : label_of(check.error->code);
  std::string text = paint(
      format("{:<10}", state),
      check.error ? Tone::kBad : Tone::kGood,
      color);
  text += format("  {}", escape(check.name, 200));
  if (check.is_read) {
    text += format("  ({})", sound_text(check));
  } else if (check.error) {
    text += "  " + escape(check.error->message, 200);
  }
  std::string below = check_findings(check, color);
  below += check.deep ? deep_text(*check.deep) : "";
  for (const std::string& line : split(below, '\n')) {
    text += line.empty() ? "" : "\n  " + line;
  }
  return text + "\n";
}

Result<int> verify(const VerifyArgs& args, Common common) {
  common.load.beside = ckpt::make_folder_facts();
  LOCKSTEP_ASSIGN(const FileList list, list_files(args.paths));
  if (!list.is_several) {
    return verify_one(check_file(list.files[0], args, common), common);
  }
  FileAnswers answers("ckpt.verify", "sound");
  int status = 0;
  for (const std::string& path : list.files) {
    const FileCheck check = check_file(path, args, common);
    if (!common.json) {
      print(file_text(check, common.color));
    }
    answers.add(check.name, check_json(check), check.error);
    status = std::max(status, warning_status(check, common));
  }
  status = std::max(
      status,
      answers.finish("lockstep.ckpt.verify.files/1", common.json));
  if (status == 0 && !common.json) {
    print(format("all {} files are sound\n", list.files.size()));
  }
  return status;
}

} // namespace

Runner setup_verify(CLI::App& app, const Common& common) {
  auto args = std::make_shared<VerifyArgs>();
  add_paths(app, args->paths);
  app.add_flag(
      "--deep",
      args->deep,
      "also read every element: digest, NaN, Inf");
  return [args, &common] { return verify(*args, common); };
}

} // namespace lockstep::cli
