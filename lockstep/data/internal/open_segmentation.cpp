// SPDX-License-Identifier: BSD-3-Clause
//
// Images with masks.
#include <algorithm>
#include <array>
#include <atomic>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/internal/uncounted.h"
#include "lockstep/base/strings.h"
#include "lockstep/data/internal/file_parts.h"
#include "lockstep/data/internal/formats.h"
#include "lockstep/data/internal/image_decoders.h"
#include "lockstep/data/internal/image_options.h"
#include "lockstep/data/internal/labels.h"
#include "lockstep/data/internal/mask_folders.h"

namespace lockstep::internal {
namespace {

// The numbers that occur in masks.
using Numbers = std::array<std::atomic<bool>, 256>;

void add_numbers(FileSystem& fs, const std::string& path, Numbers& numbers) {
  const std::string bytes = read_text(fs, path).value();
  const Image mask = decode_mask(as_byte_span(bytes), path);
  std::array<bool, 256> found{};
  for (const std::uint8_t number : mask.pixels) {
    found.at(number) = true;
  }
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (found.at(i)) {
      numbers.at(i) = true;
    }
  }
}

// All masks are read once.
void read_numbers(
    FileSystem& fs,
    const MaskFolders& folders,
    bool skip_bad_images,
    Numbers& numbers) {
  for (const MaskPairs& part : folders.parts) {
    const auto read = [&](std::int64_t i) {
      add_numbers(fs, part.masks[static_cast<std::size_t>(i)], numbers);
    };
    if (skip_bad_images) {
      static_cast<void>(image_errors(std::ssize(part.masks), read));
    } else {
      for_each_sample(std::ssize(part.masks), read);
    }
  }
}

// What the numbers say.
struct MaskClasses {
  std::int64_t count = 0;
  bool is_255_one = false;
  std::vector<std::string> notes = {};
};

// Grey levels that a painter chose, or that a resizing made of edges, are no
// numbers of classes.
// Errors: throws kMismatch (E_LABEL) for many classes of which few occur, and
// for so many that somebody has surely named them.
void refuse_levels(
    const Numbers& numbers,
    std::int64_t count,
    const std::string& path) {
  constexpr std::int64_t kMany = 64;
  constexpr std::int64_t kTooMany = 200;
  std::vector<std::string> present;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (numbers.at(i)) {
      present.push_back(format("{}", i));
    }
  }
  const bool are_few = 4 * std::ssize(present) < count;
  if (count > kTooMany || (count > kMany && are_few)) {
    bad_label(
        format(
            "the masks have {} different numbers up to {}, which would be {} "
            "classes: {}",
            present.size(),
            present.back(),
            count,
            some_names(present)),
        path,
        "number the classes 0, 1, 2, ..., without grey edges; if there are so "
        "many, name them all in classes.txt, one in a line");
  }
}

MaskClasses
classes_of(const Numbers& numbers, std::size_t names, const std::string& path) {
  MaskClasses classes;
  std::vector<std::string> absent;
  for (std::int64_t i = 0; i < kUncountedPixel; ++i) {
    if (numbers.at(static_cast<std::size_t>(i))) {
      classes.count = i + 1;
    }
  }
  const bool has_255 = numbers.at(kUncountedPixel);
  if (classes.count <= 1 && has_255 && (names == 0 || names == 2)) {
    classes.count = 2;
    classes.is_255_one = true;
    classes.notes.emplace_back(
        "the masks have the numbers 0 and 255 only: 255 is read as class 1");
    return classes;
  }
  if (names == 0) {
    refuse_levels(numbers, classes.count, path);
  } else {
    if (classes.count > static_cast<std::int64_t>(names)) {
      bad_label(
          format(
              "the masks have the class {}, and classes.txt has names for {}",
              classes.count - 1,
              names),
          path);
    }
    classes.count = static_cast<std::int64_t>(names);
  }
  for (std::int64_t i = 0; i < classes.count; ++i) {
    if (!numbers.at(static_cast<std::size_t>(i))) {
      absent.push_back(format("{}", i));
    }
  }
  if (!absent.empty()) {
    classes.notes.push_back(format(
        "{} of {} classes are in no mask: {}",
        absent.size(),
        classes.count,
        some_names(absent)));
  }
  if (has_255) {
    classes.notes.emplace_back("pixels of the number 255 are not counted");
  }
  return classes;
}

} // namespace

bool holds_segmentation(const std::string& path, FileSystem& fs) {
  return has_mask_folders(path, fs);
}

DatasetParts open_segmentation(
    const std::string& path,
    const DatasetOptions& options) {
  FileSystem& fs = real_fs();
  MaskFolders folders = find_masks(path, fs);
  // Where three names or more say how many classes there are, no mask is read
  // before its turn: a number beyond them is an error then.
  MaskClasses classes{.count = std::ssize(folders.classes)};
  if (folders.classes.size() < 3) {
    Numbers numbers{};
    read_numbers(fs, folders, options.skip_bad_images, numbers);
    classes = classes_of(numbers, folders.classes.size(), path);
  }
  if (classes.count > kUncountedPixel) {
    bad_label(
        format(
            "classes.txt has {} names; expected {} or fewer: the numbers of "
            "masks end there, and {} is what is not counted",
            classes.count,
            kUncountedPixel,
            kUncountedPixel),
        path);
  }
  std::vector<FileSamples> parts;
  parts.reserve(folders.parts.size());
  for (MaskPairs& pairs : folders.parts) {
    parts.push_back(
        {.images = std::move(pairs.images),
         .masks = std::move(pairs.masks),
         .num_classes = classes.count,
         .names = folders.classes,
         .is_255_one = classes.is_255_one});
  }
  DatasetParts made = file_parts(std::move(parts), path, options);
  made.notes.insert(
      made.notes.begin(),
      classes.notes.begin(),
      classes.notes.end());
  return made;
}

} // namespace lockstep::internal
