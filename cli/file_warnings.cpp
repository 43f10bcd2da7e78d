// SPDX-License-Identifier: BSD-3-Clause
#include "cli/file_warnings.h"

#include <algorithm>
#include <array>
#include <utility>

#include "cli/output.h"
#include "lockstep/base/strings.h"

namespace lockstep::cli {
namespace {

// What `inspect` and `verify` tell of; a file without them reads as others.
constexpr std::string_view kNoChecksums = "W_CRC_ABSENT";
// What reading leaves out, and so does whatever is made of the file.
constexpr std::array<std::string_view, 2> kLeftOut{
    "W_INDEX_UNUSED",
    "W_DTENSOR"};

} // namespace

std::vector<std::string> warning_lines(
    const ckpt::Checkpoint& file,
    std::string_view path) {
  const std::string front = path.empty() ? "" : escape(path, 200) + ": ";
  std::vector<std::string> texts;
  for (const ckpt::Warning& warning : file.warnings) {
    if (warning.name != kNoChecksums) {
      texts.push_back(front + to_string(warning));
    }
  }
  return texts;
}

void warn_of_left_out(const ckpt::Checkpoint& file) {
  for (const ckpt::Warning& warning : file.warnings) {
    if (std::ranges::find(kLeftOut, warning.name) != kLeftOut.end()) {
      print_warning(to_string(warning));
    }
  }
}

void print_warnings(std::span<const std::string> warnings) {
  for (const std::string& warning : warnings) {
    print_warning(warning);
  }
}

Json with_warnings(Json result, std::span<const std::string> warnings) {
  if (!warnings.empty()) {
    result.set("warnings", Json::array(warnings));
  }
  return result;
}

} // namespace lockstep::cli
