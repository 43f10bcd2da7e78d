// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/report/html_text.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "lockstep/base/strings.h"

namespace lockstep::report {
namespace {

struct Entity {
  char character = 0;
  std::string_view text = {};
};
constexpr std::array kEntities{
    Entity{'<', "&lt;"},
    Entity{'>', "&gt;"},
    Entity{'&', "&amp;"},
    Entity{'"', "&quot;"},
    Entity{'\'', "&#39;"},
};

} // namespace

std::string html_text(std::string_view text, std::size_t max_bytes) {
  std::string out;
  for (const char c : escape(text, max_bytes)) {
    const auto* const entity =
        std::ranges::find(kEntities, c, &Entity::character);
    if (entity == kEntities.end()) {
      out += c;
    } else {
      out += entity->text;
    }
  }
  return out;
}

std::string data_uri(std::string_view type, std::string_view bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out = format("data:{};base64,", type);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = 0;
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - i);
    for (std::size_t k = 0; k < 3; ++k) {
      group = group << 8U |
              (k < count ? static_cast<unsigned char>(bytes[i + k]) : 0U);
    }
    for (std::size_t k = 0; k < 4; ++k) {
      out += k <= count ? kDigits[group >> (18U - 6U * k) & 0x3fU] : '=';
    }
  }
  return out;
}

} // namespace lockstep::report
