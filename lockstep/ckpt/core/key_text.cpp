// SPDX-License-Identifier: BSD-3-Clause
#include <string>
#include <vector>

#include "lockstep/ckpt/print.h"
#include "lockstep/ckpt/walk.h"

namespace lockstep::ckpt {
namespace {

// Appends a tuple as Python prints it, text in quotes. False if it is too long
// for a key: shared parts can repeat a text without end.
bool add_tuple_text(const Value& key, std::string& text) {
  constexpr std::size_t kMaxBytes = 4096;
  const std::vector<Value>& items = key.as_tuple()->items;
  text += '(';
  for (const Value& item : items) {
    text += &item == items.data() ? "" : ", ";
    if (text.size() + item.text().size() > kMaxBytes) {
      return false;
    }
    if (item.as_tuple() != nullptr) {
      if (!add_tuple_text(item, text)) {
        return false;
      }
      continue;
    }
    text += item.as_string() != nullptr ? "'" + *item.as_string() + "'"
                                        : key_text(item);
  }
  text += items.size() == 1 ? ",)" : ")";
  return true;
}

} // namespace

std::string key_text(const Value& key) {
  if (const std::string* text = key.as_string()) {
    return *text;
  }
  if (const std::int64_t* number = key.as_int()) {
    return std::to_string(*number);
  }
  if (key.as_tuple() != nullptr) {
    std::string text;
    if (add_tuple_text(key, text)) {
      return text;
    }
  }
  const bool has_parts = key.is_container() || key.as_tensor() != nullptr;
  return has_parts ? "<" + std::string(key.type_name()) + ">"
                   : scalar_text(key, std::string::npos);
}

} // namespace lockstep::ckpt
