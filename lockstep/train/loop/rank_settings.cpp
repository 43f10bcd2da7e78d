// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/loop/rank_settings.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/base/fs.h"
#include "lockstep/base/internal/line_differences.h"
#include "lockstep/base/strings.h"

namespace lockstep::train {
namespace {

/// Where a rank finds things, how it computes, and what others decide: rank 0's
/// weights are those of all, and a strategy is checked where it is chosen.
constexpr std::array<std::string_view, 8> kOwn{
    "data-dir",
    "workers",
    "initial-checkpoint",
    "partial",
    "devices",
    "cuda",
    "threads",
    "strategy"};

/// What no checkpoint holds, and all ranks do together.
constexpr std::array<std::string_view, 2> kTogether{"profile", "test-only"};

bool is_common(const Flag& flag) {
  const auto holds = [&](const auto& names) {
    return std::ranges::find(names, flag.name) != names.end();
  };
  return (flag.is_saved || holds(kTogether)) && !holds(kOwn);
}

/// A line for each common flag: "--lr 0.01".
std::string text_of(const TrainConfig& config) {
  std::vector<std::string> lines;
  for (const Flag& flag : flag_table()) {
    if (is_common(flag)) {
      lines.push_back(format("--{} {}", flag.name, get_flag(config, flag)));
    }
  }
  return join(lines, "\n");
}

} // namespace

void refuse_different_settings(
    const TrainConfig& config,
    const dist::ProcessGroup& group) {
  std::vector<std::vector<std::string>> settings;
  for (const auto& bytes :
       group.all_gather_bytes(as_byte_span(text_of(config)))) {
    settings.push_back(split(as_text(bytes), '\n'));
  }
  for (std::size_t rank = 1; rank < settings.size(); ++rank) {
    const auto found = line_differences(settings.front(), settings[rank]);
    if (!found.empty()) {
      raise(
          {.code = ErrorCode::kMismatch,
           .op = "train",
           .message = format(
               "ranks 0 and {} have different settings: {}",
               rank,
               join(found, "; ")),
           .hint = "start all ranks with the same flags, LOCKSTEP_ variables "
                   "and --config file",
           .detail = "E_RANKS_DIFFER"});
    }
  }
}

void refuse_different_data(
    const RankData& data,
    const dist::ProcessGroup& group) {
  const std::vector<std::string>& names = data.class_names;
  const std::string own = format(
      "{} training and {} test samples{}{}",
      data.train_samples,
      data.test_samples,
      names.empty() ? "" : " of " + join(names, ", "),
      data.digests.empty() ? "" : ", digests " + data.digests);
  const auto all = group.all_gather_bytes(as_byte_span(own));
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    if (as_text(all[rank]) != as_text(all.front())) {
      raise(
          {.code = ErrorCode::kMismatch,
           .op = "train.data",
           .message = format(
               "rank 0 has {}, rank {} has {}",
               as_text(all.front()),
               rank,
               as_text(all[rank])),
           .hint = "give every rank the whole data set: the trainer deals it",
           .detail = "E_RANKS_DIFFER"});
    }
  }
}

} // namespace lockstep::train
