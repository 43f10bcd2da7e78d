// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/pickle/memo_reads.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "lockstep/ckpt/internal/read_le.h"
#include "lockstep/ckpt/pickle/pickle_opcodes.h"

namespace lockstep::ckpt {
namespace {

// Walks over opcodes without making anything of their operands.
class Skipper {
 public:
  explicit Skipper(ByteSpan bytes)
      // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast)
      : rest_(reinterpret_cast<const char*>(bytes.data()), bytes.size()) {}

  // The next opcode, null at the end of what can be read. `number` and `line`
  // are its operand afterwards.
  const OpcodeInfo* next() {
    if (rest_.empty()) {
      return nullptr;
    }
    const OpcodeInfo* info = find_opcode(static_cast<unsigned char>(rest_[0]));
    rest_.remove_prefix(1);
    return info != nullptr && skip(info->operand) ? info : nullptr;
  }
  [[nodiscard]] std::uint64_t number() const {
    return number_;
  }
  [[nodiscard]] std::string_view line() const {
    return line_;
  }

 private:
  bool skip(Operand operand) {
    if (operand == Operand::kNone) {
      return true;
    }
    if (operand == Operand::kTwoLines) {
      return skip_line() && skip_line();
    }
    const std::size_t width = operand_bytes(operand);
    if (width == 0) {
      return skip_line();
    }
    if (rest_.size() < width) {
      return false;
    }
    number_ = internal::read_number(as_byte_span(rest_), width);
    rest_.remove_prefix(width);
    if (!has_length(operand)) {
      return true;
    }
    if (number_ > rest_.size()) {
      return false;
    }
    rest_.remove_prefix(number_);
    return true;
  }

  bool skip_line() {
    const std::size_t end = rest_.find('\n');
    if (end == std::string_view::npos) {
      return false;
    }
    line_ = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    return true;
  }

  std::string_view rest_;
  std::uint64_t number_ = 0;
  std::string_view line_;
};

std::optional<std::uint64_t> index_of(std::string_view line) {
  std::uint64_t index = 0;
  const char* end = line.data() + line.size();
  const auto [stop, error] = std::from_chars(line.data(), end, index);
  return error == std::errc{} && stop == end ? std::optional(index)
                                             : std::nullopt;
}

} // namespace

void MemoReads::add(std::uint64_t index) {
  if (index >= limit_) {
    return;
  }
  if (index >= bits_.size()) {
    bits_.resize(std::min(std::max(index + 1, 2 * bits_.size()), limit_));
  }
  bits_[index] = true;
}

MemoReads find_memo_reads(ByteSpan bytes, std::uint64_t max_opcodes) {
  MemoReads reads(bytes.size());
  Skipper skipper(bytes);
  for (std::uint64_t count = 0; count < max_opcodes; ++count) {
    const OpcodeInfo* info = skipper.next();
    if (info == nullptr || info->code == '.') {
      break;
    }
    if (info->code == 'h' || info->code == 'j') {
      reads.add(skipper.number());
    }
    if (info->code == 'g') {
      const auto index = index_of(skipper.line());
      reads.add(index.value_or(0));
    }
  }
  return reads;
}

} // namespace lockstep::ckpt
