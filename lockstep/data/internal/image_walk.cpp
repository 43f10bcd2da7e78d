// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/data/internal/image_walk.h"

#include <algorithm>
#include <array>
#include <deque>
#include <filesystem>
#include <iterator>
#include <map>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include <c10/util/Exception.h>

#include "lockstep/base/strings.h"
#include "lockstep/data/images.h"

namespace lockstep::internal {
namespace {

bool is_directory(FileSystem& fs, const std::string& path) {
  const Result<FileInfo> info = fs.stat(path);
  return info && info->kind == FileInfo::Kind::kDirectory;
}

// The folder itself, whatever links the path has; of a file system in memory
// the path.
std::string without_links(const std::string& folder) {
  std::error_code code;
  const auto path = std::filesystem::canonical(folder, code);
  return code ? folder : path.string();
}

bool is_link(const std::string& path) {
  std::error_code code;
  return std::filesystem::is_symlink(path, code);
}

} // namespace

void ForeignImages::add(const std::string& path) {
  constexpr std::array<std::string_view, 6>
      kEndings{".bmp", ".gif", ".pgm", ".ppm", ".tif", ".tiff"};
  const std::string small = lower_case(path);
  const bool is_one = std::ranges::any_of(
      kEndings,
      [&](std::string_view ending) { return small.ends_with(ending); });
  if (is_one && count_++ == 0) {
    first_ = path;
  }
}

void ForeignImages::warn() const {
  if (count_ > 0) {
    TORCH_WARN(format(
        "{} of other formats than JPEG, PNG and WebP left out: {}",
        counted(static_cast<std::size_t>(count_), "image"),
        count_ == 1 ? first_ : first_ + ", ..."));
  }
}

std::vector<std::string> images_below(
    FileSystem& fs,
    const std::string& directory,
    ForeignImages& foreign) {
  // Links come last, so that a folder below has its own name.
  std::deque<std::string> pending{directory};
  std::set<std::string> seen;
  std::map<std::string, std::vector<std::string>> images; // by folder
  for (std::deque<std::string> links; !pending.empty() || !links.empty();) {
    std::deque<std::string>& next = pending.empty() ? links : pending;
    const std::string folder = std::move(next.front());
    next.pop_front();
    if (!seen.insert(without_links(folder)).second) {
      continue;
    }
    for (const std::string& name : fs.list(folder).value()) {
      const std::string path = (std::filesystem::path(folder) / name).string();
      if (name.starts_with(".")) {
        continue;
      }
      // The file of an image is not asked for: there may be a million.
      if (has_image_ending(name)) {
        images[folder].push_back(path);
      } else if (is_directory(fs, path)) {
        (is_link(path) ? links : pending).push_back(path);
      } else {
        foreign.add(path);
      }
    }
  }
  std::vector<std::string> all;
  for (auto& [folder, paths] : images) {
    std::ranges::move(paths, std::back_inserter(all));
  }
  return all;
}

} // namespace lockstep::internal
