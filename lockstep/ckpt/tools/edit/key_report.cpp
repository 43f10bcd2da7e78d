// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/edit.h"

namespace lockstep::ckpt {
namespace {

constexpr std::size_t kShownBytes = 200;

bool is_added(const KeyChange& change) {
  return change.from.empty();
}
bool is_dropped(const KeyChange& change) {
  return change.to.empty() && !is_added(change);
}

std::string line(const KeyChange& change) {
  const std::string from = escape(change.from, kShownBytes);
  const std::string to = escape(change.to, kShownBytes);
  if (is_added(change)) {
    return format("+ {}\n", to);
  }
  return is_dropped(change) ? format("- {}\n", from)
                            : format("{} -> {}\n", from, to);
}

} // namespace

std::string to_text(const KeyReport& report, std::uint64_t max_lines) {
  std::vector<std::string> lines;
  lines.reserve(report.changes.size() + report.replaced.size());
  for (const KeyChange& change : report.changes) {
    lines.push_back(line(change));
  }
  for (const std::string& key : report.replaced) {
    lines.push_back(format("= {}\n", escape(key, kShownBytes)));
  }
  const std::size_t shown = std::min<std::uint64_t>(lines.size(), max_lines);
  std::string text;
  for (std::size_t i = 0; i < shown; ++i) {
    text += lines[i];
  }
  if (shown < lines.size()) {
    text += format("... {} more\n", lines.size() - shown);
  }
  return text;
}

std::string counts_text(const KeyReport& report) {
  const auto dropped = static_cast<std::uint64_t>(
      std::ranges::count_if(report.changes, is_dropped));
  const auto added = static_cast<std::uint64_t>(
      std::ranges::count_if(report.changes, is_added));
  const std::uint64_t renamed = report.changes.size() - dropped - added;
  std::vector<std::string> parts;
  const auto add = [&parts](std::string_view what, std::uint64_t count) {
    if (count != 0) {
      parts.push_back(format("{} {}", what, counted(count, "key")));
    }
  };
  add("renamed", renamed);
  add("dropped", dropped);
  add("added", added);
  add("replaced", report.replaced.size());
  add("kept", report.kept);
  return parts.empty() ? "no keys" : join(parts, ", ");
}

std::string prefixes_text(const KeyReport& report) {
  const std::string& stripped = report.stripped;
  std::string text;
  if (std::ranges::count(stripped, '.') > 1) {
    text += format("stripped '{}'\n", escape(stripped));
  }
  if (!report.left_prefix.empty()) {
    text += format(
        "all keys still begin with '{0}': if that is another wrapper's and not "
        "a layer, strip it with StripOptions::prefix {0}\n",
        report.left_prefix);
  }
  return text;
}

Json to_json(const KeyReport& report) {
  Json renamed = Json::array();
  Json dropped = Json::array();
  Json added = Json::array();
  for (const KeyChange& change : report.changes) {
    if (is_added(change)) {
      added.push(change.to);
    } else if (is_dropped(change)) {
      dropped.push(change.from);
    } else {
      renamed.push(
          Json::object().set("from", change.from).set("to", change.to));
    }
  }
  Json json = Json::object();
  json.set("weights_key", report.weights_key)
      .set("renamed", std::move(renamed))
      .set("dropped", std::move(dropped))
      .set("added", std::move(added))
      .set("replaced", Json::array(report.replaced))
      .set("kept", report.kept);
  if (!report.stripped.empty()) {
    json.set("stripped", report.stripped);
  }
  if (!report.left_prefix.empty()) {
    json.set("left_prefix", report.left_prefix);
  }
  return json;
}

} // namespace lockstep::ckpt
