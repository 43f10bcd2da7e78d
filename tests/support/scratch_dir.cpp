// SPDX-License-Identifier: BSD-3-Clause
#include "tests/support/scratch_dir.h"

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <system_error>

namespace lockstep::test {

ScratchDir::ScratchDir() {
  std::string pattern =
      (std::filesystem::temp_directory_path() / "lockstep_test_XXXXXX")
          .string();
  if (::mkdtemp(pattern.data()) == nullptr) {
    throw std::runtime_error("no scratch folder " + pattern);
  }
  path_ = std::move(pattern);
}

ScratchDir::~ScratchDir() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string ScratchDir::operator/(std::string_view name) const {
  return path_ + "/" + std::string(name);
}

} // namespace lockstep::test
