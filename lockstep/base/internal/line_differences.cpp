// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/base/internal/line_differences.h"

#include <algorithm>

#include "lockstep/base/strings.h"

namespace lockstep {

std::vector<std::string> line_differences(
    const std::vector<std::string>& first,
    const std::vector<std::string>& second) {
  constexpr std::size_t kShown = 200; // bytes of a line
  std::vector<std::string> found;
  for (std::size_t i = 0; i < std::max(first.size(), second.size()); ++i) {
    const std::string a = i < first.size() ? first[i] : "nothing";
    const std::string b = i < second.size() ? second[i] : "nothing";
    if (a != b) {
      found.push_back(
          format("'{}' and '{}'", escape(a, kShown), escape(b, kShown)));
    }
  }
  return found;
}

} // namespace lockstep
