// SPDX-License-Identifier: BSD-3-Clause
//
// The code of a TorchScript program. LibTorch's interpreter knows no imports,
// only operators; a few of those reach outside.
#include <array>
#include <cctype>
#include <utility>

#include "lockstep/ckpt/tools/scan/scan_report.h"

namespace lockstep::ckpt::internal {
namespace {

struct Operator {
  /// As the code spells it behind "torch." or as a method of any value.
  std::string_view word = {};
  std::string_view name = {};
};

constexpr std::string_view kLookup = "getattr";
constexpr std::array kOperators{
    Operator{"save", "torch.save"},
    Operator{"from_file", "torch.from_file"},
    Operator{"load_tensor", "debugprims.load_tensor"},
    Operator{"rpc_async", "rpc_async"},
    Operator{"rpc_remote", "rpc_remote"},
    Operator{"rpc_sync", "rpc_sync"},
    Operator{kLookup, kLookup},
};

bool is_word_part(char c) {
  return c == '_' || std::isalnum(static_cast<unsigned char>(c)) != 0;
}

// `(self, "0")` as PyTorch writes it for names that are no identifiers. Another
// spelling of the name may hide an operator. `call` is all text behind the
// word.
bool is_plain_getattr(std::string_view call) {
  int open = 0;
  std::size_t end = 0;
  for (; end < call.size(); ++end) {
    open += call[end] == '(' ? 1 : 0;
    if (call[end] == ')' && --open <= 0) {
      break;
    }
  }
  const std::string_view inside = call.substr(0, end);
  const std::size_t comma = inside.rfind(", \"");
  if (comma == std::string_view::npos || !inside.ends_with('"')) {
    return false;
  }
  const std::string_view name = inside.substr(comma + 3);
  return name.find('"') + 1 == name.size() &&
         name.find('\\') == std::string_view::npos;
}

// The word stands for itself at `at`, and is not what a method is called.
bool is_use(std::string_view code, std::size_t at, std::string_view word) {
  const std::string_view before = code.substr(0, at);
  const std::string_view behind = code.substr(at + word.size());
  return (before.empty() || !is_word_part(before.back())) &&
         (behind.empty() || !is_word_part(behind.front())) &&
         !before.ends_with("def ") &&
         (word != kLookup || !is_plain_getattr(behind));
}

} // namespace

void scan_script_code(
    std::string_view code,
    const std::string& record,
    ScanCollector& out) {
  for (const auto& [word, name] : kOperators) {
    ScanFinding finding{
        .name = std::string(name),
        .is_dangerous = true,
        .is_code = true,
        .record = record};
    for (std::size_t at = code.find(word); at != std::string_view::npos;
         at = code.find(word, at + word.size())) {
      if (is_use(code, at, word) && finding.count++ == 0) {
        finding.offset = at;
      }
    }
    if (finding.count != 0) {
      out.add(std::move(finding));
    }
  }
}

} // namespace lockstep::ckpt::internal
