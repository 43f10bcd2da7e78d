// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/diagnose_folder.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "lockstep/base/strings.h"

namespace lockstep::ckpt {
namespace {

using Names = std::vector<std::string>;

Names names_in(const std::string& path, FileSystem& fs) {
  auto names = fs.list(path);
  return names ? *std::move(names) : Names();
}

bool has_all(const Names& names, std::initializer_list<std::string_view> all) {
  return std::ranges::all_of(all, [&names](std::string_view name) {
    return std::ranges::find(names, name) != names.end();
  });
}

bool is_checkpoint_name(std::string_view name) {
  constexpr std::array<std::string_view, 7>
      kEndings{".pt", ".pth", ".tar", ".bin", ".ckpt", ".safetensors", ".npz"};
  return std::ranges::any_of(kEndings, [name](std::string_view ending) {
    return name.ends_with(ending);
  });
}

Error unpacked_zip(Error error, const std::string& folder) {
  error.message =
      "this folder is the inside of a checkpoint that somebody unpacked; "
      "expected the file itself";
  error.hint = format(
      "zip it again: (cd '{}' && zip -0 -r -D ../{}.pt {})",
      escape(parent_directory(folder)),
      escape(base_name(folder)),
      escape(base_name(folder)));
  return error;
}

} // namespace

Error explain_folder(Error error, const std::string& path, FileSystem& fs) {
  const auto info = fs.stat(path);
  if (!info || info->kind != FileInfo::Kind::kDirectory) {
    return error;
  }
  const Names names = names_in(path, fs);
  if (has_all(names, {"data.pkl", "version"})) {
    return unpacked_zip(std::move(error), path);
  }
  if (names.size() == 1) {
    const std::string inner = path + "/" + names[0];
    if (has_all(names_in(inner, fs), {"data.pkl", "version"})) {
      return unpacked_zip(std::move(error), inner);
    }
  }
  if (has_all(names, {"pickle", "storages", "sys_info", "tensors"})) {
    error.message =
        "this folder is the inside of a tar checkpoint (PyTorch before 2017) "
        "that somebody unpacked; expected the file itself";
    error.hint = format(
        "pack it again: tar -cf model.pth -C '{}' sys_info pickle tensors "
        "storages",
        escape(path));
    return error;
  }
  const auto found = std::ranges::find_if(names, is_checkpoint_name);
  if (found != names.end()) {
    error.message = format(
        "expected a checkpoint, got a folder of {} entries",
        names.size());
    error.hint = format("name a file in it: {}/{}", path, escape(*found));
  }
  return error;
}

} // namespace lockstep::ckpt
