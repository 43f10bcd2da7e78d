// SPDX-License-Identifier: BSD-3-Clause
//
// `lockstep ckpt scan PATH...`: does a file name code?
#include <algorithm>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/color.h"
#include "cli/command.h"
#include "cli/input.h"
#include "cli/output.h"
#include "cli/sarif.h"
#include "lockstep/base/strings.h"
#include "lockstep/ckpt/scan.h"

namespace lockstep::cli {
namespace {

struct ScanArgs {
  std::vector<std::string> paths = {};
  bool sarif = false;
  bool verbose = false;
};

using ckpt::ScanReport;
using ckpt::Verdict;

Json finding_json(const ckpt::ScanFinding& finding) {
  return Json::object()
      .set("name", finding.name)
      .set("dangerous", finding.is_dangerous)
      .set("nested", finding.is_nested)
      .set("record", finding.record)
      .set("offset", finding.offset)
      .set("count", finding.count);
}

Json note_json(const Error& note) {
  return Json::object()
      .set("code", note.detail)
      .set("message", note.message)
      .set("record", note.record)
      .set("offset", note.offset ? Json(*note.offset) : Json());
}

Json scan_json(const ScanReport& report) {
  return Json::object()
      .set("path", report.path)
      .set("format", report.format)
      .set("verdict", ckpt::verdict_name(report.verdict))
      .set("pickles", report.pickles)
      .set("names", report.names)
      .set(
          "script_classes",
          report.script_classes ? Json(*report.script_classes) : Json())
      .set("code", report.script_classes ? Json("not judged") : Json())
      .set("operators", report.operators ? Json(*report.operators) : Json())
      .set("findings", Json::array(report.findings, finding_json))
      .set("notes", Json::array(report.notes, note_json));
}

Json reports_json(const std::vector<ScanReport>& reports) {
  return Json::object()
      .set("verdict", ckpt::verdict_name(ckpt::worst(reports)))
      .set("files", Json::array(reports, scan_json));
}

std::string place_text(const std::string& record, std::uint64_t offset) {
  return record.empty() ? format("offset {:#x}", offset)
                        : format("{} {:#x}", escape(record, 100), offset);
}

Tone tone_of(Verdict verdict) {
  return verdict == Verdict::kFound   ? Tone::kBad
         : verdict == Verdict::kClean ? Tone::kGood
                                      : Tone::kDoubtful;
}

std::string scan_text(const ScanReport& report, bool color) {
  std::string text = format(
      "{}  {}",
      paint(
          format("{:<10}", ckpt::verdict_name(report.verdict)),
          tone_of(report.verdict),
          color),
      escape(report.path, 200));
  if (!report.format.empty()) {
    text += format(
        "  ({}, {}, {})",
        report.format,
        counted(report.pickles, "pickle"),
        counted(report.names, "name"));
  }
  text += "\n";
  if (report.script_classes) {
    text += format(
        "{:<10}    TorchScript program, {}; its code may run when LibTorch "
        "loads it, and is not judged\n",
        "",
        counted(*report.script_classes, "class", "classes"));
  }
  if (report.operators) {
    text += format(
        "{:<10}    exported program, {}; its graph runs when it is called\n",
        "",
        counted(*report.operators, "operator"));
  }
  for (const ckpt::ScanFinding& finding : report.findings) {
    const bool is_operator =
        finding.name.starts_with("torch.ops.") || finding.name.starts_with('#');
    text += format(
        "{:<10}    {}  {}  {}{}\n",
        "",
        finding.is_dangerous ? "runs code"
        : is_operator        ? "needs operator"
                             : "needs Python class",
        escape(finding.name, 100),
        place_text(finding.record, finding.offset),
        finding.is_nested ? " in a string" : "");
  }
  for (const Error& note : report.notes) {
    text += format(
        "{:<10}    {}: {}  {}\n",
        "",
        note.detail.empty() ? error_info(note.code).name : note.detail,
        escape(note.message, 200),
        place_text(note.record, note.offset.value_or(0)));
  }
  return text;
}

bool has_unlikely_name(const ScanReport& report) {
  return std::ranges::any_of(report.notes, [](const Error& note) {
    return note.detail == "W_UNLIKELY";
  });
}

std::string
reports_text(const std::vector<ScanReport>& reports, bool verbose, bool color) {
  std::string text;
  std::uint64_t other = 0;
  std::uint64_t unlikely = 0;
  for (const ScanReport& report : reports) {
    if (report.verdict == Verdict::kOther && !verbose) {
      ++other;
      unlikely += has_unlikely_name(report) ? 1 : 0;
    } else {
      text += scan_text(report, color);
    }
  }
  if (other != 0) {
    text += format(
        "{} of no format with pickles\n",
        counted(other, "file is", "files are"));
  }
  if (unlikely != 0) {
    text += format(
        "{} like a pickle but {} taken for a text: -v shows {}\n",
        counted(unlikely, "of them starts", "of them start"),
        unlikely == 1 ? "is" : "are",
        unlikely == 1 ? "it" : "them");
  }
  return text;
}

Result<std::vector<ScanReport>> scan_one(
    const std::string& path,
    const ckpt::Limits& limits) {
  if (path != "-") {
    return ckpt::scan_path(path, {.limits = limits});
  }
  LOCKSTEP_ASSIGN(const Input input, Input::open(path));
  ScanReport report = ckpt::scan(input.source(), input.name(), limits);
  if (report.verdict == Verdict::kOther) {
    report.verdict = Verdict::kUnreadable; // as a file that was named
  }
  return std::vector{std::move(report)};
}

// Of several paths one that cannot be opened does not stop the others.
Result<std::vector<ScanReport>> scan_all(
    const ScanArgs& args,
    const ckpt::Limits& limits) {
  std::vector<ScanReport> reports;
  for (const std::string& path : args.paths) {
    auto found = scan_one(path, limits);
    if (!found && args.paths.size() == 1) {
      return std::move(found).error();
    }
    if (!found) {
      reports.push_back(
          {.path = path,
           .verdict = Verdict::kUnreadable,
           .notes = {std::move(found).error()}});
      continue;
    }
    std::ranges::move(*found, std::back_inserter(reports));
  }
  return reports;
}

std::string summary_text(const std::vector<ScanReport>& reports) {
  if (reports.size() < 2) {
    return "";
  }
  std::vector<std::string> parts;
  for (const Verdict verdict :
       {Verdict::kClean, Verdict::kFound, Verdict::kUnreadable}) {
    const auto count =
        std::ranges::count(reports, verdict, &ScanReport::verdict);
    if (count != 0) {
      parts.push_back(format("{} {}", count, ckpt::verdict_name(verdict)));
    }
  }
  return join(parts, ", ") + "\n";
}

int exit_status(Verdict verdict) {
  const int unreadable = error_info(ErrorCode::kCorrupt).exit_code;
  return verdict == Verdict::kFound        ? 1
         : verdict == Verdict::kUnreadable ? unreadable
                                           : 0;
}

Result<int> run_scan(const ScanArgs& args, const Common& common) {
  LOCKSTEP_ASSIGN(const auto reports, scan_all(args, common.load.limits));
  if (args.sarif) {
    print(sarif_json(reports).dump(2) + "\n");
  } else if (common.json) {
    print_result("lockstep.ckpt.scan/1", reports_json(reports));
  } else {
    print(
        reports_text(reports, args.verbose, common.color) +
        summary_text(reports));
  }
  return exit_status(ckpt::worst(reports));
}

} // namespace

Runner setup_scan(CLI::App& app, const Common& common) {
  auto args = std::make_shared<ScanArgs>();
  app.add_option("PATH", args->paths, "files and folders; - is standard input")
      ->required();
  app.add_flag("--sarif", args->sarif, "print SARIF 2.1.0 for code scanners");
  app.add_flag(
      "-v,--verbose",
      args->verbose,
      "also list files of other formats");
  return [args, &common] { return run_scan(*args, common); };
}

} // namespace lockstep::cli
