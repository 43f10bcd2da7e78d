// SPDX-License-Identifier: BSD-3-Clause
#include "cli/flag_words.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/checkpoint.h"

namespace lockstep::cli {
namespace {

// What the library calls an option, and the flag that sets it.
struct FlagWord {
  std::string_view option = {};
  std::string_view flag = {};
};

// Beside the table of limits.
constexpr std::array kWords{
    FlagWord{"Limits::allow_no_root", "--lenient"},
    FlagWord{"LoadOptions::strict", "--strict"},
    FlagWord{"expanding()", "--allow-expand"},
    // Also of commands that have no such flag.
    FlagWord{
        "SaveOptions::clone_views",
        "'lockstep ckpt convert --clone-views'"},
    FlagWord{"ConvertOptions::clone_views", "--clone-views"},
    FlagWord{"MergeOptions::replace", "--replace"},
    FlagWord{"StripOptions::partial", "--partial"},
    FlagWord{"StripOptions::prefix", "--prefix"},
    FlagWord{"ExtractOptions::key", "--key"},
    FlagWord{"plain_namespaces()", "--namespace-as-dict"},
};

void replace(std::string& text, std::string_view word, std::string_view by) {
  for (auto at = text.find(word); at != std::string::npos;
       at = text.find(word, at + by.size())) {
    text.replace(at, word.size(), by);
  }
}

} // namespace

std::string in_flags(std::string text) {
  for (const FlagWord& word : kWords) {
    replace(text, word.option, word.flag);
  }
  for (const ckpt::LimitInfo& limit : ckpt::limit_table()) {
    std::string option = format("Limits::{}", limit.name);
    std::ranges::replace(option, '-', '_');
    replace(text, option, format("--{}", limit.name));
  }
  return text;
}

} // namespace lockstep::cli
