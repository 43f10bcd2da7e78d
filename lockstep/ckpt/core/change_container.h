// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "lockstep/ckpt/value.h"

namespace lockstep::ckpt::internal {

/// Calls `change` with the list, tuple, set, dict or object that `value` is;
/// not for a value of another type.
template <class Change>
void change_container(Value& value, const Change& change) {
  if (List* list = value.as_list()) {
    change(*list);
  } else if (Tuple* tuple = value.as_tuple()) {
    change(*tuple);
  } else if (Set* set = value.as_set()) {
    change(*set);
  } else if (Dict* dict = value.as_dict()) {
    change(*dict);
  } else if (Object* object = value.as_object()) {
    change(*object);
  }
}

} // namespace lockstep::ckpt::internal
