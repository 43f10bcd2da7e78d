// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/report/page_parts.h"

#include <algorithm>
#include <cmath>

#include "lockstep/base/internal/program_text.h"
#include "lockstep/base/strings.h"
#include "lockstep/report/html_text.h"

namespace lockstep::report {

std::string table_html(const PageTable& table) {
  std::string out = format(
      "<div class=\"scroll\" tabindex=\"0\" role=\"region\" "
      "aria-label=\"{0}\">\n<table>\n<caption>{0}</caption>\n<thead><tr>",
      table.caption);
  const auto class_of = [&](std::size_t column) {
    return column >= table.numbers_from ? " class=\"n\"" : "";
  };
  for (std::size_t i = 0; i < table.heads.size(); ++i) {
    out +=
        format("<th scope=\"col\"{}>{}</th>", class_of(i), table.heads.at(i));
  }
  out += "</tr></thead>\n<tbody>\n";
  for (const auto& row : table.rows) {
    out += "<tr>";
    for (std::size_t i = 0; i < row.size(); ++i) {
      out += i == 0 ? format("<th scope=\"row\">{}</th>", row[i])
                    : format("<td{}>{}</td>", class_of(i), row[i]);
    }
    out += "</tr>\n";
  }
  return out + "</tbody>\n</table>\n</div>\n";
}

std::string section_html(
    std::string_view id,
    std::string_view title,
    const std::string& content) {
  return content.empty() ? std::string()
                         : format(
                               "<section aria-labelledby=\"{0}\">\n"
                               "<h2 id=\"{0}\">{1}</h2>\n{2}</section>\n",
                               id,
                               title,
                               content);
}

std::string foreign(std::string_view text) {
  return format("<bdi>{}</bdi>", html_text(text));
}

std::string plain_text(const PageJson& value) {
  if (value.is_null()) {
    return {};
  }
  if (value.is_string()) {
    return value.get<std::string>();
  }
  const auto has_parts = [](const PageJson& item) {
    return item.is_structured();
  };
  if (!value.is_array() || std::ranges::any_of(value, has_parts)) {
    using Replace = PageJson::error_handler_t;
    return value.dump(-1, ' ', /*ensure_ascii=*/false, Replace::replace);
  }
  std::vector<std::string> parts;
  for (const PageJson& item : value) {
    parts.push_back(plain_text(item));
  }
  return join(parts, ", ");
}

const PageJson& member_of(const PageJson& object, std::string_view key) {
  static const PageJson none;
  if (!object.is_object()) {
    return none;
  }
  const auto found = object.find(key);
  return found == object.end() ? none : *found;
}

std::string text_in(const PageJson& object, std::string_view key) {
  return plain_text(member_of(object, key));
}

std::string number_text(double value) {
  constexpr double kExact = 9007199254740992.0; // 2^53
  constexpr double kLarge = 100;
  constexpr double kSmall = 1;
  constexpr double kTiny = 0.001;
  if (!std::isfinite(value)) {
    return "-";
  }
  const double size = std::abs(value);
  if (value == std::floor(value) && size < kExact) {
    return (value < 0 ? "-" : "") +
           with_commas(static_cast<std::uint64_t>(size));
  }
  return size >= kLarge   ? format("{:.1f}", value)
         : size >= kSmall ? format("{:.2f}", value)
         : size >= kTiny  ? format("{:.4f}", value)
                          : format("{:.3g}", value);
}

std::string duration_text(double seconds) {
  constexpr double kMinute = 60;
  if (!std::isfinite(seconds)) {
    return "-";
  }
  return seconds >= kMinute ? human_seconds(seconds)
         : seconds >= 1     ? format("{:.1f} s", seconds)
                            : format("{:.1f} ms", seconds * 1000);
}

std::string command_text(const PageJson& words) {
  if (!words.is_array()) {
    return plain_text(words);
  }
  std::vector<std::string> quoted;
  for (const PageJson& word : words) {
    quoted.push_back(shell_word(plain_text(word)));
  }
  return join(quoted, " ");
}

} // namespace lockstep::report
