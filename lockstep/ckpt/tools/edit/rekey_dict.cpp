// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/tools/edit/rekey_dict.h"

#include <map>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/walk.h"

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

Result<Dict> rekey(
    const Dict& weights,
    const KeyMap& map,
    KeyReport& report,
    OtherKeys others) {
  Dict result{.kind = weights.kind, .attributes = weights.attributes};
  result.items.reserve(weights.items.size());
  std::map<std::string, const Value*> owners; // by the new name
  for (const auto& [key, value] : weights.items) {
    const bool is_text = key.as_string() != nullptr;
    const std::string name = key_text(key);
    auto renamed = is_text || others == OtherKeys::kFollow
                       ? map(name)
                       : std::optional(name);
    if (!renamed) {
      report.changes.push_back({.from = name});
      continue;
    }
    if (!is_text && *renamed == name) { // not the key '0', but 0
      ++report.kept;
      result.items.emplace_back(key, value);
      continue;
    }
    if (renamed->empty() && !name.empty()) {
      return Error{
          .code = ErrorCode::kInvalidArgument,
          .op = "ckpt.edit",
          .message = format("nothing would be left of '{}'", escape(name)),
          .hint = "leave a part of the name",
          .detail = "E_KEY_EMPTY"};
    }
    const auto [owner, is_new] = owners.emplace(*renamed, &key);
    if (!is_new) {
      return collision(*renamed, key_text(*owner->second), name);
    }
    if (*renamed == name) {
      ++report.kept;
      result.items.emplace_back(key, value);
      continue;
    }
    report.changes.push_back({.from = name, .to = *renamed});
    result.items.emplace_back(*std::move(renamed), value);
  }
  return result;
}

} // namespace lockstep::ckpt::internal
