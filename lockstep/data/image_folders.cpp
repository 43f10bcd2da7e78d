// SPDX-License-Identifier: BSD-3-Clause
//
// Parts for training and for validation.
#include <algorithm>
#include <array>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/data/internal/formats.h"
#include "lockstep/data/internal/split.h"
#include "lockstep/data/open_dataset.h"

namespace lockstep {
namespace {

using Folders =
    std::pair<std::shared_ptr<ImageFolder>, std::shared_ptr<ImageFolder>>;

using internal::kTrainNames;
using internal::kValNames;

[[noreturn]] void
bad_split(std::string message, std::string hint, std::string path) {
  raise(
      {.code = ErrorCode::kInvalidArgument,
       .op = "data.open",
       .message = std::move(message),
       .hint = std::move(hint),
       .path = std::move(path),
       .detail = "E_DATA_OPTION"});
}

// Without what is random.
ImageFolderOptions for_validation(ImageFolderOptions options) {
  options.transform.crop_padding = 0;
  options.transform.horizontal_flip = false;
  options.augment = {};
  return options;
}

// True if a folder in `directory` has an image in it, or in a folder of its own
// as many levels below.
bool holds_classes(FileSystem& fs, const std::string& directory, int levels) {
  const auto has_image = [&](const std::string& name) {
    if (name.starts_with(".") || has_image_ending(name)) {
      return false;
    }
    const std::string folder = format("{}/{}", directory, name);
    const auto files = fs.list(folder);
    return files && (std::ranges::any_of(*files, has_image_ending) ||
                     (levels > 0 && holds_classes(fs, folder, levels - 1)));
  };
  const auto names = fs.list(directory);
  return names && std::ranges::any_of(*names, has_image);
}

// The folder in `directory` of the first of these names, in small or capital
// letters, that has classes in it; empty if there is none.
std::string part_folder(
    FileSystem& fs,
    const std::string& directory,
    std::span<const std::string_view> names) {
  constexpr int kLevels = 3; // classes may have parts
  const auto there = fs.list(directory);
  if (!there) {
    return "";
  }
  for (const std::string_view wanted : names) {
    for (const std::string& name : *there) {
      std::string path = format("{}/{}", directory, name);
      if (lower_case(name) == wanted && holds_classes(fs, path, kLevels)) {
        return path;
      }
    }
  }
  return "";
}

void check_classes(
    const ImageFolder& train,
    const ImageFolder& val,
    const std::string& path) {
  if (train.class_names() != val.class_names()) {
    raise(
        {.code = ErrorCode::kMismatch,
         .op = "data.open",
         .message = format(
             "training and validation have different classes: {} and {}",
             join(train.class_names(), ", "),
             join(val.class_names(), ", ")),
         .path = path,
         .detail = "E_CLASSES"});
  }
}

Folders split_folder(
    const std::string& directory,
    const ImageFolderOptions& options,
    const SplitOptions& split) {
  ImageFolderOptions uncached = options; // its parts are read, not the whole
  uncached.cache = ImageCache::kNone;
  const auto whole = image_folder(directory, uncached);
  const std::vector<ImageSample>& samples = whole->samples();
  std::vector<std::int64_t> labels;
  labels.reserve(samples.size());
  for (const ImageSample& sample : samples) {
    labels.push_back(sample.label);
  }
  const auto path_of = [&](std::int64_t i) -> const std::string& {
    return samples[static_cast<std::size_t>(i)].path;
  };
  const internal::SplitSamples parts = internal::split_samples(
      labels,
      [&](std::int64_t i) { return path_of(i).substr(directory.size()); },
      split,
      directory);
  if (!parts.single_groups.empty()) {
    const auto single = std::ranges::find(labels, parts.single_groups.front());
    bad_split(
        "a class with one image cannot be split",
        "give it more images, or folders train and val of your own",
        path_of(single - labels.begin()));
  }
  const auto part = [&](const std::vector<std::int64_t>& indices,
                        ImageFolderOptions how) {
    how.skip_bad_images = false; // those are out already
    std::vector<ImageSample> chosen;
    chosen.reserve(indices.size());
    for (const std::int64_t i : indices) {
      chosen.push_back(samples[static_cast<std::size_t>(i)]);
    }
    return std::make_shared<ImageFolder>(
        std::move(chosen),
        whole->class_names(),
        std::move(how),
        whole->bad_images());
  };
  return {part(parts.train, options), part(parts.val, for_validation(options))};
}

} // namespace

bool holds_image_classes(const std::string& directory, FileSystem& fs) {
  return holds_classes(fs, directory, /*levels=*/0) ||
         !part_folder(fs, directory, kTrainNames).empty();
}

bool internal::has_class_parts(const std::string& directory, FileSystem& fs) {
  return !part_folder(fs, directory, kTrainNames).empty() &&
         !part_folder(fs, directory, kValNames).empty();
}

Folders image_folders(
    const std::string& directory,
    const ImageFolderOptions& options,
    const SplitOptions& split) {
  FileSystem& fs = options.fs == nullptr ? real_fs() : *options.fs;
  const std::string of_train = part_folder(fs, directory, kTrainNames);
  const std::string of_val = part_folder(fs, directory, kValNames);
  if (of_train.empty() || of_val.empty()) {
    return split_folder(
        of_train.empty() ? directory : of_train,
        options,
        split);
  }
  auto train = image_folder(of_train, options);
  auto val = image_folder(of_val, for_validation(options));
  check_classes(*train, *val, of_val);
  return {std::move(train), std::move(val)};
}

} // namespace lockstep
