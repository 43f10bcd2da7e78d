// SPDX-License-Identifier: BSD-3-Clause
//
// What the sections of a run's page are made of.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace lockstep::report {

using PageJson = nlohmann::ordered_json;

/// A table of a page. All texts are HTML.
struct PageTable {
  std::string caption = {};
  /// Of the columns; the first one names the rows.
  std::vector<std::string> heads = {};
  std::vector<std::vector<std::string>> rows = {};
  /// Columns from this one on are numbers, to the right.
  std::size_t numbers_from = 1;
};

/// In a box that scrolls where the page is too narrow for it.
std::string table_html(const PageTable& table);

/// A section with its heading; nothing for a section without content.
std::string section_html(
    std::string_view id,
    std::string_view title,
    const std::string& content);

/// Foreign text, whose direction does not touch what is around it.
std::string foreign(std::string_view text);

/// The value as people write it: "0.1", "cpu, cpu"; "" of null.
std::string plain_text(const PageJson& value);
/// The member of that name as such a text; "" if there is none.
std::string text_in(const PageJson& object, std::string_view key);
/// The member of that name; null, which has no elements, if there is none.
const PageJson& member_of(const PageJson& object, std::string_view key);

/// "87.31", "0.0123", "12,345"; "-" of what is no number.
std::string number_text(double value);
/// "1.24 s", "0:12:31".
std::string duration_text(double seconds);
/// A command line that a shell reads.
std::string command_text(const PageJson& words);

} // namespace lockstep::report
