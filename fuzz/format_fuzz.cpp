// SPDX-License-Identifier: BSD-3-Clause
//
// One row of the readers, named by LOCKSTEP_FUZZ_FORMAT: opens the input as
// this format and looks at all of it. Checksums are off, or no damaged byte
// would get past them.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "fuzz/exercise.h"
#include "lockstep/ckpt/format_table.h"

namespace {

using namespace lockstep; // NOLINT(google-build-using-namespace): a program

const ckpt::FormatReader& reader() {
  const auto rows = ckpt::format_readers();
  const auto row = std::ranges::find(
      rows,
      std::string_view(LOCKSTEP_FUZZ_FORMAT),
      &ckpt::FormatReader::name);
  if (row == rows.end()) {
    std::fputs("no reader has the name " LOCKSTEP_FUZZ_FORMAT "\n", stderr);
    std::abort();
  }
  return *row;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t n) {
  const ByteSpan bytes = std::as_bytes(std::span(data, n));
  ckpt::ReadInput input{
      .source = ckpt::make_source(bytes),
      .head = bytes.first(std::min<std::size_t>(n, 512)),
      .path = "input"};
  input.options.check_crc = false;
  const auto claimed = reader().claims(input);
  if (!claimed || !*claimed) {
    return 0;
  }
  const auto file = reader().read(input);
  if (file) {
    fuzz::exercise(*file);
  }
  return 0;
}
