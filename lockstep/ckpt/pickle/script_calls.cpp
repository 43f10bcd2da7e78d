// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/pickle/script_calls.h"

namespace lockstep::ckpt {

CallResult call_restore_type_tag(const Tuple& args) {
  const bool is_tagged =
      args.items.size() == 2 && args.items[1].as_string() != nullptr;
  return is_tagged ? std::optional<Value>(args.items[0])
                   : std::optional<Value>();
}

CallResult call_typed_list(const Tuple& args) {
  const bool is_list =
      args.items.size() == 1 && args.items[0].as_list() != nullptr;
  return is_list ? std::optional<Value>(args.items[0]) : std::optional<Value>();
}

} // namespace lockstep::ckpt
