// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <set>
#include <string_view>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/match.h"
#include "lockstep/tensor/modules.h"
#include "lockstep/tensor/state_dict.h"

namespace lockstep {
namespace {

// PyTorch's line, cut after `shown` names.
std::string keys_text(
    const std::string& kind,
    const std::vector<std::string>& keys,
    std::size_t shown) {
  const std::size_t count = shown == 0 ? keys.size() : shown;
  std::string text = kind + " key(s) in state_dict: ";
  for (std::size_t i = 0; i < std::min(count, keys.size()); ++i) {
    text += (i == 0 ? "\"" : ", \"") + keys[i] + "\"";
  }
  if (keys.size() > count) {
    text += format(", ... ({} in all)", keys.size());
  }
  return text + ". ";
}

using Row = std::pair<std::string, std::string>; // name, what is said of it

// Lines "kind  name  text" with the texts in one column.
void add_rows(
    std::vector<std::string>& lines,
    const std::string& kind,
    const std::vector<Row>& rows,
    std::size_t shown) {
  const std::size_t count =
      shown == 0 ? rows.size() : std::min(shown, rows.size());
  std::size_t width = 0;
  for (std::size_t i = 0; i < count; ++i) {
    width = std::max(width, rows[i].first.size());
  }
  for (std::size_t i = 0; i < count; ++i) {
    const auto& [name, text] = rows[i];
    std::string line = format("{}  {}", kind, name);
    if (!text.empty()) {
      line.append(width - name.size() + 2, ' ').append(text);
    }
    lines.push_back(std::move(line));
  }
  if (rows.size() > count) {
    lines.push_back(format("{}  ... ({} in all)", kind, rows.size()));
  }
}

// Of the second head that torchvision's networks for segmentation have for
// training alone.
bool is_auxiliary(std::string_view key) {
  constexpr std::string_view kHead = "aux_classifier.";
  const std::size_t at = key.find(kHead);
  return at == 0 || (at != std::string_view::npos && key[at - 1] == '.');
}

// Auxiliary heads left out.
std::set<std::string> layers_of(const std::vector<std::string>& keys) {
  std::set<std::string> layers;
  for (const std::string& key : keys) {
    if (!is_auxiliary(key)) {
      layers.emplace(ckpt::parent_of(key));
    }
  }
  return layers;
}

} // namespace

std::vector<std::string> LoadReport::made_new() const {
  std::vector<std::string> keys = missing_keys;
  for (const ShapeDifference& difference : mismatched) {
    keys.push_back(difference.key);
  }
  return keys;
}

std::string to_string(const LoadReport& report) {
  if (report.missing_keys.empty() && report.unexpected_keys.empty()) {
    return "<All keys matched successfully>";
  }
  return "_IncompatibleKeys(missing_keys=" + python_repr(report.missing_keys) +
         ", unexpected_keys=" + python_repr(report.unexpected_keys) + ")";
}

std::vector<std::string> to_lines(const LoadReport& report, std::size_t shown) {
  const std::vector<std::string> made_new = report.made_new();
  std::vector<std::string> lines{format(
      "taken {} of {} tensors",
      report.taken,
      report.taken + std::ssize(made_new))};
  lines.insert(lines.end(), report.notes.begin(), report.notes.end());
  std::vector<Row> rows;
  rows.reserve(report.mismatched.size());
  for (const ShapeDifference& both : report.mismatched) {
    rows.emplace_back(
        both.key,
        format(
            "{}, the file has {}",
            tuple_text(both.module),
            tuple_text(both.loaded)));
  }
  for (const std::string& key : report.missing_keys) {
    rows.emplace_back(key, "not in the file");
  }
  add_rows(lines, "new ", rows, shown);
  rows.clear();
  for (const std::string& key : report.unexpected_keys) {
    rows.emplace_back(escape(key), "not in the model");
  }
  add_rows(lines, "left", rows, shown);
  return lines;
}

bool only_ends_differ(
    const LoadReport& report,
    const std::vector<std::string>& model_keys) {
  std::vector<std::string> keys = model_keys;
  std::erase_if(keys, is_auxiliary);
  if (keys.empty()) {
    return true;
  }
  const auto made_new = layers_of(report.made_new());
  const bool are_ends = std::ranges::all_of(made_new, [&](const auto& layer) {
    return layer == ckpt::parent_of(keys.front()) ||
           layer == ckpt::parent_of(keys.back());
  });
  std::vector<std::string> left = report.unexpected_keys;
  for (const ShapeDifference& both : report.mismatched) {
    left.push_back(both.key);
  }
  return are_ends && layers_of(left).size() <= made_new.size();
}

std::string load_message(const LoadProblems& problems, std::size_t shown) {
  std::vector<std::string> parts;
  if (!problems.missing_keys.empty()) {
    parts.push_back(keys_text("Missing", problems.missing_keys, shown));
  }
  if (!problems.unexpected_keys.empty()) {
    parts.push_back(keys_text("Unexpected", problems.unexpected_keys, shown));
  }
  // A message has six lines at most; the first is the title.
  const std::size_t room =
      shown == 0 ? problems.errors.size() : shown - parts.size();
  const bool fits = problems.errors.size() <= room;
  const auto count = fits ? problems.errors.size() : room - 1;
  for (std::size_t i = 0; i < count; ++i) {
    parts.push_back(problems.errors[i]);
  }
  if (!fits) {
    parts.push_back(
        format("... ({} tensors like this in all)", problems.errors.size()));
  }
  return parts.empty()
             ? std::string()
             : "Error(s) in loading state_dict for " + problems.class_name +
                   ":\n\t" + join(parts, "\n\t");
}

} // namespace lockstep
