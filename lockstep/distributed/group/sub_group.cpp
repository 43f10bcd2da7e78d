// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/distributed/group/group_impl.h"
#include "lockstep/distributed/process_group.h"

namespace lockstep::dist {
namespace {

[[noreturn]] void refuse_ranks(std::string message) {
  raise(
      {.code = ErrorCode::kInvalidArgument,
       .op = "dist.new_group",
       .message = std::move(message),
       .detail = "E_SUB_GROUP"});
}

/// Python's `[0, 1, 1]`.
std::string list_text(const std::vector<int>& ranks) {
  std::vector<std::string> texts;
  texts.reserve(ranks.size());
  for (const int rank : ranks) {
    texts.push_back(std::to_string(rank));
  }
  return format("[{}]", join(texts, ", "));
}

/// `ranks` is sorted.
void check_ranks(const std::vector<int>& ranks, int size) {
  if (ranks.empty()) {
    refuse_ranks("a group has at least one rank");
  }
  if (std::ranges::adjacent_find(ranks) != ranks.end()) {
    refuse_ranks(format(
        "ranks list must not contain duplicate entries, got {}",
        list_text(ranks)));
  }
  for (const int rank : ranks) {
    if (rank < 0 || rank >= size) {
      refuse_ranks(format(
          "Rank {} is out of range. Valid ranks are 0 to {} (world_size={})",
          rank,
          size - 1,
          size));
    }
  }
}

} // namespace

ProcessGroup ProcessGroup::new_group(
    std::vector<int> ranks,
    std::chrono::milliseconds timeout) const {
  std::ranges::sort(ranks);
  check_ranks(ranks, size());
  if (is_alone()) {
    return *this;
  }
  Impl& parent = impl();
  // Counted by all ranks, so that later groups have equal names everywhere.
  const std::string name = std::to_string(parent.groups++);
  const auto place = std::ranges::find(ranks, rank());
  if (place == ranks.end()) {
    return outside();
  }
  InitOptions options = parent.options;
  if (timeout.count() > 0) {
    options.timeout = timeout;
  }
  std::vector<int> ranks_of_job;
  ranks_of_job.reserve(ranks.size());
  for (const int member : ranks) {
    ranks_of_job.push_back(parent.ranks[static_cast<std::size_t>(member)]);
  }
  return internal::make_sub_group(
      parent,
      // Python nests them so: below the group that it has them from.
      {.store = parent.group->getStore(),
       .rank = static_cast<int>(place - ranks.begin()),
       .ranks = std::move(ranks_of_job),
       .name = name},
      options);
}

} // namespace lockstep::dist
