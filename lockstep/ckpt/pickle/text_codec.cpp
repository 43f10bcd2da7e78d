// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/pickle/text_codec.h"

namespace lockstep::ckpt::internal {
namespace {

// Bytes of the UTF-8 sequence that starts `text`; 0 if it is wrong. Encoded
// surrogates pass, as in Python's pickles.
std::size_t sequence_bytes(std::string_view text) {
  const auto at = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  const unsigned lead = at(0);
  if (lead < 0x80) {
    return 1;
  }
  const std::size_t length = lead >= 0xF0 ? 4U : lead >= 0xE0 ? 3U : 2U;
  if (lead < 0xC2 || lead > 0xF4) {
    return 0;
  }
  for (std::size_t i = 1; i < length; ++i) {
    if ((at(i) & 0xC0) != 0x80) {
      return 0;
    }
  }
  const bool overlong = (lead == 0xE0 && at(1) < 0xA0) ||
                        (lead == 0xF0 && at(1) < 0x90) ||
                        (lead == 0xF4 && at(1) >= 0x90);
  return overlong ? 0 : length;
}

} // namespace

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = sequence_bytes(text);
    if (length == 0) {
      return false;
    }
    text.remove_prefix(length);
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
