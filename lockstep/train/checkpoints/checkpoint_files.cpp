// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/checkpoints/checkpoint_files.h"

#include <algorithm>
#include <utility>

#include "lockstep/base/internal/numbers.h"
#include "lockstep/base/strings.h"

namespace lockstep::train {
namespace {

constexpr std::string_view kPrefix = "checkpoint-";
constexpr std::string_view kSuffix = ".pth.tar";

/// Name of the file that a link in `folder` leads to; its own without.
Result<std::string>
target_of(FileSystem& fs, const std::string& folder, std::string_view link) {
  LOCKSTEP_ASSIGN(
      const std::string target,
      fs.resolve(format("{}/{}", folder, link)));
  return base_name(target);
}

} // namespace

std::string checkpoint_name(std::int64_t step) {
  return format("{}{:08}{}", kPrefix, step, kSuffix);
}

std::optional<std::int64_t> checkpoint_step(std::string_view name) {
  const std::string_view whole = name;
  if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix) ||
      name.size() <= kPrefix.size() + kSuffix.size()) {
    return std::nullopt;
  }
  name.remove_prefix(kPrefix.size());
  name.remove_suffix(kSuffix.size());
  const auto step = parse_number<std::int64_t>(name, 0);
  // Other programs write "checkpoint-4.pth.tar", too.
  return step && checkpoint_name(*step) == whole ? step : std::nullopt;
}

Result<std::vector<std::string>> list_checkpoints(
    FileSystem& fs,
    const std::string& folder) {
  LOCKSTEP_ASSIGN(std::vector<std::string> names, fs.list(folder));
  std::erase_if(names, [](const std::string& name) {
    return !checkpoint_step(name);
  });
  std::ranges::sort(names, std::greater(), [](const std::string& name) {
    return checkpoint_step(name);
  });
  return names;
}

Status prune_checkpoints(
    FileSystem& fs,
    const std::string& folder,
    std::int64_t keep) {
  LOCKSTEP_ASSIGN(const auto latest, target_of(fs, folder, kLatestFile));
  LOCKSTEP_ASSIGN(const auto best, target_of(fs, folder, kBestFile));
  LOCKSTEP_ASSIGN(const auto names, list_checkpoints(fs, folder));
  const auto latest_step = checkpoint_step(latest);
  Status first;
  std::int64_t kept = 0;
  for (const std::string& name : names) {
    // What is beyond the newest was cut off, or is damaged: it is not counted,
    // and the run comes to it again.
    const bool is_beyond = latest_step && checkpoint_step(name) > latest_step;
    if (is_beyond || ++kept <= keep || name == best) {
      continue;
    }
    Status removed = fs.remove(format("{}/{}", folder, name));
    if (first && !removed) {
      first = std::move(removed);
    }
  }
  return first;
}

} // namespace lockstep::train
