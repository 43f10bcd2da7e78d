// SPDX-License-Identifier: BSD-3-Clause
//
// CIFAR-10 and CIFAR-100 as their authors publish them: binary records of one
// or two labels and 3 x 32 x 32 pixels, or Python's pickles of dicts, which are
// read without running them. Source: www.cs.toronto.edu/~kriz/cifar.html.
#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/data/internal/array_parts.h"
#include "lockstep/data/internal/cifar_pickle.h"
#include "lockstep/data/internal/formats.h"

namespace lockstep::internal {
namespace {

constexpr std::int64_t kSide = 32;
constexpr std::int64_t kPixels = 3 * kSide * kSide;

// What tells one from the other.
struct Family {
  std::string_view title = {};
  std::int64_t num_classes = 0;
  /// Units: bytes in front of the pixels; the last one is the label.
  std::int64_t labels = 1;
  std::array<std::string_view, 2> binary_folders = {};
  std::array<std::string_view, 2> pickle_folders = {};
  std::span<const std::string_view> binary_train = {};
  std::string_view binary_test = {};
  std::span<const std::string_view> pickle_train = {};
  std::string_view pickle_test = {};
  /// Where the classes have names: beside binary files, in a pickle.
  std::string_view text_names = {};
  std::string_view pickle_names = {};
  std::string_view label_key = {};
  std::string_view names_key = {};
  /// torchvision's recipes have them.
  std::array<float, 3> mean = {};
  std::array<float, 3> std = {};
};

constexpr std::array<std::string_view, 5> kBatches{
    "data_batch_1",
    "data_batch_2",
    "data_batch_3",
    "data_batch_4",
    "data_batch_5"};
constexpr std::array<std::string_view, 5> kBinaryBatches{
    "data_batch_1.bin",
    "data_batch_2.bin",
    "data_batch_3.bin",
    "data_batch_4.bin",
    "data_batch_5.bin"};
constexpr std::array<std::string_view, 1> kTrain{"train"};
constexpr std::array<std::string_view, 1> kBinaryTrain{"train.bin"};

constexpr Family kCifar10{
    .title = "CIFAR-10",
    .num_classes = 10,
    .binary_folders = {"", "/cifar-10-batches-bin"},
    .pickle_folders = {"", "/cifar-10-batches-py"},
    .binary_train = kBinaryBatches,
    .binary_test = "test_batch.bin",
    .pickle_train = kBatches,
    .pickle_test = "test_batch",
    .text_names = "batches.meta.txt",
    .pickle_names = "batches.meta",
    .label_key = "labels",
    .names_key = "label_names",
    .mean = {0.4914F, 0.4822F, 0.4465F},
    .std = {0.2470F, 0.2435F, 0.2616F}};

constexpr Family kCifar100{
    .title = "CIFAR-100",
    .num_classes = 100,
    .labels = 2,
    .binary_folders = {"", "/cifar-100-binary"},
    .pickle_folders = {"", "/cifar-100-python"},
    .binary_train = kBinaryTrain,
    .binary_test = "test.bin",
    .pickle_train = kTrain,
    .pickle_test = "test",
    .text_names = "fine_label_names.txt",
    .pickle_names = "meta",
    .label_key = "fine_labels",
    .names_key = "fine_label_names",
    .mean = {0.5071F, 0.4865F, 0.4409F},
    .std = {0.2673F, 0.2564F, 0.2762F}};

// Where the files are, and which.
struct Found {
  std::string folder = {};
  bool is_binary = false;
};

std::optional<Found>
find(FileSystem& fs, const Family& family, const std::string& path) {
  for (const std::string_view inner : family.binary_folders) {
    const std::string folder = path + std::string(inner);
    if (is_file(fs, format("{}/{}", folder, family.binary_test)) ||
        is_file(fs, format("{}/{}", folder, family.binary_train[0]))) {
      return Found{.folder = folder, .is_binary = true};
    }
  }
  for (const std::string_view inner : family.pickle_folders) {
    const std::string folder = path + std::string(inner);
    // "train" and "test" are files here, but folders elsewhere.
    if (is_file(fs, format("{}/{}", folder, family.pickle_test)) &&
        is_file(fs, format("{}/{}", folder, family.pickle_train[0]))) {
      return Found{.folder = folder};
    }
  }
  return std::nullopt;
}

// Records of a mapped file; nothing is copied but the labels.
void add_binary(
    FileSystem& fs,
    const Family& family,
    const std::string& path,
    ArrayPart& part) {
  const std::shared_ptr<FileMapping> file = fs.map(path).value();
  const ByteSpan bytes = file->bytes();
  const std::int64_t record = family.labels + kPixels;
  const std::int64_t size = std::ssize(bytes);
  if (size == 0 || size % record != 0) {
    raise(
        {.code = ErrorCode::kCorrupt,
         .op = "data.open",
         .message = format(
             "not a whole number of records of {} bytes: the file has {}",
             record,
             size),
         .path = path,
         .offset = static_cast<std::uint64_t>(size / record * record),
         .detail = "E_DATA_FILE"});
  }
  const std::int64_t count = size / record;
  part.inputs.rows.push_back(
      {.owner = file,
       .data = bytes.data() + family.labels,
       .count = count,
       .stride = record});
  for (std::int64_t i = 0; i < count; ++i) {
    const auto at = static_cast<std::size_t>(i * record + family.labels - 1);
    part.classes.push_back(std::to_integer<std::int64_t>(bytes[at]));
  }
}

void add_pickle(
    FileSystem& fs,
    const Family& family,
    const std::string& path,
    ArrayPart& part) {
  CifarBatch batch = read_cifar_pickle(fs, path, family.label_key, kPixels);
  part.inputs.rows.push_back(
      {.owner = batch.pixels,
       .data = as_byte_span(*batch.pixels).data(),
       .count = std::ssize(batch.labels),
       .stride = kPixels});
  part.classes.insert(
      part.classes.end(),
      batch.labels.begin(),
      batch.labels.end());
}

ArrayPart read_part(
    FileSystem& fs,
    const Family& family,
    const Found& found,
    std::span<const std::string_view> files) {
  ArrayPart part{
      .inputs = {.shape = {3, kSide, kSide}},
      .file = format("{}/{}", found.folder, files[0])};
  for (const std::string_view name : files) {
    const std::string path = format("{}/{}", found.folder, name);
    (found.is_binary ? add_binary : add_pickle)(fs, family, path, part);
  }
  return part;
}

// Empty where no file has them.
std::vector<std::string>
class_names(FileSystem& fs, const Family& family, const Found& found) {
  const std::string pickle = format("{}/{}", found.folder, family.pickle_names);
  const std::string text = format("{}/{}", found.folder, family.text_names);
  std::vector<std::string> names;
  if (!found.is_binary && is_file(fs, pickle)) {
    names = read_cifar_names(fs, pickle, family.names_key);
  } else if (is_file(fs, text)) {
    for (std::string& line : split(read_text(fs, text).value(), '\n')) {
      if (line.ends_with('\r')) {
        line.pop_back();
      }
      if (!line.empty()) {
        names.push_back(std::move(line));
      }
    }
  }
  if (names.empty()) {
    for (std::int64_t i = 0; i < family.num_classes; ++i) {
      names.push_back(format("{}", i));
    }
  }
  if (std::ssize(names) != family.num_classes) {
    raise(
        {.code = ErrorCode::kCorrupt,
         .op = "data.open",
         .message = format(
             "{} has {} classes, and names for {}",
             family.title,
             family.num_classes,
             names.size()),
         .path = found.is_binary ? text : pickle,
         .detail = "E_DATA_FILE"});
  }
  return names;
}

DatasetParts open_family(
    const Family& family,
    const std::string& path,
    DatasetOptions options) {
  FileSystem& fs = real_fs();
  const auto found = find(fs, family, path);
  if (!found) {
    no_such_data(
        format("there are no files of {}", family.title),
        path,
        format(
            "expected {} and its siblings, or the pickles {}, ..., {}",
            family.binary_test,
            family.pickle_train[0],
            family.pickle_test));
  }
  if (options.transform.mean.empty()) {
    options.transform.mean.assign(family.mean.begin(), family.mean.end());
  }
  if (options.transform.std.empty()) {
    options.transform.std.assign(family.std.begin(), family.std.end());
  }
  const bool is_binary = found->is_binary;
  const std::array test{is_binary ? family.binary_test : family.pickle_test};
  std::vector<ArrayPart> parts;
  parts.push_back(read_part(
      fs,
      family,
      *found,
      is_binary ? family.binary_train : family.pickle_train));
  parts.push_back(read_part(fs, family, *found, test));
  return array_parts(
      std::move(parts),
      options,
      {.classes = class_names(fs, family, *found)});
}

} // namespace

std::string cifar_kind(const std::string& path, FileSystem& fs) {
  // "train.bin" may be anybody's: it has whole records here, or a sibling.
  const auto looks_like = [&](const Family& family) {
    const auto found = find(fs, family, path);
    if (!found || !found->is_binary) {
      return found.has_value();
    }
    const auto file = [&](std::string_view name) {
      return fs.stat(format("{}/{}", found->folder, name));
    };
    const auto train = file(family.binary_train[0]);
    const auto record = static_cast<std::uint64_t>(family.labels + kPixels);
    return file(family.binary_test) ||
           (train && train->size > 0 && train->size % record == 0);
  };
  return looks_like(kCifar10)    ? "cifar10"
         : looks_like(kCifar100) ? "cifar100"
                                 : "";
}

DatasetParts open_cifar10(
    const std::string& path,
    const DatasetOptions& options) {
  return open_family(kCifar10, path, options);
}

DatasetParts open_cifar100(
    const std::string& path,
    const DatasetOptions& options) {
  return open_family(kCifar100, path, options);
}

} // namespace lockstep::internal
