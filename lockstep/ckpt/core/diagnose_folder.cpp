// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/core/diagnose_folder.h"

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

bool is_checkpoint_name(std::string_view name) {
  constexpr std::array<std::string_view, 7>
      kEndings{".pt", ".pth", ".tar", ".bin", ".ckpt", ".safetensors", ".npz"};
  return std::ranges::any_of(kEndings, [name](std::string_view ending) {
    return name.ends_with(ending);
  });
}

} // namespace

Error explain_folder(Error error, const std::string& path, FileSystem& fs) {
  const auto info = fs.stat(path);
  if (!info || info->kind != FileInfo::Kind::kDirectory) {
    return error;
  }
  const Names names = names_in(path, fs);
  const auto found = std::ranges::find_if(names, is_checkpoint_name);
  if (found != names.end()) {
    error.message = format(
        "expected a checkpoint, got a folder with {} entries",
        names.size());
    error.hint = format("name a file in it: {}/{}", path, escape(*found));
  }
  return error;
}

} // namespace lockstep::ckpt
