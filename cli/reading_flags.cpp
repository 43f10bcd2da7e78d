// SPDX-License-Identifier: BSD-3-Clause
#include "cli/reading_flags.h"

#include <CLI/CLI.hpp>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/options.h"

namespace lockstep::cli {
namespace {

bool has_flag(const CLI::App& app, const std::string& flag) {
  return app.get_option_no_throw(flag) != nullptr;
}

void add_switch(
    CLI::App& app,
    const std::string& flag,
    bool& value,
    const std::string& help) {
  if (!has_flag(app, flag)) {
    app.add_flag(flag, value, help)->group(kHiddenGroup);
  }
}

} // namespace

void add_reading_flags(CLI::App& app, Common& common) {
  add_switch(app, "--strict", common.load.strict, "warnings are errors");
  add_switch(
      app,
      "--lenient",
      common.load.limits.allow_no_root,
      "read archives whose records are in no folder");
  add_switch(
      app,
      "--allow-expand",
      common.allow_expand,
      "no bound on what a small file expands to");
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
