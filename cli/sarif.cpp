// SPDX-License-Identifier: BSD-3-Clause
#include "cli/sarif.h"

#include <array>
#include <cctype>
#include <string>
#include <string_view>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/base/version.h"

namespace lockstep::cli {
namespace {

struct Rule {
  std::string_view id = {};
  std::string_view level = {};
  std::string_view text = {};
};

constexpr Rule kDangerous{
    "dangerous-name",
    "error",
    "A pickle names something that runs code or reaches the system."};
constexpr Rule kUnknown{
    "unknown-name",
    "warning",
    "A pickle needs a Python class that is not on the allow list."};
constexpr Rule kNote{
    "not-scanned",
    "warning",
    "A part of the file is hidden, damaged or could not be scanned."};

// A relative reference: what a URI does not allow is written as %XX.
std::string uri_of(std::string_view path) {
  std::string uri;
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    const bool is_plain =
        std::isalnum(byte) != 0 ||
        std::string_view("/._-~").find(c) != std::string_view::npos;
    uri += is_plain ? std::string(1, c) : format("%{:02X}", byte);
  }
  return uri;
}

Json location(const std::string& path, std::uint64_t offset) {
  Json physical = Json::object();
  physical.set("artifactLocation", Json::object().set("uri", uri_of(path)))
      .set("region", Json::object().set("byteOffset", offset));
  return Json::array().push(
      Json::object().set("physicalLocation", std::move(physical)));
}

Json result(const Rule& rule, const std::string& message, Json locations) {
  return Json::object()
      .set("ruleId", rule.id)
      .set("level", rule.level)
      .set("message", Json::object().set("text", message))
      .set("locations", std::move(locations));
}

std::string inside(const std::string& record) {
  return record.empty() ? "" : format(" in {}", escape(record, 200));
}

void add_results(const ckpt::ScanReport& report, Json& results) {
  for (const ckpt::ScanFinding& finding : report.findings) {
    results.push(result(
        finding.is_dangerous ? kDangerous : kUnknown,
        format(
            "the pickle{} {} {}",
            inside(finding.record),
            finding.is_dangerous ? "names" : "needs Python class",
            escape(finding.name, 200)),
        location(report.path, finding.offset)));
  }
  if (report.verdict == ckpt::Verdict::kOther) {
    return;
  }
  for (const Error& note : report.notes) {
    results.push(result(
        kNote,
        format(
            "{}{}: {}",
            note.detail,
            inside(note.record),
            escape(note.message, 200)),
        location(report.path, note.offset.value_or(0))));
  }
}

Json rules() {
  Json array = Json::array();
  for (const Rule& rule : {kDangerous, kUnknown, kNote}) {
    array.push(
        Json::object()
            .set("id", rule.id)
            .set("shortDescription", Json::object().set("text", rule.text)));
  }
  return array;
}

} // namespace

Json sarif_json(const std::vector<ckpt::ScanReport>& reports) {
  Json results = Json::array();
  for (const ckpt::ScanReport& report : reports) {
    add_results(report, results);
  }
  Json driver = Json::object();
  driver.set("name", "lockstep ckpt scan")
      .set("version", kVersion)
      .set("rules", rules());
  Json run = Json::object();
  run.set("tool", Json::object().set("driver", std::move(driver)))
      .set("results", std::move(results));
  return Json::object()
      .set("$schema", "https://json.schemastore.org/sarif-2.1.0.json")
      .set("version", "2.1.0")
      .set("runs", Json::array().push(std::move(run)));
}

} // namespace lockstep::cli
