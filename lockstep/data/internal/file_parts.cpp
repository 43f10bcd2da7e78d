// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/data/internal/file_parts.h"

#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/data/internal/formats.h"
#include "lockstep/data/internal/split.h"

namespace lockstep::internal {
namespace {

std::vector<FileSamples> dealt(
    const FileSamples& samples,
    const std::string& root,
    const DatasetOptions& options,
    std::vector<std::string>& notes) {
  if (samples.images.size() < 2) {
    raise(
        {.code = ErrorCode::kInvalidArgument,
         .op = "data.open",
         .message = "one image cannot be split",
         .path = root,
         .detail = "E_DATA_OPTION"});
  }
  std::vector<std::int64_t> groups = samples.classes;
  groups.resize(samples.images.size()); // one without classes
  const SplitSamples parts = split_samples(
      groups,
      [&](std::int64_t i) {
        const std::string& path = samples.images[static_cast<std::size_t>(i)];
        return path.starts_with(root) ? path.substr(root.size()) : path;
      },
      options.split,
      root);
  for (const std::int64_t group : parts.single_groups) {
    notes.push_back(
        format("class {} has one image, which is for training", group));
  }
  notes.push_back(format(
      "no part for validation: {} of {} images are taken for it, by a hash of "
      "their paths",
      parts.val.size(),
      samples.images.size()));
  return {samples.part(parts.train), samples.part(parts.val)};
}

} // namespace

ImageFolderOptions image_options(const DatasetOptions& options) {
  return {
      .size = options.image_size,
      .transform = options.transform,
      .augment = options.augment,
      .skip_bad_images = options.skip_bad_images,
      .cache = options.cache,
      .cache_folder = options.cache_folder};
}

DatasetParts file_parts(
    std::vector<FileSamples> parts,
    const std::string& root,
    const DatasetOptions& options) {
  DatasetParts made{.has_files = true};
  if (parts.size() == 1) {
    parts = dealt(parts[0], root, options, made.notes);
  }
  const auto open = [&](FileSamples samples,
                        const ImageFolderOptions& of_part) {
    auto part = std::make_shared<FileDataset>(std::move(samples), of_part);
    made.bad_files.insert(
        made.bad_files.end(),
        part->bad_files().begin(),
        part->bad_files().end());
    return part;
  };
  ImageFolderOptions how = image_options(options);
  made.train = open(std::move(parts[0]), how);
  how.transform = for_validation(how.transform);
  how.augment = {};
  made.test = open(std::move(parts[1]), how);
  return made;
}

} // namespace lockstep::internal
