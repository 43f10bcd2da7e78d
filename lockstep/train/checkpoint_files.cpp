// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/checkpoint_files.h"

#include <algorithm>
#include <charconv>
#include <utility>

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
  if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix) ||
      name.size() <= kPrefix.size() + kSuffix.size()) {
    return std::nullopt;
  }
  name.remove_prefix(kPrefix.size());
  name.remove_suffix(kSuffix.size());
  std::int64_t step = 0;
  const char* end = name.data() + name.size();
  const auto [rest, status] = std::from_chars(name.data(), end, step);
  const bool is_ours = status == std::errc() && rest == end && step >= 0;
  return is_ours ? std::optional(step) : std::nullopt;
}

std::vector<std::string> list_checkpoints(
    FileSystem& fs,
    const std::string& folder) {
  const auto all = fs.list(folder);
  std::vector<std::string> names;
  for (const std::string& name : all ? *all : std::vector<std::string>{}) {
    if (checkpoint_step(name)) {
      names.push_back(name);
    }
  }
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
  Status first;
  std::int64_t kept = 0;
  for (const std::string& name : list_checkpoints(fs, folder)) {
    if (++kept <= keep || name == latest || name == best) {
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
