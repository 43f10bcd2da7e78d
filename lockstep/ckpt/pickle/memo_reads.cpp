// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/pickle/memo_reads.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "lockstep/base/numbers.h"
#include "lockstep/ckpt/core/read_le.h"
#include "lockstep/ckpt/pickle/pickle_opcodes.h"

namespace lockstep::ckpt {
namespace {

// Walks over opcodes without making anything of their operands.
class Skipper {
 public:
  explicit Skipper(ByteSpan bytes)
      : at_(bytes.data()), end_(bytes.data() + bytes.size()) {}

  // Passes an opcode that is of no interest, as most are: false if another is
  // next, or nothing.
  bool pass() {
    const std::size_t bytes =
        at_ == end_ ? 0
                    : internal::kPlainBytes[static_cast<unsigned char>(*at_)];
    return pass<1>(bytes) || pass<5>(bytes) || pass<2>(bytes) ||
           pass<3>(bytes) || pass<9>(bytes);
  }
  // The next opcode, null at the end of what can be read. `number` and `line`
  // are its operand afterwards.
  const OpcodeInfo* next() {
    if (at_ == end_) {
      return nullptr;
    }
    const OpcodeInfo* info = find_opcode(static_cast<unsigned char>(*at_++));
    const bool is_whole = info != nullptr && (info->operand == Operand::kNone ||
                                              skip(info->operand));
    return is_whole ? info : nullptr;
  }
  [[nodiscard]] std::uint64_t number() const {
    return number_;
  }
  [[nodiscard]] std::string_view line() const {
    return line_;
  }

 private:
  [[nodiscard]] std::size_t left() const {
    return static_cast<std::size_t>(end_ - at_);
  }

  // The processor guesses a branch and goes on; for a length out of a table the
  // next opcode would have to wait.
  template <std::size_t kBytes>
  bool pass(std::size_t bytes) {
    if (bytes != kBytes || left() < kBytes) {
      return false;
    }
    at_ += kBytes;
    return true;
  }

  bool skip(Operand operand) {
    const std::size_t width = operand_bytes(operand);
    if (width == 0) {
      return skip_line() && (operand != Operand::kTwoLines || skip_line());
    }
    if (left() < width) {
      return false;
    }
    number_ = internal::read_number({at_, end_}, width);
    at_ += width;
    if (!has_length(operand)) {
      return true;
    }
    if (number_ > left()) {
      return false;
    }
    at_ += number_;
    return true;
  }

  bool skip_line() {
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast)
    const std::string_view rest(reinterpret_cast<const char*>(at_), left());
    const std::size_t end = rest.find('\n');
    if (end == std::string_view::npos) {
      return false;
    }
    line_ = rest.substr(0, end);
    at_ += end + 1;
    return true;
  }

  const std::byte* at_;
  const std::byte* end_;
  std::uint64_t number_ = 0;
  std::string_view line_;
};

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
    if (skipper.pass()) {
      continue;
    }
    const OpcodeInfo* info = skipper.next();
    if (info == nullptr || info->op == Op::kStop) {
      break;
    }
    if (info->op == Op::kBinGet || info->op == Op::kLongBinGet) {
      reads.add(skipper.number());
    }
    if (info->op == Op::kGet) {
      const auto index = parse_number<std::uint64_t>(skipper.line());
      reads.add(index.value_or(0));
    }
  }
  return reads;
}

} // namespace lockstep::ckpt
