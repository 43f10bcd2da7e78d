// SPDX-License-Identifier: BSD-3-Clause
//
// Parts for training and for validation.
#include <algorithm>
#include <array>
#include <cmath>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/data/image_folder.h"
#include "lockstep/data/internal/permutation.h"

namespace lockstep {
namespace {

using Folders =
    std::pair<std::shared_ptr<ImageFolder>, std::shared_ptr<ImageFolder>>;

// Without what is random.
ImageFolderOptions for_validation(ImageFolderOptions options) {
  options.transform.crop_padding = 0;
  options.transform.horizontal_flip = false;
  return options;
}

// The folder of the validation images beside `train`; empty if there is none.
std::string validation_folder(FileSystem& fs, const std::string& directory) {
  constexpr std::array<std::string_view, 4> kNames{
      "val",
      "valid",
      "validation",
      "test"};
  for (const std::string_view name : kNames) {
    const std::string path = format("{}/{}", directory, name);
    const Result<FileInfo> info = fs.stat(path);
    if (info && info->kind == FileInfo::Kind::kDirectory) {
      return path;
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

// The samples of one class from `first` on, dealt to the two parts.
void deal(
    std::span<const ImageSample> of_class,
    const SplitOptions& split,
    std::vector<ImageSample>& train,
    std::vector<ImageSample>& val) {
  const auto count = static_cast<std::int64_t>(of_class.size());
  if (count < 2) {
    raise(
        {.code = ErrorCode::kInvalidArgument,
         .op = "data.open",
         .message = "a class with one image cannot be split",
         .hint = "give it more images, or folders train and val of your own",
         .path = of_class.front().path,
         .detail = "E_DATA_OPTION"});
  }
  const auto share = static_cast<std::int64_t>(
      std::llround(split.val_share * static_cast<double>(count)));
  const auto taken = std::clamp<std::int64_t>(share, 1, count - 1);
  std::vector<std::int64_t> order =
      internal::permutation(count, static_cast<std::uint64_t>(split.seed));
  std::sort(order.begin(), order.begin() + taken);
  std::sort(order.begin() + taken, order.end());
  for (std::int64_t i = 0; i < count; ++i) {
    const auto place = static_cast<std::size_t>(i);
    (i < taken ? val : train)
        .push_back(of_class[static_cast<std::size_t>(order[place])]);
  }
}

Folders split_folder(
    const std::string& directory,
    const ImageFolderOptions& options,
    const SplitOptions& split) {
  if (!(split.val_share > 0 && split.val_share < 1)) {
    raise(
        {.code = ErrorCode::kInvalidArgument,
         .op = "data.open",
         .message = format(
             "the share of validation must be between 0 and 1, got {}",
             split.val_share),
         .detail = "E_DATA_OPTION"});
  }
  const auto whole = image_folder(directory, options);
  std::vector<ImageSample> train;
  std::vector<ImageSample> val;
  const std::span<const ImageSample> samples = whole->samples();
  for (std::size_t first = 0; first < samples.size();) {
    const auto end = std::ranges::find_if(
        samples.subspan(first),
        [&](const ImageSample& sample) {
          return sample.label != samples[first].label;
        });
    const auto count = static_cast<std::size_t>(end - samples.begin()) - first;
    deal(samples.subspan(first, count), split, train, val);
    first += count;
  }
  ImageFolderOptions checked = options;
  checked.skip_bad_images = false; // those are out already
  return {
      std::make_shared<ImageFolder>(
          std::move(train),
          whole->classes(),
          checked),
      std::make_shared<ImageFolder>(
          std::move(val),
          whole->classes(),
          for_validation(checked))};
}

} // namespace

bool holds_image_classes(const std::string& directory, FileSystem& fs) {
  const auto has_image = [&](const std::string& folder) {
    const auto names = fs.list(folder);
    return names && std::ranges::any_of(*names, has_image_ending);
  };
  for (const std::string& parent : {directory + "/train", directory}) {
    const auto names = fs.list(parent);
    if (names && std::ranges::any_of(*names, [&](const std::string& name) {
          return has_image(parent + "/" + name);
        })) {
      return true;
    }
  }
  return false;
}

Folders image_folders(
    const std::string& directory,
    const ImageFolderOptions& options,
    const SplitOptions& split) {
  FileSystem& fs = options.fs == nullptr ? real_fs() : *options.fs;
  const std::string of_train = directory + "/train";
  const std::string of_val = validation_folder(fs, directory);
  if (of_val.empty() || !fs.stat(of_train)) {
    return split_folder(directory, options, split);
  }
  auto train = image_folder(of_train, options);
  auto val = image_folder(of_val, for_validation(options));
  check_classes(*train, *val, of_val);
  return {std::move(train), std::move(val)};
}

} // namespace lockstep
