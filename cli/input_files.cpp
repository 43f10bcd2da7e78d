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

constexpr std::string_view kIndexEnding = ".index.json";

// `file`, `input`: without links.
bool is_part(const std::string& file, const std::string& input) {
  const auto info = real_fs().stat(input);
  if (info && info->kind == FileInfo::Kind::kDirectory) {
    return file.starts_with(input + "/");
  }
  if (!info || !input.ends_with(kIndexEnding) ||
      parent_directory(input) != parent_directory(file)) {
    return false;
  }
  const auto index = read_text(real_fs(), input);
  return index &&
         index->find(format("\"{}\"", base_name(file))) != std::string::npos;
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
  const auto file = real_fs().resolve(path);
  return file && real_fs().stat(path) &&
         std::ranges::any_of(inputs, [&file](const std::string& input) {
           const auto place = real_fs().resolve(input);
           return place && is_part(*file, *place);
         });
}

} // namespace lockstep::cli
