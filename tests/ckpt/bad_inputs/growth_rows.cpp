// SPDX-License-Identifier: BSD-3-Clause
//
// Row 51: pickles of 200 KB that make hundreds of megabytes of what they hold
// once. All are refused before 128 MiB are taken.
#include <algorithm>
#include <cctype>

#include "tests/ckpt/bad_inputs/bad_input.h"
#include "tests/ckpt/growth/hostile_files.h"

namespace lockstep::ckpt::bad_inputs {
namespace {

std::string row_name(std::string name) {
  std::ranges::replace_if(
      name,
      [](unsigned char c) { return std::isalnum(c) == 0; },
      '_');
  return "growth_of_" + name;
}

} // namespace

std::vector<BadInput> growth_rows() {
  constexpr std::size_t kBytes = 200'000;
  // These are linear: there is nothing to refuse.
  const std::vector<std::string> linear{
      "bytearray(text)",
      "tensors of 60 dimensions",
      "shared arguments",
      "long tensor class",
      "NumPy scalars"};
  std::vector<BadInput> rows;
  for (const growth::HostileFile& file : growth::hostile_calls()) {
    if (std::ranges::find(linear, file.name) != linear.end()) {
      continue;
    }
    rows.push_back(
        {.row = 51,
         .name = row_name(file.name),
         .bytes = file.make(kBytes),
         .detail = "E_LIMIT",
         .code = ErrorCode::kUnsafe,
         .says = {
             "values, names and copies of",
             "expected at most",
             " allows more"}});
  }
  return rows;
}

} // namespace lockstep::ckpt::bad_inputs
