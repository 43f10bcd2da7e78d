// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/tools/scan/program_imports.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <vector>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/pickle/globals.h"

namespace lockstep::ckpt::internal {
namespace {

/// A text in the structure of arguments that has a module imported.
struct ImportRow {
  /// What such a text contains.
  std::string_view mark = {};
  /// The key whose value is the module, then what parts it from the name.
  std::string_view module_key = {};
  std::string_view name_key = {};
};
constexpr std::array kImports = {
    ImportRow{
        "default_factory_module",
        "default_factory_module",
        "default_factory_name"},
    ImportRow{"__enum__", "fqn", ""}};

constexpr auto kHarmlessImports = std::to_array<std::string_view>(
    {"builtins.bool",
     "builtins.dict",
     "builtins.float",
     "builtins.int",
     "builtins.list",
     "builtins.set",
     "builtins.str",
     "builtins.tuple",
     "collections.OrderedDict"});

bool is_word_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         (c >= '0' && c <= '9') || c == '_' || c == '.';
}

/// A name behind a key.
struct KeyedWord {
  std::size_t at = 0;
  std::string word = {};
};

// The names behind a key, whatever quotes and backslashes are in between, each
// cut to what a finding shows.
std::vector<KeyedWord> words_after(
    std::string_view text,
    std::string_view key) {
  std::vector<KeyedWord> words;
  std::size_t at = key.empty() ? std::string_view::npos : text.find(key);
  for (; at != std::string_view::npos; at = text.find(key, at)) {
    const std::size_t begin = at;
    at += key.size();
    if (at < text.size() && is_word_char(text[at])) {
      continue; // the beginning of another key
    }
    const auto* first =
        std::find_if(text.begin() + at, text.end(), is_word_char);
    const std::size_t most = std::min<std::size_t>(
        kMaxTextBytes,
        static_cast<std::size_t>(text.end() - first));
    words.push_back(
        {begin,
         std::string(
             first,
             std::find_if_not(first, first + most, is_word_char))});
  }
  return words;
}

// A text of a program is JSON inside JSON inside JSON.
constexpr int kMaxEscapes = 4;

int hex_value(char c) {
  return c >= '0' && c <= '9'   ? c - '0'
         : c >= 'a' && c <= 'f' ? c - 'a' + 10
         : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                : -1;
}

// The letter of "u005f" at the start of `text`; 0 if it is not of ASCII.
char escaped_letter(std::string_view text) {
  constexpr std::size_t kDigits = 4;
  int code = text.starts_with('u') && text.size() > kDigits ? 0 : -1;
  for (std::size_t i = 1; code >= 0 && i <= kDigits; ++i) {
    const int digit = hex_value(text[i]);
    code = digit < 0 ? -1 : code * 16 + digit;
  }
  return code > 0 && code < 128 ? static_cast<char>(code) : '\0';
}

// Without one level of the escapes of JSON; letters of names only.
std::string unescaped(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::string_view rest = text.substr(1);
    const char letter = text[0] == '\\' ? escaped_letter(rest) : '\0';
    const bool is_sign = text[0] == '\\' && !rest.empty() &&
                         (rest[0] == '\\' || rest[0] == '"' || rest[0] == '/');
    out += letter != '\0' ? letter : is_sign ? rest[0] : text[0];
    text.remove_prefix(letter != '\0' ? 6 : is_sign ? 2 : 1);
  }
  return out;
}

void add_import(
    std::string_view module,
    std::string_view name,
    bool only_dangerous,
    std::map<std::string, bool>& found) {
  std::string whole = format("{}{}{}", module, name.empty() ? "" : ".", name);
  const bool is_dangerous = find_global(whole).is_dangerous();
  const bool is_known =
      std::ranges::find(kHarmlessImports, whole) != kHarmlessImports.end();
  if (is_dangerous || !(is_known || only_dangerous)) {
    found.emplace(std::move(whole), is_dangerous);
  }
}

// A module and the name that follows it; and any two of them that would be
// dangerous, since Python takes the keys of a dict in any order.
void find_imports(
    std::string_view text,
    const ImportRow& row,
    std::size_t& pairs,
    std::map<std::string, bool>& found) {
  const auto modules = words_after(text, row.module_key);
  const auto names = words_after(text, row.name_key);
  std::set<std::string_view> all_modules;
  std::set<std::string_view> all_names;
  auto next = names.begin();
  for (const auto& [at, module] : modules) {
    next = std::find_if(next, names.end(), [at = at](const KeyedWord& name) {
      return name.at > at;
    });
    all_modules.insert(module);
    add_import(module, next == names.end() ? "" : next->word, false, found);
  }
  for (const KeyedWord& name : names) {
    all_names.insert(name.word);
  }
  const std::size_t own = all_modules.size() * all_names.size();
  if (own > 1 && own > pairs) {
    found.emplace("more names than are compared", true);
    return;
  }
  pairs -= own > 1 ? own : 0;
  for (const std::string_view module : all_modules) {
    for (const std::string_view name : all_names) {
      add_import(module, name, true, found);
    }
  }
}

} // namespace

std::map<std::string, bool> imports_in(std::string level, std::size_t& pairs) {
  std::map<std::string, bool> found;
  for (int i = 0; i < kMaxEscapes; ++i) {
    for (const ImportRow& row : kImports) {
      if (level.find(row.mark) != std::string::npos) {
        find_imports(level, row, pairs, found);
      }
    }
    if (level.find('\\') == std::string::npos) {
      break;
    }
    level = unescaped(level);
  }
  return found;
}

} // namespace lockstep::ckpt::internal
