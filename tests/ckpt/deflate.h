// SPDX-License-Identifier: BSD-3-Clause
//
// Bytes as `zip` packs them, for records that PyTorch would store as they are.
//   zip.add("a/code", deflate(text), {.size = 1000, .method = 8});
#pragma once

#include <string>

#include <libdeflate.h>

namespace lockstep::ckpt {

inline std::string deflate(const std::string& text) {
  libdeflate_compressor* const packer = libdeflate_alloc_compressor(9);
  std::string out(libdeflate_deflate_compress_bound(packer, text.size()), '\0');
  out.resize(libdeflate_deflate_compress(
      packer,
      text.data(),
      text.size(),
      out.data(),
      out.size()));
  libdeflate_free_compressor(packer);
  return out;
}

} // namespace lockstep::ckpt
