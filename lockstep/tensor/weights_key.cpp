// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/tensor/weights_key.h"

#include <algorithm>

namespace lockstep {

bool is_state_dict(const ckpt::Value& value) {
  const ckpt::Dict* dict = value.as_dict();
  if (dict == nullptr) {
    return false;
  }
  if (dict->items.empty()) {
    return dict->kind == ckpt::Dict::Kind::kOrderedDict;
  }
  return std::ranges::all_of(dict->items, [](const ckpt::Item& item) {
    return item.first.as_string() != nullptr &&
           item.second.as_tensor() != nullptr;
  });
}

const char* weights_key(const ckpt::Value& value) {
  for (const char* key : {"state_dict", "model"}) {
    const ckpt::Value* inner = value.find(key);
    if (inner != nullptr && is_state_dict(*inner)) {
      return key;
    }
  }
  return nullptr;
}

} // namespace lockstep
