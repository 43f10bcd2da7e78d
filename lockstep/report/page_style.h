// SPDX-License-Identifier: BSD-3-Clause
//
// How a run's page looks: on screens, light and dark, narrow and wide, and on
// paper.
#pragma once

#include <string_view>

namespace lockstep::report {

/// A style sheet.
std::string_view page_style();

} // namespace lockstep::report
