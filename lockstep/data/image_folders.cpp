// SPDX-License-Identifier: BSD-3-Clause
//
// Parts for training and for validation.
#include <algorithm>
#include <array>
#include <cmath>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/data/image_folder.h"

namespace lockstep {
namespace {

using Folders =
    std::pair<std::shared_ptr<ImageFolder>, std::shared_ptr<ImageFolder>>;

constexpr std::array<std::string_view, 2> kTrainNames{"train", "training"};
constexpr std::array<std::string_view, 5> kValNames{
    "val",
    "valid",
    "validation",
    "dev",
    "test"};

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

// True if a folder in `directory` has an image in it.
bool holds_classes(FileSystem& fs, const std::string& directory) {
  const auto has_image = [&](const std::string& name) {
    if (name.starts_with(".")) {
      return false;
    }
    const auto files = fs.list(format("{}/{}", directory, name));
    return files && std::ranges::any_of(*files, has_image_ending);
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
  const auto there = fs.list(directory);
  if (!there) {
    return "";
  }
  for (const std::string_view wanted : names) {
    for (const std::string& name : *there) {
      std::string path = format("{}/{}", directory, name);
      if (lower_case(name) == wanted && holds_classes(fs, path)) {
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
  if (train.classes() != val.classes()) {
    raise(
        {.code = ErrorCode::kMismatch,
         .op = "data.open",
         .message = format(
             "training and validation have different classes: {} and {}",
             join(train.classes(), ", "),
             join(val.classes(), ", ")),
         .path = path,
         .detail = "E_CLASSES"});
  }
}

// FNV-1a: where a path comes in its class. A file more or less in the class
// moves one other at most from part to part.
std::uint64_t place_of(std::string_view path, std::int64_t seed) {
  std::uint64_t hash =
      14695981039346656037ULL ^ static_cast<std::uint64_t>(seed);
  for (const char byte : path) {
    hash = (hash ^ static_cast<unsigned char>(byte)) * 1099511628211ULL;
  }
  return hash;
}

// Deals samples to two parts, class by class.
class Dealer {
 public:
  // `root`: as many characters of each path are where the folder is.
  Dealer(const SplitOptions& split, std::size_t root)
      : split_(split), root_(root) {}

  void deal(std::span<const ImageSample> of_class) {
    const auto count = static_cast<std::int64_t>(of_class.size());
    if (count < 2) {
      bad_split(
          "a class with one image cannot be split",
          "give it more images, or folders train and val of your own",
          of_class.front().path);
    }
    const auto share = static_cast<std::int64_t>(
        std::llround(split_.val_share * static_cast<double>(count)));
    const auto taken = std::clamp<std::int64_t>(share, 1, count - 1);
    std::vector<std::uint64_t> places;
    for (const ImageSample& sample : of_class) {
      const auto path = std::string_view(sample.path).substr(root_);
      places.push_back(place_of(path, split_.seed));
    }
    std::vector<std::uint64_t> sorted = places;
    std::ranges::sort(sorted);
    const std::uint64_t bound = sorted[static_cast<std::size_t>(taken)];
    for (std::size_t i = 0; i < of_class.size(); ++i) {
      (places[i] < bound ? val : train).push_back(of_class[i]);
    }
  }

  std::vector<ImageSample> train = {};
  std::vector<ImageSample> val = {};

 private:
  const SplitOptions& split_;
  std::size_t root_;
};

Folders split_folder(
    const std::string& directory,
    const ImageFolderOptions& options,
    const SplitOptions& split) {
  if (!(split.val_share > 0 && split.val_share < 1)) {
    bad_split(
        format(
            "the share of validation must be between 0 and 1, got {}",
            split.val_share),
        "",
        directory);
  }
  const auto whole = image_folder(directory, options);
  Dealer dealer(split, directory.size());
  std::span<const ImageSample> left = whole->samples();
  while (!left.empty()) {
    const auto end = std::ranges::find_if(left, [&](const auto& sample) {
      return sample.label != left.front().label;
    });
    const auto count = static_cast<std::size_t>(end - left.begin());
    dealer.deal(left.first(count));
    left = left.subspan(count);
  }
  const auto part = [&](std::vector<ImageSample> samples,
                        ImageFolderOptions how) {
    how.skip_bad_images = false; // those are out already
    return std::make_shared<ImageFolder>(
        std::move(samples),
        whole->classes(),
        std::move(how),
        whole->bad_images());
  };
  return {
      part(std::move(dealer.train), options),
      part(std::move(dealer.val), for_validation(options))};
}

} // namespace

bool holds_image_classes(const std::string& directory, FileSystem& fs) {
  return holds_classes(fs, directory) ||
         !part_folder(fs, directory, kTrainNames).empty();
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
