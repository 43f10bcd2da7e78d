// SPDX-License-Identifier: BSD-3-Clause
//
// Files of testdata that have a description beside them: x.pt and
// x.pt.expect.json.
#pragma once

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace lockstep::test {

inline constexpr std::string_view kDescription = ".expect.json";

/// The entries of a folder to test, sorted: those that are described, and every
/// other file, whose test then fails for want of a description.
inline std::vector<std::string> expected_files(const std::string& folder) {
  namespace fs = std::filesystem;
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string path = entry.path().string();
    const bool is_described = fs::exists(path + std::string(kDescription));
    if (!path.ends_with(kDescription) &&
        (is_described || entry.is_regular_file())) {
      files.push_back(path);
    }
  }
  std::ranges::sort(files);
  return files;
}

/// The description of the file at `path`.
inline nlohmann::json expectation_of(const std::string& path) {
  std::ifstream file(path + std::string(kDescription));
  return nlohmann::json::parse(file);
}

/// Name of a case that is a path: its file name, as GoogleTest allows it.
inline std::string file_test_name(
    const testing::TestParamInfo<std::string>& info) {
  std::string name = std::filesystem::path(info.param).filename().string();
  std::ranges::replace_if(
      name,
      [](unsigned char c) { return std::isalnum(c) == 0; },
      '_');
  return name;
}

} // namespace lockstep::test
