// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/base/internal/utc.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace lockstep {

using std::chrono::sys_seconds;

std::string utc_text(sys_seconds time, FormatPattern<6> pattern) {
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(time - day);
  return format(
      pattern,
      static_cast<int>(date.year()),
      static_cast<unsigned>(date.month()),
      static_cast<unsigned>(date.day()),
      clock.hours().count(),
      clock.minutes().count(),
      clock.seconds().count());
}

std::optional<sys_seconds> parse_utc(std::string_view text) {
  std::array<int, 6> parts{};
  for (int& part : parts) {
    const auto [end, code] =
        std::from_chars(text.data(), text.data() + text.size(), part);
    if (code != std::errc() || part < 0 || end == text.data() + text.size()) {
      return std::nullopt;
    }
    text.remove_prefix(static_cast<std::size_t>(end - text.data()) + 1);
  }
  const std::chrono::year_month_day date{
      std::chrono::year(parts[0]),
      std::chrono::month(static_cast<unsigned>(parts[1])),
      std::chrono::day(static_cast<unsigned>(parts[2]))};
  if (!date.ok() || text != "UTC") {
    return std::nullopt;
  }
  return std::chrono::sys_days(date) + std::chrono::hours(parts[3]) +
         std::chrono::minutes(parts[4]) + std::chrono::seconds(parts[5]);
}

sys_seconds utc_now() {
  return std::chrono::floor<std::chrono::seconds>(
      std::chrono::system_clock::now());
}

std::string age_text(std::chrono::seconds age) {
  const std::int64_t seconds = std::max<std::int64_t>(age.count(), 0);
  constexpr std::int64_t kMinute = 60;
  constexpr std::int64_t kHour = 60 * kMinute;
  constexpr std::int64_t kDay = 24 * kHour;
  if (seconds < kMinute) {
    return format("{} s", seconds);
  }
  if (seconds < kHour) {
    return format("{} min", seconds / kMinute);
  }
  return seconds < 2 * kDay ? format("{} h", seconds / kHour)
                            : format("{} d", seconds / kDay);
}

} // namespace lockstep
