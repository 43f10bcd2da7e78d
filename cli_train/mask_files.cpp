// SPDX-License-Identifier: BSD-3-Clause
#include "cli_train/mask_files.h"

#include <filesystem>
#include <map>

#include "lockstep/base/error.h"
#include "lockstep/base/fs.h"
#include "lockstep/base/strings.h"
#include "lockstep/data/augment.h"

namespace lockstep::cli_train {
namespace {

std::string mask_path(
    const std::string& folder,
    const train::ListedImage& image) {
  std::filesystem::path path = std::filesystem::path(folder) / image.name;
  path.replace_extension(".png");
  return path.lexically_normal().string();
}

[[noreturn]] void same_name(std::string message, std::string path) {
  raise(
      {.code = ErrorCode::kInvalidArgument,
       .op = "predict",
       .message = std::move(message),
       .hint = "name another folder, or fewer images",
       .path = std::move(path),
       .detail = "E_SAME_NAME"});
}

void check_names(
    const std::vector<train::ListedImage>& images,
    const std::string& folder) {
  std::map<std::string, std::string> owners;
  for (const train::ListedImage& image : images) {
    const std::string mask = mask_path(folder, image);
    const auto [owner, is_new] = owners.emplace(mask, image.path);
    if (!is_new) {
      same_name(
          format(
              "'{}' and '{}' would have the same mask",
              escape(owner->second),
              escape(image.path)),
          mask);
    }
    std::error_code code; // what is not there is another file
    if (std::filesystem::equivalent(mask, image.path, code)) {
      same_name("the mask would take the place of its image", mask);
    }
  }
}

} // namespace

void write_masks(
    PredictionJob& job,
    const std::string& folder,
    const std::function<void(const std::string& path, const std::string& mask)>&
        tell) {
  check_names(job.images(), folder);
  FileSystem& fs = real_fs();
  job.run_masks([&](const MaskedImage& image) {
    const std::string path = mask_path(folder, image.image);
    fs.create_directories(parent_directory(path)).value();
    write_png(path, image.mask, fs);
    tell(image.image.path, path);
  });
}

} // namespace lockstep::cli_train
