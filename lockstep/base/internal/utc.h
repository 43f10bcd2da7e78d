// SPDX-License-Identifier: BSD-3-Clause
//
// Points in time as text, always in UTC, so that texts of all machines compare.
//   utc_text(utc_now())   // "2026-11-23 10:00:00 UTC"
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "lockstep/base/strings.h"

namespace lockstep {

/// Now, without parts of a second.
std::chrono::sys_seconds utc_now();

/// "2026-11-23 10:00:00 UTC". Another `pattern` takes year, month, day, hour,
/// minute and second.
std::string utc_text(
    std::chrono::sys_seconds time,
    FormatPattern<6> pattern = "{:04}-{:02}-{:02} {:02}:{:02}:{:02} UTC");

/// The time that `utc_text` has written by its own pattern; nothing for other
/// text.
std::optional<std::chrono::sys_seconds> parse_utc(std::string_view text);

/// How long ago something was, for people: "12 s", "3 min", "5 h", "2 d". Of
/// what is long past, minutes are no news.
std::string age_text(std::chrono::seconds age);

} // namespace lockstep
