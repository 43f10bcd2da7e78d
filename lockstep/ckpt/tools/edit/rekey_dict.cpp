// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/tools/edit/rekey_dict.h"

#include <map>
#include <utility>

#include "lockstep/base/strings.h"

namespace lockstep::ckpt::internal {
namespace {

Error collision(
    const std::string& key,
    const std::string& first,
    const std::string& second) {
  return {
      .code = ErrorCode::kInvalidArgument,
      .op = "ckpt.edit",
      .message = format(
          "two entries would be called '{}': '{}' and '{}'",
          escape(key),
          escape(first),
          escape(second)),
      .hint = "drop or rename one of them first",
      .detail = "E_KEY_COLLISION"};
}

} // namespace

Result<Dict> rekey(const Dict& weights, const KeyMap& map, KeyReport& report) {
  Dict result{.kind = weights.kind, .attributes = weights.attributes};
  result.items.reserve(weights.items.size());
  // Views of the old keys, which outlive this.
  std::map<std::string, std::string_view> owners;
  for (const auto& [key, value] : weights.items) {
    const std::string* text = key.as_string();
    if (text == nullptr) {
      ++report.kept;
      result.items.emplace_back(key, value);
      continue;
    }
    auto renamed = map(*text);
    if (!renamed) {
      report.changes.push_back({.from = *text});
      continue;
    }
    if (renamed->empty() && !text->empty()) {
      return Error{
          .code = ErrorCode::kInvalidArgument,
          .op = "ckpt.edit",
          .message = format("nothing would be left of '{}'", escape(*text)),
          .hint = "leave a part of the name",
          .detail = "E_KEY_EMPTY"};
    }
    const auto [owner, is_new] = owners.emplace(*renamed, *text);
    if (!is_new) {
      return collision(*renamed, std::string(owner->second), *text);
    }
    if (*renamed == *text) {
      ++report.kept;
      result.items.emplace_back(key, value);
      continue;
    }
    report.changes.push_back({.from = *text, .to = *renamed});
    result.items.emplace_back(*std::move(renamed), value);
  }
  return result;
}

} // namespace lockstep::ckpt::internal
