// SPDX-License-Identifier: BSD-3-Clause
#include "fuzz/read_as.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "fuzz/exercise.h"
#include "lockstep/ckpt/load/format_table.h"

namespace lockstep::fuzz {
namespace {

const ckpt::FormatReader& reader(std::string_view format) {
  const auto rows = ckpt::format_readers();
  const auto row = std::ranges::find(rows, format, &ckpt::FormatReader::name);
  if (row == rows.end()) {
    std::fputs("no reader has the name of this target's format\n", stderr);
    std::abort();
  }
  return *row;
}

} // namespace

void read_as(std::string_view format, ByteSpan bytes) {
  const ckpt::FormatReader& row = reader(format);
  ckpt::ReadInput input{
      .source = ckpt::make_source(bytes),
      .head = bytes.first(std::min<std::size_t>(bytes.size(), 512)),
      .path = "input"};
  input.options.check_crc = false;
  const auto claimed = row.claims(input);
  if (!claimed || !*claimed) {
    return;
  }
  const auto file = row.read(input);
  if (file) {
    exercise(*file);
  }
}

} // namespace lockstep::fuzz
