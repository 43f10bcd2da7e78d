// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/pickle/text_codec.h"

#include "lockstep/base/strings.h"

namespace lockstep::ckpt::internal {
namespace {

// U+D800 to U+DFFF, which UTF-8 leaves out.
std::size_t surrogate_length(std::string_view text) {
  const auto byte = [&](std::size_t i) {
    return static_cast<unsigned char>(text[i]);
  };
  const bool is_surrogate = text.size() >= 3 && byte(0) == 0xED &&
                            byte(1) >= 0xA0 && byte(1) < 0xC0 &&
                            byte(2) >= 0x80 && byte(2) < 0xC0;
  return is_surrogate ? 3 : 0;
}

} // namespace

bool is_utf8_with_surrogates(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const std::size_t step = length == 0 ? surrogate_length(text) : length;
    if (step == 0) {
      return false;
    }
    text.remove_prefix(step);
  }
  return true;
}

// Bytes as the text Python decodes them to: one character per byte.
std::string latin1_to_utf8(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  for (const char c : bytes) {
    const auto code = static_cast<unsigned char>(c);
    if (code < 0x80) {
      text.push_back(c);
    } else {
      text.push_back(static_cast<char>(0xC0 | code >> 6));
      text.push_back(static_cast<char>(0x80 | (code & 0x3F)));
    }
  }
  return text;
}

} // namespace lockstep::ckpt::internal
