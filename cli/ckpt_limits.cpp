// SPDX-License-Identifier: BSD-3-Clause
//
// `lockstep ckpt limits`: what a file may ask for, and the flags to allow more.
#include <utility>

#include <CLI/CLI.hpp>

#include "cli/command.h"
#include "cli/output.h"
#include "cli/reading_flags.h"
#include "lockstep/base/strings.h"
#include "lockstep/ckpt/checkpoint.h"

namespace lockstep::cli {
namespace {

Json fixed_row(const ckpt::FixedLimit& row) {
  return Json::object()
      .set("name", row.name)
      .set("value", row.value)
      .set("unit", row.unit)
      .set("help", row.help)
      .set("reason", row.reason);
}

Json limits_json(const ckpt::Limits& limits) {
  const auto limit_row = [&limits](const ckpt::LimitInfo& row) {
    return Json::object()
        .set("name", row.name)
        .set("flag", format("--{}", row.name))
        .set("value", limits.*row.member)
        .set("unit", row.unit)
        .set("help", row.help);
  };
  return Json::object()
      .set("limits", Json::array(ckpt::limit_table(), limit_row))
      .set("fixed", Json::array(ckpt::fixed_limits(), fixed_row));
}

std::string limit_table(const ckpt::Limits& limits) {
  std::string text;
  for (const ckpt::LimitInfo& row : ckpt::limit_table()) {
    text += format(
        "--{:<22} {:>13}  {}: {}\n",
        row.name,
        with_commas(limits.*row.member),
        row.unit,
        row.help);
  }
  for (const ReadingSwitch& row : reading_switches()) {
    text +=
        format("{:<38}{}\n", format("{} {}", row.flag, row.value), row.help);
  }
  text += "fixed:\n";
  for (const ckpt::FixedLimit& row : ckpt::fixed_limits()) {
    text += format(
        "{:<24} {:>13}  {} {}: {}\n",
        row.name,
        with_commas(row.value),
        row.unit,
        row.help,
        row.reason);
  }
  return text;
}

} // namespace

Runner setup_limits(CLI::App& /*app*/, const Common& common) {
  return [&common]() -> Result<int> {
    const ckpt::Limits& limits = common.load.limits;
    if (common.json) {
      print_result("lockstep.ckpt.limits/1", limits_json(limits));
    } else {
      print(limit_table(limits));
    }
    return 0;
  };
}

} // namespace lockstep::cli
