// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/tensor/prefix_fit.h"

#include <algorithm>
#include <unordered_set>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/edit.h"

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

std::string edited(std::string_view key, const PrefixFit& fit) {
  if (key.starts_with(fit.strip)) {
    key.remove_prefix(fit.strip.size());
  }
  return fit.add + std::string(key);
}

} // namespace

PrefixFit fit_prefix(
    std::span<const std::string> model_keys,
    std::span<const std::string> file_keys) {
  const std::unordered_set<std::string> wanted(
      model_keys.begin(),
      model_keys.end());
  PrefixFit best;
  std::ptrdiff_t most = -1;
  for (const PrefixFit& fit :
       {PrefixFit{},
        PrefixFit{.strip = "module."},
        PrefixFit{.add = "module."},
        PrefixFit{.strip = common_prefix(model_keys, file_keys)},
        PrefixFit{.add = common_prefix(file_keys, model_keys)}}) {
    const std::ptrdiff_t fitting =
        std::ranges::count_if(file_keys, [&](const std::string& key) {
          return wanted.contains(edited(key, fit));
        });
    if (fitting > most) {
      most = fitting;
      best = fit;
    }
  }
  return best;
}

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
  const ckpt::WeightsPlace place = ckpt::locate_weights(value);
  return place.key.empty()
             ? std::string()
             : format(
                   "the weights are under the key '{}' of this checkpoint",
                   place.key);
}

} // namespace lockstep
