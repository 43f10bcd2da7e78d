// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/pickle/memo_reads.h"

#include <algorithm>

#include "lockstep/base/internal/numbers.h"

namespace lockstep::ckpt {

void MemoReads::add(std::uint64_t index) {
  if (index >= limit_) {
    return;
  }
  if (index >= bits_.size()) {
    bits_.resize(std::min(std::max(index + 1, 2 * bits_.size()), limit_));
  }
  bits_[index] = true;
}

MemoReads
find_memo_reads(ByteSpan bytes, std::uint64_t max_opcodes, Grammar grammar) {
  MemoReads reads(bytes.size());
  PickleDecoder decoder(bytes, grammar);
  for (std::uint64_t count = 0; count < max_opcodes; ++count) {
    const Instruction* in = decoder.next();
    if (in == nullptr || in->info->action == Action::kStop) {
      break;
    }
    if (in->info->action == Action::kGet) {
      const bool is_text = in->info->operand == Operand::kLine;
      const auto digits = is_text ? memo_digits(in->text) : std::nullopt;
      reads.add(
          is_text ? parse_number<std::uint64_t>(digits.value_or("0"))
                        .value_or(bytes.size())
                  : in->number);
    }
  }
  return reads;
}

std::optional<std::string> memo_digits(std::string_view line) {
  constexpr std::string_view kBlank = " \t\n\v\f\r";
  line = line.substr(0, line.find('\0')); // where the one in C stops
  line.remove_prefix(std::min(line.find_first_not_of(kBlank), line.size()));
  line = line.substr(0, line.find_last_not_of(kBlank) + 1);
  const bool is_negative = line.starts_with('-');
  if (is_negative || line.starts_with('+')) {
    line.remove_prefix(1);
  }
  std::string digits;
  bool is_digit = false; // an underscore stands between two digits
  for (const char c : line) {
    const bool is_separator = c == '_' && is_digit;
    is_digit = c >= '0' && c <= '9';
    if (!is_digit && !is_separator) {
      return std::nullopt;
    }
    if (is_digit && digits != "0") {
      digits.push_back(c);
    } else if (is_digit) {
      digits = c;
    }
  }
  if (!is_digit || (is_negative && digits != "0")) {
    return std::nullopt;
  }
  return digits;
}

} // namespace lockstep::ckpt
