// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/data/internal/mask_folders.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/data/images.h"
#include "lockstep/data/internal/formats.h"
#include "lockstep/data/internal/image_walk.h"

namespace lockstep::internal {
namespace {

constexpr std::array<std::string_view, 4> kImageFolders{
    "images",
    "image",
    "imgs",
    "jpegimages"};
constexpr std::array<std::string_view, 5> kMaskFolders{
    "masks",
    "mask",
    "annotations",
    "segmentationclass",
    "labels"};
constexpr std::string_view kMaskEnding = "_mask";
constexpr std::string_view kMasksHint =
    "expected images/ and masks/, each in train/ and val/ or with train/ and "
    "val/ in it, or VOC's JPEGImages/ and SegmentationClass/";

struct FolderPair {
  std::string images = {};
  std::string masks = {};

  [[nodiscard]] bool is_there() const {
    return !images.empty() && !masks.empty();
  }
};

FolderPair pair_in(FileSystem& fs, const std::string& folder) {
  return {
      .images = folder_named(fs, folder, kImageFolders),
      .masks = folder_named(fs, folder, kMaskFolders)};
}

// Folders of the parts: one, or training and validation; none.
std::vector<FolderPair> pairs_of(FileSystem& fs, const std::string& folder) {
  const FolderPair whole = pair_in(fs, folder);
  if (whole.is_there()) {
    const FolderPair train{
        .images = folder_named(fs, whole.images, kTrainNames),
        .masks = folder_named(fs, whole.masks, kTrainNames)};
    const FolderPair val{
        .images = folder_named(fs, whole.images, kValNames),
        .masks = folder_named(fs, whole.masks, kValNames)};
    return train.is_there() && val.is_there() ? std::vector{train, val}
           : train.is_there()                 ? std::vector{train}
                                              : std::vector{whole};
  }
  const FolderPair train = pair_in(fs, folder_named(fs, folder, kTrainNames));
  const FolderPair val = pair_in(fs, folder_named(fs, folder, kValNames));
  return !train.is_there() ? std::vector<FolderPair>()
         : val.is_there()  ? std::vector{train, val}
                           : std::vector{train};
}

// VOC's folder itself, or one that it is unpacked to.
std::string voc_folder(FileSystem& fs, const std::string& folder) {
  for (const std::string_view inner :
       {"",
        "/VOC2012",
        "/VOC2007",
        "/VOCdevkit/VOC2012",
        "/VOCdevkit/VOC2007"}) {
    std::string path = folder + std::string(inner);
    if (is_file(fs, path + "/ImageSets/Segmentation/train.txt")) {
      return path;
    }
  }
  return "";
}

std::vector<std::string> lines_of(FileSystem& fs, const std::string& path) {
  std::vector<std::string> lines;
  for (std::string& line : split(read_text(fs, path).value(), '\n')) {
    while (line.ends_with('\r') || line.ends_with(' ')) {
      line.pop_back();
    }
    if (!line.empty()) {
      lines.push_back(std::move(line));
    }
  }
  return lines;
}

MaskPairs
voc_part(FileSystem& fs, const std::string& folder, std::string_view part) {
  MaskPairs pairs;
  for (const std::string& name :
       lines_of(fs, format("{}/ImageSets/Segmentation/{}.txt", folder, part))) {
    pairs.images.push_back(format("{}/JPEGImages/{}.jpg", folder, name));
    pairs.masks.push_back(format("{}/SegmentationClass/{}.png", folder, name));
  }
  if (pairs.images.empty()) {
    no_such_data(
        "the list names no images",
        format("{}/ImageSets/Segmentation/{}.txt", folder, part),
        std::string(kMasksHint));
  }
  return pairs;
}

// The paths of the files that are images, by their names without ending.
std::map<std::string, std::string>
by_stem(FileSystem& fs, const std::string& folder, ForeignImages& foreign) {
  std::map<std::string, std::string> paths;
  for (const std::string& name : fs.list(folder).value()) {
    const std::string path = format("{}/{}", folder, name);
    if (name.starts_with(".")) {
      continue;
    }
    if (!has_image_ending(name)) {
      foreign.add(path);
      continue;
    }
    const auto [before, is_new] = paths.try_emplace(stem_of(name), path);
    if (!is_new) {
      raise(
          {.code = ErrorCode::kMismatch,
           .op = "data.open",
           .message = format(
               "two images have one name: {} and {}",
               base_name(before->second),
               name),
           .path = path,
           .detail = "E_MASK_PAIR"});
    }
  }
  return paths;
}

[[noreturn]] void no_pairs(
    const std::vector<std::string>& lonely_images,
    const std::vector<std::string>& lonely_masks,
    const FolderPair& folders) {
  const std::string images = lonely_images.empty()
                                 ? ""
                                 : format(
                                       "{} without mask: {}",
                                       counted(lonely_images.size(), "image"),
                                       some_names(lonely_images));
  const std::string masks = lonely_masks.empty()
                                ? ""
                                : format(
                                      "{} without image: {}",
                                      counted(lonely_masks.size(), "mask"),
                                      some_names(lonely_masks));
  raise(
      {.code = ErrorCode::kMismatch,
       .op = "data.open",
       .message =
           images + (images.empty() || masks.empty() ? "" : "; ") + masks,
       .hint = "names are equal but for the ending: images/1.jpg and "
               "masks/1.png (or 1_mask.png)",
       .path = lonely_images.empty() ? folders.masks : folders.images,
       .detail = "E_MASK_PAIR"});
}

MaskPairs paired(FileSystem& fs, const FolderPair& folders) {
  ForeignImages foreign;
  const auto images = by_stem(fs, folders.images, foreign);
  auto masks = by_stem(fs, folders.masks, foreign);
  foreign.warn();
  if (images.empty()) {
    no_such_data(
        "there are no images",
        folders.images,
        std::string(kMasksHint));
  }
  MaskPairs pairs;
  std::vector<std::string> lonely;
  for (const auto& [stem, path] : images) {
    auto mask = masks.find(stem);
    if (mask == masks.end()) {
      mask = masks.find(stem + std::string(kMaskEnding));
    }
    if (mask == masks.end()) {
      lonely.push_back(base_name(path));
      continue;
    }
    pairs.images.push_back(path);
    pairs.masks.push_back(mask->second);
    masks.erase(mask);
  }
  std::vector<std::string> left;
  left.reserve(masks.size());
  for (const auto& [stem, path] : masks) {
    left.push_back(base_name(path));
  }
  if (!lonely.empty() || !left.empty()) {
    no_pairs(lonely, left, folders);
  }
  return pairs;
}

} // namespace

bool has_mask_folders(const std::string& folder, FileSystem& fs) {
  return !voc_folder(fs, folder).empty() || !pairs_of(fs, folder).empty();
}

MaskFolders find_masks(const std::string& folder, FileSystem& fs) {
  MaskFolders found;
  const std::string names = folder + "/classes.txt";
  if (is_file(fs, names)) {
    found.classes = lines_of(fs, names);
  }
  const std::string voc = voc_folder(fs, folder);
  if (!voc.empty()) {
    found.parts.push_back(voc_part(fs, voc, "train"));
    found.parts.push_back(voc_part(fs, voc, "val"));
    return found;
  }
  for (const FolderPair& pair : pairs_of(fs, folder)) {
    found.parts.push_back(paired(fs, pair));
  }
  if (found.parts.empty()) {
    no_such_data(
        "there are no images with masks",
        folder,
        std::string(kMasksHint));
  }
  return found;
}

} // namespace lockstep::internal
