// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/tensor/internal/compat.h"

#include <string_view>

#include <ATen/Version.h>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"

namespace lockstep {
namespace {

// "2.13.0" -> "2.13".
std::string_view minor_version(std::string_view version) {
  const std::size_t first = version.find('.');
  const std::size_t second = version.find('.', first + 1);
  return version.substr(0, second);
}

} // namespace

std::string torch_library_version() {
  // The only place where the library tells its own version at run time.
  constexpr std::string_view kName = "TORCH_VERSION=";
  const std::string config = at::show_config();
  const std::size_t start = config.find(kName);
  if (start == std::string::npos) {
    return "unknown";
  }
  const std::size_t from = start + kName.size();
  return config.substr(from, config.find_first_of(", \n", from) - from);
}

void check_torch_version() {
  // A check that throws is made again by the next call.
  [[maybe_unused]] static const bool is_checked = [] {
    check_torch_version(torch_library_version());
    return true;
  }();
}

void check_torch_version(std::string_view loaded) {
  if (minor_version(loaded) != minor_version(kTorchHeaderVersion)) {
    raise(
        {.code = ErrorCode::kUnavailable,
         .op = "tensor.version",
         .message = format(
             "LibTorch versions differ: expected {} (headers), got {} "
             "(library)",
             kTorchHeaderVersion,
             escape(loaded)),
         .hint = "load the library that Lockstep was built with; "
                 "scripts/setup.sh installs it"});
  }
}

} // namespace lockstep
