// SPDX-License-Identifier: BSD-3-Clause
//
// docs/errors.md and docs/error_details.md as text; CMake makes the source.
#pragma once

#include <string_view>

namespace lockstep::cli {

std::string_view explain_text();

} // namespace lockstep::cli
