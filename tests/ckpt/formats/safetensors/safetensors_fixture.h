// SPDX-License-Identifier: BSD-3-Clause
//
// Safetensors files by hand.
//   std::string bytes = safetensors(R"({"a":{...}})", std::string(8, '\0'));
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "lockstep/ckpt/byte_source.h"
#include "lockstep/ckpt/load.h"
#include "tests/ckpt/zip/zip_fixture.h"

namespace lockstep::ckpt {

/// Length, header, data.
inline std::string safetensors(
    std::string_view header,
    std::string_view data = "") {
  std::string bytes;
  put_le<std::uint64_t>(bytes, header.size());
  bytes += header;
  bytes += data;
  return bytes;
}

/// Loads bytes; `bytes` must outlive the result.
inline Result<Checkpoint> load_bytes(const std::string& bytes) {
  return load(make_source(as_byte_span(bytes)), "input");
}

} // namespace lockstep::ckpt
