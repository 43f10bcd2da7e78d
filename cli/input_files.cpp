// SPDX-License-Identifier: BSD-3-Clause
#include "cli/input_files.h"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "lockstep/base/fs.h"
#include "lockstep/base/strings.h"

namespace lockstep::cli {
namespace {

namespace fs = std::filesystem;

// Without links, dots and a slash at the end.
fs::path plain(const std::string& path) {
  std::error_code code;
  fs::path place = fs::weakly_canonical(fs::absolute(path, code), code);
  return place.has_filename() ? place : place.parent_path();
}

// What is read of a folder of torch.distributed.checkpoint, or of another one.
bool is_read_of(const fs::path& folder, const fs::path& file) {
  std::error_code code;
  const fs::path name = file.filename();
  return !fs::exists(folder / ".metadata", code) || name == ".metadata" ||
         name.extension() == ".distcp" || name.extension() == ".safetensors";
}

bool is_in(const fs::path& folder, const fs::path& file) {
  const auto end =
      std::mismatch(folder.begin(), folder.end(), file.begin(), file.end());
  return end.first == folder.end() && is_read_of(folder, file);
}

// By their names as they are given, too: those of a cache are links.
bool is_named_by(const fs::path& index, const fs::path& file) {
  std::error_code code;
  if (!index.filename().string().ends_with(".index.json") ||
      !fs::equivalent(index.parent_path(), file.parent_path(), code)) {
    return false;
  }
  const auto text = read_text(real_fs(), index.string());
  return text && text->find(format("\"{}\"", file.filename().string())) !=
                     std::string::npos;
}

} // namespace

bool is_same_file(const std::string& a, const std::string& b) {
  std::error_code code;
  return a == b || std::filesystem::equivalent(a, b, code);
}

bool is_input(const std::string& path, const std::string& input) {
  return is_same_file(path, input == "-" ? "/dev/stdin" : input);
}

bool is_part_of(std::span<const std::string> inputs, const std::string& path) {
  std::error_code code;
  const fs::path file = plain(path);
  return fs::exists(file, code) &&
         std::ranges::any_of(inputs, [&](const std::string& input) {
           const fs::path place = plain(input);
           return fs::is_directory(place, code)
                      ? is_in(place, file)
                      : is_named_by(place, file) ||
                            is_named_by(
                                fs::absolute(input, code),
                                fs::absolute(path, code));
         });
}

} // namespace lockstep::cli
