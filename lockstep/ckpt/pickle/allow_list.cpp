// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/pickle/allow_list.h"

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/read_error.h"

namespace lockstep::ckpt {

Status check_allow_list(
    const Checkpoint& file,
    const LoadOptions& options,
    const std::string& record) {
  for (const GlobalUse& use : file.globals) {
    if (options.refuse_unknown_globals && !use.is_safe) {
      Error error = read_error(
          ErrorCode::kUnsafe,
          "E_UNSAFE_GLOBAL",
          format("name '{}' is not on the allow list", escape(use.name)),
          "run 'lockstep ckpt FILE' to see all names in the file");
      error.record = record;
      error.offset = use.offset;
      return error;
    }
  }
  return {};
}

} // namespace lockstep::ckpt
