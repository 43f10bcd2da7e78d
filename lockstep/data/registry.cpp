// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/data/registry.h"

#include <array>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/data/fashion_mnist.h"
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

DatasetParts open_folder(
    const std::string& directory,
    const DatasetOptions& options) {
  if (directory.empty()) {
    raise(
        {.code = ErrorCode::kNotFound,
         .op = "data.open",
         .message = "which folder has the pictures?",
         .hint = "name it: --data DIR",
         .detail = "E_NO_DATA"});
  }
  const auto [train, test] = image_folders(
      directory,
      {.size = options.image_size,
       .transform = options.transform,
       .augment = options.augment},
      options.split);
  // Files lie class by class: the first N of a run shall be of all classes.
  const auto mixed = [](const std::shared_ptr<ImageFolder>& part) {
    return subset(part, internal::permutation(part->size(), /*seed=*/0));
  };
  return {.train = mixed(train), .test = mixed(test)};
}

struct Entry {
  std::string_view name = {};
  DatasetParts (*open)(
      const std::string& directory,
      const DatasetOptions& options) = nullptr;
};

constexpr std::array kEntries{
    Entry{"fashion-mnist", open_mnist<fashion_mnist>},
    Entry{"folder", open_folder},
    Entry{"mnist", open_mnist<mnist>},
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
  return holds_image_classes(directory, fs) ? "folder" : "";
}

} // namespace lockstep
