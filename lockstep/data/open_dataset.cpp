// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/data/open_dataset.h"

#include <algorithm>
#include <array>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/data/internal/file_parts.h"
#include "lockstep/data/internal/formats.h"
#include "lockstep/data/internal/permutation.h"
#include "lockstep/data/made_dataset.h"

namespace lockstep {
namespace {

template <auto kOpen>
DatasetParts open_mnist(
    const std::string& directory,
    const DatasetOptions& options) {
  return {
      .train =
          kOpen(directory, {.train = true, .transform = options.transform}),
      .test = kOpen(directory, {.train = false})};
}

// Classes of which nothing is left, and how a folder without parts was split.
std::vector<std::string> folder_notes(
    const std::string& directory,
    const ImageFolder& train,
    const ImageFolder& test) {
  std::vector<std::string> notes;
  for (const ImageFolder* part : {&train, &test}) {
    std::vector<bool> has(static_cast<std::size_t>(part->num_classes()));
    for (const ImageSample& sample : part->samples()) {
      has[static_cast<std::size_t>(sample.label)] = true;
    }
    std::vector<std::string> empty;
    for (std::size_t i = 0; i < has.size(); ++i) {
      if (!has[i]) {
        empty.push_back(part->class_names()[i]);
      }
    }
    if (!empty.empty()) {
      notes.push_back(format(
          "no image for {} is left of {}: {}",
          part == &train ? "training" : "validation",
          empty.size() == 1 ? "a class" : "some classes",
          some_names(empty)));
    }
  }
  if (!internal::has_class_parts(directory, real_fs())) {
    notes.push_back(format(
        "no part for validation: {} of {} images are taken for it, by a hash "
        "of their paths",
        test.size(),
        train.size() + test.size()));
  }
  return notes;
}

DatasetParts open_folder(
    const std::string& directory,
    const DatasetOptions& options) {
  const auto [train, test] =
      image_folders(directory, internal::image_options(options), options.split);
  // Files lie class by class: the first N of a run shall be of all classes.
  const auto mixed = [](const std::shared_ptr<ImageFolder>& part) {
    return subset(part, internal::permutation(part->size(), /*seed=*/0));
  };
  DatasetParts parts{
      .train = mixed(train),
      .test = mixed(test),
      .notes = folder_notes(directory, *train, *test),
      .bad_files = train->bad_images(),
      .has_files = true};
  // Of a folder that was split, both have those of the whole.
  for (const Error& error : test->bad_images()) {
    if (std::ranges::find(parts.bad_files, error) == parts.bad_files.end()) {
      parts.bad_files.push_back(error);
    }
  }
  return parts;
}

// Data that lie nowhere by themselves.
template <auto kOpen>
DatasetParts open_at(
    const std::string& directory,
    const DatasetOptions& options) {
  if (directory.empty()) {
    raise(
        {.code = ErrorCode::kNotFound,
         .op = "data.open",
         .message = "which folder or file has the data?",
         .hint = "name it: --data DIR",
         .detail = "E_NO_DATA"});
  }
  return kOpen(directory, options);
}

struct Entry {
  std::string_view name = {};
  DatasetParts (*open)(
      const std::string& directory,
      const DatasetOptions& options) = nullptr;
  bool may_have_files = false;
};

constexpr std::array kEntries{
    Entry{"arrays", open_at<internal::open_arrays>},
    Entry{"cifar10", open_at<internal::open_cifar10>},
    Entry{"cifar100", open_at<internal::open_cifar100>},
    Entry{"csv", open_at<internal::open_csv>, true},
    Entry{"fashion-mnist", open_mnist<fashion_mnist>},
    Entry{"folder", open_at<open_folder>, true},
    Entry{"idx", open_at<internal::open_idx>},
    Entry{"mnist", open_mnist<mnist>},
    Entry{"segmentation", open_at<internal::open_segmentation>, true},
};

} // namespace

std::vector<std::string> dataset_names() {
  std::vector<std::string> names;
  names.reserve(kEntries.size());
  for (const Entry& entry : kEntries) {
    names.emplace_back(entry.name);
  }
  return names;
}

bool may_have_image_files(std::string_view name) {
  return std::ranges::any_of(kEntries, [name](const Entry& entry) {
    return entry.name == name && entry.may_have_files;
  });
}

DatasetParts open_dataset(
    std::string_view name,
    const std::string& directory,
    const DatasetOptions& options) {
  for (const Entry& entry : kEntries) {
    if (entry.name == name) {
      return entry.open(directory, options);
    }
  }
  const std::vector<std::string> names = dataset_names();
  const std::string near = nearest(name, names);
  raise(
      {.code = ErrorCode::kInvalidArgument,
       .op = "data.open",
       .message = format(
           "unknown dataset '{}'; expected one of {}",
           escape(name),
           join(names, ", ")),
       .hint = near.empty() ? "" : format("did you mean {}?", near),
       .detail = "E_DATA_NAME"});
}

std::string dataset_in(const std::string& directory, FileSystem& fs) {
  if (directory.empty()) {
    return "";
  }
  for (const auto kind_of : {internal::idx_kind, internal::cifar_kind}) {
    std::string kind = kind_of(directory, fs);
    if (!kind.empty()) {
      return kind;
    }
  }
  // Folders of images and masks look like classes, and so may those that a
  // table names.
  return internal::holds_segmentation(directory, fs) ? "segmentation"
         : internal::holds_image_csv(directory, fs)  ? "csv"
         : holds_image_classes(directory, fs)        ? "folder"
         : internal::holds_arrays(directory, fs)     ? "arrays"
         : internal::holds_csv(directory, fs)        ? "csv"
                                                     : "";
}

std::string dataset_at(const std::string& path) {
  std::string found = dataset_in(path);
  if (!found.empty()) {
    return found;
  }
  const std::string names = join(dataset_names(), ", ");
  const bool is_there = real_fs().stat(path).has_value();
  raise(
      {.code = ErrorCode::kNotFound,
       .op = "data.open",
       .message = is_there ? "there are no data that are recognised"
                           : "no file, no folder and no data set is called so",
       .hint = is_there ? "expected one folder of pictures for each class, "
                          "images/ and masks/, a .csv, .npz, .safetensors or "
                          ".pt file, CIFAR's or IDX files; --data NAME says "
                          "what it is: " +
                              names
                        : "data sets are " + names,
       .path = path,
       .detail = "E_NO_DATA"});
}

} // namespace lockstep
