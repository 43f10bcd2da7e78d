// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/tensor/prefix_hint.h"

#include <algorithm>
#include <unordered_set>

#include "lockstep/base/strings.h"
#include "lockstep/tensor/weights_key.h"

namespace lockstep {
namespace {

// The prefix that turns each of `bare` into one of `longer`, or "".
std::string common_prefix(
    std::span<const std::string> bare,
    std::span<const std::string> longer) {
  if (bare.empty()) {
    return {};
  }
  const std::unordered_set<std::string> known(longer.begin(), longer.end());
  for (const std::string& key : longer) {
    if (key.size() <= bare[0].size() || !key.ends_with(bare[0])) {
      continue;
    }
    std::string prefix = key.substr(0, key.size() - bare[0].size());
    if (prefix.ends_with('.') && std::ranges::all_of(bare, [&](const auto& k) {
          return known.contains(prefix + k);
        })) {
      return prefix;
    }
  }
  return {};
}

} // namespace

std::string prefix_hint(
    std::span<const std::string> model_keys,
    std::span<const std::string> file_keys) {
  constexpr std::string_view kText =
      "all {} keys differ by the prefix '{}': load with .{} = \"{}\"";
  if (std::string p = common_prefix(model_keys, file_keys); !p.empty()) {
    p = escape(p);
    return format(kText, model_keys.size(), p, "strip_prefix", p);
  }
  if (std::string p = common_prefix(file_keys, model_keys); !p.empty()) {
    p = escape(p);
    return format(kText, file_keys.size(), p, "add_prefix", p);
  }
  return {};
}

std::string nested_weights_hint(const ckpt::Value& value) {
  const char* key = weights_key(value);
  return key == nullptr
             ? std::string()
             : format(
                   "the weights are under the key '{}' of this checkpoint",
                   key);
}

} // namespace lockstep
