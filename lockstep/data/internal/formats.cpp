// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/data/internal/formats.h"

#include <algorithm>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"

namespace lockstep::internal {
namespace {

bool has_kind(FileSystem& fs, const std::string& path, FileInfo::Kind kind) {
  const Result<FileInfo> info = fs.stat(path);
  return info && info->kind == kind;
}

} // namespace

bool is_file(FileSystem& fs, const std::string& path) {
  return has_kind(fs, path, FileInfo::Kind::kFile);
}

bool is_folder(FileSystem& fs, const std::string& path) {
  return has_kind(fs, path, FileInfo::Kind::kDirectory);
}

std::vector<std::string> names_in(FileSystem& fs, const std::string& folder) {
  Result<std::vector<std::string>> names = fs.list(folder);
  return names ? *std::move(names) : std::vector<std::string>();
}

std::string folder_named(
    FileSystem& fs,
    const std::string& folder,
    std::span<const std::string_view> names) {
  const std::vector<std::string> there = names_in(fs, folder);
  for (const std::string_view wanted : names) {
    for (const std::string& name : there) {
      std::string path = format("{}/{}", folder, name);
      if (lower_case(name) == wanted && is_folder(fs, path)) {
        return path;
      }
    }
  }
  return "";
}

std::string stem_of(const std::string& path) {
  const std::string name = base_name(path);
  const auto dot = name.rfind('.');
  return dot == std::string::npos || dot == 0 ? name : name.substr(0, dot);
}

std::string ending_of(const std::string& path) {
  return lower_case(
      std::string_view(base_name(path)).substr(stem_of(path).size()));
}

PartFiles part_files(
    FileSystem& fs,
    const std::string& path,
    std::span<const std::string_view> endings) {
  const auto fits = [&](const std::string& name) {
    return !name.starts_with(".") &&
           std::ranges::find(endings, ending_of(name)) != endings.end();
  };
  if (!is_folder(fs, path)) {
    return fits(base_name(path)) && is_file(fs, path) ? PartFiles{.train = path}
                                                      : PartFiles{};
  }
  std::vector<std::string> files;
  for (const std::string& name : names_in(fs, path)) {
    if (fits(name)) {
      files.push_back(format("{}/{}", path, name));
    }
  }
  const auto named = [&](std::span<const std::string_view> stems) {
    for (const std::string_view stem : stems) {
      for (const std::string& file : files) {
        if (lower_case(stem_of(file)) == stem) {
          return file;
        }
      }
    }
    return std::string();
  };
  PartFiles parts{.train = named(kTrainNames), .val = named(kValNames)};
  if (parts.train.empty()) {
    parts = files.size() == 1 ? PartFiles{.train = files[0]} : PartFiles{};
  }
  return parts;
}

void no_such_data(
    std::string message,
    const std::string& path,
    std::string hint) {
  raise(
      {.code = ErrorCode::kNotFound,
       .op = "data.open",
       .message = std::move(message),
       .hint = std::move(hint),
       .path = path,
       .detail = "E_NO_DATA"});
}

TransformOptions for_validation(TransformOptions transform) {
  transform.crop_padding = 0;
  transform.horizontal_flip = false;
  return transform;
}

} // namespace lockstep::internal
