// SPDX-License-Identifier: BSD-3-Clause
//
// The sections of a run's page; each is empty where nothing is known of it.
#pragma once

#include <string>
#include <string_view>

#include "lockstep/report/page_parts.h"
#include "lockstep/report/run_history.h"

namespace lockstep::report {

/// Numbers per class and the confusion matrix of report.json.
std::string classes_section(const PageJson& details);
/// Some samples of the test.
std::string samples_section(const PageJson& details);
/// Where the time went, and how much memory was needed.
std::string times_section(const RunHistory& history, const PageJson& env);
/// How often it was started, how that ended, what was warned of.
std::string starts_section(
    const PageJson& env,
    std::string_view state,
    std::string_view log);
/// All settings, and where they come from.
std::string settings_section(const PageJson& env);
/// The command, the data, the machine.
std::string origin_section(const PageJson& env);

} // namespace lockstep::report
