// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/tools/inspect/map_hint.h"

#include <algorithm>
#include <map>

namespace lockstep::ckpt::internal {
namespace {

// What stands before the name of every tensor in `longer` that `shorter` has
// without it; "" if there is no such text.
std::string common_prefix(
    const std::vector<DiffRow>& rows,
    DiffKind longer,
    DiffKind shorter) {
  std::map<std::string, std::uint64_t> votes;
  std::vector<std::string> names;
  for (const DiffRow& row : rows) {
    if (row.kind == shorter) {
      names.push_back(row.name);
    }
  }
  std::ranges::sort(names);
  for (const DiffRow& row : rows) {
    if (row.kind != longer) {
      continue;
    }
    for (std::size_t dot = row.name.find('.'); dot != std::string::npos;
         dot = row.name.find('.', dot + 1)) {
      if (std::ranges::binary_search(names, row.name.substr(dot + 1))) {
        ++votes[row.name.substr(0, dot + 1)];
        break;
      }
    }
  }
  const auto best = std::ranges::max_element(votes, {}, [](const auto& vote) {
    return vote.second;
  });
  return best != votes.end() && best->second == names.size() ? best->first : "";
}

} // namespace

std::string map_hint(const std::vector<DiffRow>& rows) {
  std::string prefix = common_prefix(rows, DiffKind::kOnlyA, DiffKind::kOnlyB);
  if (prefix.empty()) {
    prefix = common_prefix(rows, DiffKind::kOnlyB, DiffKind::kOnlyA);
  }
  return prefix.empty() ? "" : prefix + "=";
}

} // namespace lockstep::ckpt::internal
