// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/inference/image_list.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <set>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/data/images.h"

namespace lockstep::train {
namespace {

bool is_folder(FileSystem& fs, const std::string& path) {
  const auto info = fs.stat(path);
  return info && info->kind == FileInfo::Kind::kDirectory;
}

std::string joined(const std::string& folder, const std::string& name) {
  return (std::filesystem::path(folder) / name).string();
}

// Goes through folders, each once, whatever links lead to it.
class FolderWalk {
 public:
  explicit FolderWalk(FileSystem& fs) : fs_(fs) {}

  std::vector<ListedImage> run(const std::string& folder) {
    walk(folder, "");
    std::ranges::sort(images_, {}, &ListedImage::name);
    return std::move(images_);
  }

 private:
  // NOLINTNEXTLINE(misc-no-recursion): as deep as the folders
  void walk(const std::string& folder, const std::string& below) {
    const auto place = fs_.resolve(folder);
    if (!place || !seen_.insert(*place).second) {
      return; // links that lead in a circle end here, too
    }
    for (const std::string& name : fs_.list(folder).value()) {
      if (name.starts_with(".")) {
        continue;
      }
      const std::string path = joined(folder, name);
      // The file of an image is not asked for: there may be a million.
      if (has_image_ending(name)) {
        images_.push_back({.path = path, .name = joined(below, name)});
      } else if (is_folder(fs_, path)) {
        walk(path, joined(below, name));
      }
    }
  }

  FileSystem& fs_;
  std::set<std::string> seen_;
  std::vector<ListedImage> images_;
};

[[noreturn]] void no_images(std::string message, const std::string& path) {
  raise(
      {.code = ErrorCode::kNotFound,
       .op = "train.use",
       .message = std::move(message),
       .hint = "images are .jpg, .jpeg, .png and .webp files",
       .path = path,
       .detail = "E_NO_DATA"});
}

// Adds what one word stands for.
class ImageList {
 public:
  explicit ImageList(FileSystem& fs) : fs_(fs) {}

  void add(const std::string& word) {
    if (!is_folder(fs_, word)) {
      images_.push_back({.path = word, .name = base_name(word)});
      return;
    }
    std::vector<ListedImage> below = FolderWalk(fs_).run(word);
    if (below.empty()) {
      no_images("there is no image in the folder", word);
    }
    std::ranges::move(below, std::back_inserter(images_));
  }

  std::vector<ListedImage> finish() {
    if (images_.empty()) {
      no_images("there is no image to look at", "");
    }
    return std::move(images_);
  }

 private:
  FileSystem& fs_;
  std::vector<ListedImage> images_;
};

} // namespace

std::vector<ListedImage> list_images(
    std::span<const std::string> words,
    const std::function<std::string()>& read_list,
    FileSystem& fs) {
  if (std::ranges::count(words, "-") > 1) {
    raise(
        {.code = ErrorCode::kInvalidArgument,
         .op = "train.use",
         .message = "'-' is named twice: standard input is read once",
         .detail = "E_FLAGS"});
  }
  ImageList list(fs);
  for (const std::string& word : words) {
    if (word != "-") {
      list.add(word);
      continue;
    }
    for (std::string line : split(read_list(), '\n')) {
      if (line.ends_with('\r')) {
        line.pop_back();
      }
      if (!line.empty()) {
        list.add(line);
      }
    }
  }
  return list.finish();
}

} // namespace lockstep::train
