// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/inference/image_list.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/data/internal/image_walk.h"

namespace lockstep::train {
namespace {

bool is_folder(FileSystem& fs, const std::string& path) {
  const auto info = fs.stat(path);
  return info && info->kind == FileInfo::Kind::kDirectory;
}

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
    const std::size_t first = images_.size();
    const std::size_t above =
        (std::filesystem::path(word) / "").native().size();
    for (std::string& path :
         lockstep::internal::images_below(fs_, word, foreign_)) {
      std::string name = path.substr(above);
      images_.push_back({.path = std::move(path), .name = std::move(name)});
    }
    if (images_.size() == first) {
      foreign_.warn();
      no_images("there is no image in the folder", word);
    }
    std::ranges::sort(
        std::span(images_).subspan(first),
        {},
        &ListedImage::name);
  }

  std::vector<ListedImage> finish() {
    foreign_.warn();
    if (images_.empty()) {
      no_images("there is no image to look at", "");
    }
    return std::move(images_);
  }

 private:
  FileSystem& fs_;
  std::vector<ListedImage> images_;
  lockstep::internal::ForeignImages foreign_;
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
