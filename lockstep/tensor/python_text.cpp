// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/base/strings.h"
#include "lockstep/tensor/modules.h"

namespace lockstep {
namespace {

std::string comma_separated(c10::IntArrayRef values) {
  std::string text;
  for (const std::int64_t value : values) {
    text += (text.empty() ? "" : ", ") + std::to_string(value);
  }
  return text;
}

std::string escaped(char c, char quote) {
  if (c == quote || c == '\\') {
    return {'\\', c};
  }
  switch (c) {
    case '\n':
      return "\\n";
    case '\t':
      return "\\t";
    case '\r':
      return "\\r";
    default:
      return {c};
  }
}

} // namespace

std::string python_repr(std::string_view text) {
  const bool has_single = text.find('\'') != std::string_view::npos;
  const bool has_double = text.find('"') != std::string_view::npos;
  const char quote = has_single && !has_double ? '"' : '\'';
  std::string out(1, quote);
  for (const char c : text) {
    out += escaped(c, quote);
  }
  return out + quote;
}

std::string python_repr(std::span<const std::string> texts) {
  std::string out = "[";
  for (const std::string& text : texts) {
    out += (out.size() == 1 ? "" : ", ") + python_repr(text);
  }
  return out + "]";
}

std::string size_text(c10::IntArrayRef sizes) {
  return "torch.Size([" + comma_separated(sizes) + "])";
}

std::string tuple_text(c10::IntArrayRef values) {
  return "(" + comma_separated(values) + (values.size() == 1 ? ",)" : ")");
}

} // namespace lockstep
