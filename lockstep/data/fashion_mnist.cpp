// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>
#include <exception>
#include <optional>
#include <thread>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/data/internal/idx_file.h"
#include "lockstep/data/open_dataset.h"

namespace lockstep {
namespace {

constexpr std::int64_t kSide = 28;
constexpr std::int64_t kClasses = 10;

// What tells one family member from the other.
struct Family {
  std::string_view name = {};
  std::string_view default_folder = {};
  std::string_view hint = {};
  float mean = 0;
  float std = 1;
};

constexpr Family kFashionMnist{
    .name = "FashionMNIST",
    .default_folder = kFashionMnistFolder,
    .hint =
        "apt install dataset-fashion-mnist, or name the folder with "
        "--data-dir",
    .mean = 0.2860F,
    .std = 0.3530F};

constexpr Family kMnist{
    .name = "MNIST",
    .default_folder = "",
    .hint = "name the folder that holds the four IDX files with --data-dir",
    .mean = 0.1307F,
    .std = 0.3081F};

[[noreturn]] void
not_found(const Family& family, std::string message, std::string path) {
  raise(
      {.code = ErrorCode::kNotFound,
       .op = "data.open",
       .message = std::move(message),
       .hint = std::string(family.hint),
       .path = std::move(path),
       .detail = "E_NO_DATA"});
}

// A plain file goes first: it needs no decoding.
std::array<std::string, 2> file_names(std::string_view part, bool train) {
  std::string name = train ? "train-" : "t10k-";
  name += part;
  return {name, name + ".gz"};
}

std::string find_file(
    FileSystem& fs,
    const Family& family,
    const std::string& directory,
    std::span<const std::string, 2> names) {
  const std::string inner = directory + "/" + std::string(family.name);
  const std::array folders{
      directory,
      directory + "/raw",
      inner + "/raw",
      inner};
  for (const std::string& folder : folders) {
    for (const std::string& name : names) {
      std::string path = format("{}/{}", folder, name);
      const Result<FileInfo> info = fs.stat(path);
      if (info && info->kind == FileInfo::Kind::kFile) {
        return path;
      }
    }
  }
  not_found(
      family,
      format(
          "{} files are missing; looked for {} and {} here and in raw, "
          "{}/raw, {}",
          family.name,
          names[0],
          names[1],
          family.name,
          family.name),
      directory);
}

std::string check_folder(
    FileSystem& fs,
    const Family& family,
    const std::string& directory) {
  std::string folder =
      directory.empty() ? std::string(family.default_folder) : directory;
  if (folder.empty()) {
    not_found(family, format("no folder given for {}", family.name), "");
  }
  const Result<FileInfo> info = fs.stat(folder);
  if (!info || info->kind != FileInfo::Kind::kDirectory) {
    const std::string name = file_names("images-idx3-ubyte", true)[1];
    not_found(
        family,
        format(
            "folder of {} {}; expected one with {} and its siblings",
            family.name,
            info ? "is not a folder" : "does not exist",
            name),
        folder);
  }
  return folder;
}

[[noreturn]] void
corrupt(std::string message, const std::string& path, std::uint64_t offset) {
  raise(
      {.code = ErrorCode::kCorrupt,
       .op = "data.open",
       .message = std::move(message),
       .path = path,
       .offset = offset,
       .detail = "E_DATA_FILE"});
}

struct FilePaths {
  std::string images = {};
  std::string labels = {};
};

// Sizes and labels as the family promises, told with file and offset.
void check(
    const FilePaths& paths,
    const IdxArray& images,
    const IdxArray& labels) {
  constexpr std::uint64_t kFirstSize = 4;
  for (std::size_t i = 1; i < images.sizes.size(); ++i) {
    if (images.sizes[i] != kSide) {
      corrupt(
          format(
              "images have the wrong size; expected {} x {}, got {} x {}",
              kSide,
              kSide,
              images.sizes.at(1),
              images.sizes.at(2)),
          paths.images,
          kFirstSize + 4 * i);
    }
  }
  if (images.sizes.at(0) != labels.sizes.at(0)) {
    corrupt(
        format(
            "images and labels do not fit; expected {} labels as there are "
            "images, got {}",
            images.sizes.at(0),
            labels.sizes.at(0)),
        paths.labels,
        kFirstSize);
  }
  if (images.sizes.at(0) == 0) {
    corrupt("file holds no images", paths.images, kFirstSize);
  }
  const std::uint8_t* label = labels.elements.data.get();
  const std::uint8_t* end = label + labels.elements.size;
  const std::uint8_t* wrong =
      std::find_if(label, end, [](std::uint8_t x) { return x >= kClasses; });
  if (wrong != end) {
    corrupt(
        format(
            "label of sample {} is not a class; expected 0 to {}, got {}",
            wrong - label,
            kClasses - 1,
            *wrong),
        paths.labels,
        labels.data_offset + static_cast<std::uint64_t>(wrong - label));
  }
}

struct IdxPair {
  IdxArray images = {};
  IdxArray labels = {};
};

// Both files at once; an error in the images is told first.
IdxPair read_both(FileSystem& fs, const FilePaths& paths) {
  IdxPair pair;
  std::exception_ptr label_error;
  std::jthread labels_thread([&] {
    try {
      pair.labels = read_idx(fs, paths.labels, 1);
    } catch (...) {
      label_error = std::current_exception();
    }
  });
  pair.images = read_idx(fs, paths.images, 3);
  labels_thread.join();
  if (label_error) {
    std::rethrow_exception(label_error);
  }
  return pair;
}

std::shared_ptr<ImageDataset> open(
    const Family& family,
    const std::string& directory,
    const MnistOptions& options) {
  FileSystem& fs = options.fs == nullptr ? real_fs() : *options.fs;
  const std::string folder = check_folder(fs, family, directory);
  const bool train = options.train;
  const FilePaths paths{
      .images =
          find_file(fs, family, folder, file_names("images-idx3-ubyte", train)),
      .labels = find_file(
          fs,
          family,
          folder,
          file_names("labels-idx1-ubyte", train))};
  IdxPair pair = read_both(fs, paths);
  check(paths, pair.images, pair.labels);
  TransformOptions transform = options.transform;
  if (transform.mean.empty()) {
    transform.mean = {family.mean};
  }
  if (transform.std.empty()) {
    transform.std = {family.std};
  }
  return std::make_shared<ImageDataset>(
      LabelledImages{
          .shape = {.channels = 1, .height = kSide, .width = kSide},
          .pixels = std::move(pair.images.elements),
          .labels = std::move(pair.labels.elements),
          .num_classes = kClasses},
      transform);
}

} // namespace

std::shared_ptr<ImageDataset> fashion_mnist(
    const std::string& directory,
    const MnistOptions& options) {
  return open(kFashionMnist, directory, options);
}

std::shared_ptr<ImageDataset> mnist(
    const std::string& directory,
    const MnistOptions& options) {
  return open(kMnist, directory, options);
}

} // namespace lockstep
