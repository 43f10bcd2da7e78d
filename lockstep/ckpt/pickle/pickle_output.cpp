// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/pickle/pickle_output.h"

#include <array>
#include <bit>
#include <limits>
#include <utility>

#include "lockstep/base/error.h"

namespace lockstep::ckpt::internal {
namespace {

// The fewest bytes of two's complement that hold `value`.
int long_bytes(std::int64_t value) {
  int bytes = 8;
  while (bytes > 1 && (value >> (8 * (bytes - 1) - 1) == 0 ||
                       value >> (8 * (bytes - 1) - 1) == -1)) {
    --bytes;
  }
  return bytes;
}

} // namespace

PickleOutput::PickleOutput(std::string_view builtins) : builtins_(builtins) {
  op(Op::kProto);
  byte(2);
}

void PickleOutput::op(Op code) {
  bytes_.push_back(static_cast<char>(opcode_byte(code)));
}

void PickleOutput::byte(std::uint64_t value) {
  bytes_.push_back(static_cast<char>(static_cast<unsigned char>(value)));
}

void PickleOutput::little_endian(std::uint64_t value, int bytes) {
  std::array<char, 8> text{};
  for (std::size_t i = 0; i < text.size(); ++i) {
    text.at(i) =
        static_cast<char>(static_cast<unsigned char>(value >> (8 * i)));
  }
  bytes_.append(text.data(), static_cast<std::size_t>(bytes));
}

void PickleOutput::boolean(bool value) {
  op(value ? Op::kNewTrue : Op::kNewFalse);
}

void PickleOutput::integer(std::int64_t value) {
  const auto bits = static_cast<std::uint64_t>(value);
  if (value >= 0 && value <= 0xFF) {
    op(Op::kBinInt1);
    byte(bits);
  } else if (value >= 0 && value <= 0xFFFF) {
    op(Op::kBinInt2);
    little_endian(bits, 2);
  } else if (
      value >= std::numeric_limits<std::int32_t>::min() &&
      value <= std::numeric_limits<std::int32_t>::max()) {
    op(Op::kBinInt);
    little_endian(bits, 4);
  } else {
    const int length = long_bytes(value);
    op(Op::kLong1);
    byte(static_cast<std::uint64_t>(length));
    little_endian(bits, length);
  }
}

void PickleOutput::big_integer(std::string_view bytes) {
  LOCKSTEP_CHECK(bytes.size() <= 0xFF);
  op(Op::kLong1);
  byte(bytes.size());
  bytes_ += bytes;
}

void PickleOutput::real(double value) {
  op(Op::kBinFloat);
  const auto bits = std::bit_cast<std::uint64_t>(value);
  for (int shift = 56; shift >= 0; shift -= 8) {
    byte(bits >> shift & 0xFF);
  }
}

void PickleOutput::fresh_text(std::string_view text) {
  LOCKSTEP_CHECK(text.size() <= kMaxPickledText);
  op(Op::kBinUnicode);
  little_endian(text.size(), 4);
  bytes_ += text;
  put();
}

void PickleOutput::shared_text(const std::string& text) {
  if (!get(&text)) {
    objects_.emplace(&text, next_);
    fresh_text(text);
  }
}

void PickleOutput::literal(std::string_view text) {
  const auto found = literals_.find(text);
  if (found != literals_.end()) {
    reference(found->second);
    return;
  }
  literals_.emplace(text, next_);
  fresh_text(text);
}

void PickleOutput::global(std::string_view name) {
  const auto found = globals_.find(name);
  if (found != globals_.end()) {
    reference(found->second);
    return;
  }
  globals_.emplace(name, next_);
  const std::size_t dot = name.rfind('.');
  LOCKSTEP_CHECK(dot != std::string_view::npos);
  const std::string_view module = name.substr(0, dot);
  op(Op::kGlobal);
  bytes_ += module == "builtins" ? builtins_ : module;
  bytes_ += '\n';
  bytes_ += name.substr(dot + 1);
  bytes_ += '\n';
  put();
}

void PickleOutput::tuple(std::size_t size) {
  constexpr std::array kShort = {Op::kTuple1, Op::kTuple2, Op::kTuple3};
  if (size == 0) {
    op(Op::kEmptyTuple);
    return;
  }
  op(size <= 3 ? kShort[size - 1] : Op::kTuple);
  put();
}

void PickleOutput::tuple(std::size_t size, const void* identity) {
  objects_.emplace(identity, next_);
  tuple(size);
}

void PickleOutput::integer_tuple(std::span<const std::int64_t> values) {
  if (values.size() > 3) {
    op(Op::kMark);
  }
  for (const std::int64_t value : values) {
    integer(value);
  }
  tuple(values.size());
}

void PickleOutput::put() {
  if (next_ <= 0xFF) {
    op(Op::kBinPut);
    byte(next_);
  } else {
    op(Op::kLongBinPut);
    little_endian(next_, 4);
  }
  ++next_;
}

void PickleOutput::put(const void* identity) {
  objects_.emplace(identity, next_);
  put();
}

void PickleOutput::reference(std::uint32_t entry) {
  if (entry <= 0xFF) {
    op(Op::kBinGet);
    byte(entry);
  } else {
    op(Op::kLongBinGet);
    little_endian(entry, 4);
  }
}

bool PickleOutput::get(const void* identity) {
  const auto found = objects_.find(identity);
  if (found == objects_.end()) {
    return false;
  }
  reference(found->second);
  return true;
}

bool PickleOutput::has(const void* identity) const {
  return objects_.contains(identity);
}

std::string PickleOutput::finish() && {
  op(Op::kStop);
  return std::move(bytes_);
}

} // namespace lockstep::ckpt::internal
