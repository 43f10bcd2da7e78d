// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/checkpoints/foreign_values.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "lockstep/tensor/state_dict.h"

namespace lockstep::train {

std::optional<ckpt::Value> milestones_of(const ckpt::Dict& counter) {
  constexpr std::int64_t kMostDrops = 1000;
  std::vector<std::int64_t> epochs;
  for (const auto& [epoch, count] : counter.items) {
    const std::int64_t* times = count.as_int();
    if (epoch.as_int() == nullptr || times == nullptr || *times < 1 ||
        *times > kMostDrops) {
      return std::nullopt;
    }
    epochs.insert(
        epochs.end(),
        static_cast<std::size_t>(*times),
        *epoch.as_int());
  }
  std::ranges::sort(epochs);
  ckpt::List list;
  list.items.assign(epochs.begin(), epochs.end());
  return ckpt::Value(std::move(list));
}

std::optional<ForeignAverage> foreign_average(const ckpt::Value& root) {
  constexpr std::array<std::string_view, 2> kKeys{
      "state_dict_ema",
      "model_ema"};
  constexpr std::string_view kCount = "n_averaged";
  for (const std::string_view key : kKeys) {
    const ckpt::Value* const value = root.find(key);
    const ckpt::Dict* const dict =
        value == nullptr ? nullptr : value->as_dict();
    if (dict == nullptr || dict->items.empty()) {
      continue;
    }
    ForeignAverage average{.key = std::string(key)};
    ckpt::Dict weights;
    for (const auto& [name, tensor] : dict->items) {
      if (name.text() == kCount) {
        average.updates = std::max<std::int64_t>(
            1,
            static_cast<std::int64_t>(number_in(tensor).value_or(1)));
      } else {
        weights.items.emplace_back(name, tensor);
      }
    }
    average.weights = ckpt::Value(std::move(weights));
    return average;
  }
  return std::nullopt;
}

} // namespace lockstep::train
