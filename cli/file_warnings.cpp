// SPDX-License-Identifier: BSD-3-Clause
#include "cli/file_warnings.h"

#include <algorithm>
#include <array>
#include <utility>

#include "cli/output.h"
#include "lockstep/base/strings.h"
#include "lockstep/ckpt/load/format_table.h"

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

void warn_of_new_format(const ckpt::Checkpoint& file, std::string_view to) {
  const bool has_numbers = // read as Python's (call_numpy_scalar)
      std::ranges::any_of(file.globals, [](const ckpt::GlobalUse& use) {
        return use.name.starts_with("numpy.") &&
               use.name.ends_with(".multiarray.scalar");
      });
  if (has_numbers && !ckpt::format_to_write(to)->writer.is_tensors_only) {
    print_warning("NumPy's numbers of the file are written as Python's");
  }
  if (file.program != nullptr && ckpt::format_of(file).writer.name != to) {
    print_warning(
        "the program's graph and sample inputs are not written; only its "
        "weights are");
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
