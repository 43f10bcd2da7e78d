// SPDX-License-Identifier: BSD-3-Clause
#include "cli/reading_flags.h"

#include <array>
#include <bit>

#include <CLI/CLI.hpp>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/checkpoint.h"

namespace lockstep::cli {
namespace {

using Text = const std::string&;

constexpr std::array kSwitches{
    ReadingSwitch{
        "--allow-expand",
        "",
        "no bound on what a small file expands to",
        [](CLI::App& app, Text flag, Text help, Common& common) {
          return app.add_flag(flag, common.allow_expand, help);
        }},
    ReadingSwitch{
        "--byteorder",
        "little|big",
        "order of the bytes in files that do not say it",
        [](CLI::App& app, Text flag, Text help, Common& common) {
          return app
              .add_option_function<std::string>(
                  flag,
                  [&common](Text word) {
                    common.load.byteorder =
                        word == "big" ? std::endian::big : std::endian::little;
                  },
                  help)
              ->check(CLI::IsMember({"little", "big"}));
        }},
    ReadingSwitch{
        "--lenient",
        "",
        "read archives whose records are in no folder",
        [](CLI::App& app, Text flag, Text help, Common& common) {
          return app.add_flag(flag, common.load.limits.allow_no_root, help);
        }},
    ReadingSwitch{
        "--strict",
        "",
        "warnings are errors",
        [](CLI::App& app, Text flag, Text help, Common& common) {
          return app.add_flag(flag, common.load.strict, help);
        }},
};

bool has_flag(const CLI::App& app, const std::string& flag) {
  return app.get_option_no_throw(flag) != nullptr;
}

} // namespace

std::span<const ReadingSwitch> reading_switches() {
  return kSwitches;
}

void add_reading_flags(CLI::App& app, Common& common) {
  for (const ReadingSwitch& row : kSwitches) {
    const std::string flag(row.flag);
    if (!has_flag(app, flag)) {
      row.add(app, flag, std::string(row.help), common)->group(kHiddenGroup);
    }
  }
  for (const ckpt::LimitInfo& row : ckpt::limit_table()) {
    const std::string flag = format("--{}", row.name);
    if (!has_flag(app, flag)) {
      app.add_option(
             flag,
             common.load.limits.*row.member,
             std::string(row.help))
          ->group(kHiddenGroup);
    }
  }
}

void apply_reading_flags(Common& common) {
  if (common.allow_expand) {
    common.load.limits = ckpt::expanding(common.load.limits);
  }
}

} // namespace lockstep::cli
