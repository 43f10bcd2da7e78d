// SPDX-License-Identifier: BSD-3-Clause
//
// `lockstep doctor [FOLDER]`: what this machine has, and what stands in the way
// of training on it. Status 1 where something would fail.
#include "cli/doctor.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <utility>

#include <CLI/CLI.hpp>

#include "cli/color.h"
#include "cli/command.h"
#include "cli/output.h"
#include "lockstep/base/strings.h"
#include "lockstep/base/version.h"

namespace lockstep::cli {
namespace {

using Examination = Findings (*)(const DoctorPlaces&);

Findings examine_lockstep(const DoctorPlaces& /*places*/) {
  return {
      {.group = "lockstep", .name = "version", .value = std::string(kVersion)}};
}

constexpr std::array<Examination, 6> kExaminations{
    examine_lockstep,
    examine_torch,
    examine_processor,
    examine_memory,
    examine_disk,
    examine_network};

std::string_view health_name(Health health) {
  return kHealthNames.at(static_cast<std::size_t>(health));
}

std::size_t health_count(const Findings& findings, Health health) {
  return static_cast<std::size_t>(
      std::ranges::count(findings, health, &Finding::health));
}

std::string doctor_summary(const Findings& findings) {
  const std::size_t problems = health_count(findings, Health::kProblem);
  const std::size_t warnings = health_count(findings, Health::kWarning);
  if (problems + warnings == 0) {
    return "Nothing stands in the way.\n";
  }
  return format(
      "{} and {}: what to do stands below each.\n",
      counted(problems, "problem"),
      counted(warnings, "warning"));
}

Tone doctor_tone(Health health) {
  return health == Health::kProblem ? Tone::kBad
         : health == Health::kOk    ? Tone::kGood
                                    : Tone::kDoubtful;
}

std::string doctor_text(const Findings& findings, bool color) {
  int width = 0;
  for (const Finding& finding : findings) {
    width = std::max(width, display_width(finding.name));
  }
  std::string text;
  std::string_view group;
  for (const Finding& finding : findings) {
    if (finding.group != group) {
      group = finding.group;
      text += format("{}\n", group);
    }
    constexpr int kHealthWidth = 9;
    text += format(
        "  {}{}{}\n",
        paint(
            padded(std::string(health_name(finding.health)), kHealthWidth),
            doctor_tone(finding.health),
            color),
        padded(finding.name, width + 2),
        finding.value);
    if (!finding.remedy.empty()) {
      text += format("           -> {}\n", finding.remedy);
    }
  }
  return text + "\n" + doctor_summary(findings);
}

Json doctor_finding_json(const Finding& finding) {
  return Json::object()
      .set("group", finding.group)
      .set("name", finding.name)
      .set("value", finding.value)
      .set("health", health_name(finding.health))
      .set("remedy", finding.remedy);
}

Json doctor_json(const Findings& findings) {
  return Json::object()
      .set("findings", Json::array(findings, doctor_finding_json))
      .set("problems", health_count(findings, Health::kProblem))
      .set("warnings", health_count(findings, Health::kWarning));
}

} // namespace

Runner setup_doctor(CLI::App& app, const Common& common) {
  auto places = std::make_shared<DoctorPlaces>();
  app.add_option(
      "FOLDER",
      places->folder,
      "where runs would be written; its disk is measured");
  app.add_option("--root", places->root, "in front of /proc and /sys")
      ->group(kHiddenGroup);
  return [places, &common]() -> Result<int> {
    Findings findings;
    for (const Examination examine : kExaminations) {
      std::ranges::move(examine(*places), std::back_inserter(findings));
    }
    if (common.json) {
      print_result("lockstep.doctor/1", doctor_json(findings));
    } else {
      print(doctor_text(findings, common.color));
    }
    return health_count(findings, Health::kProblem) == 0 ? 0 : 1;
  };
}

} // namespace lockstep::cli
