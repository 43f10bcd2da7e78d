// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/pickle/pickle_stream.h"

#include <algorithm>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/budget.h"
#include "lockstep/ckpt/core/read_error.h"
#include "lockstep/ckpt/pickle/pickle_decoder.h"

namespace lockstep::ckpt {
namespace {

// Small: a file may hold a million pickles of a few bytes.
constexpr std::uint64_t kFirstWindow = 1U << 9;
constexpr std::uint64_t kGrowth = 8;

// True if the bytes end inside a pickle. Other damage does not go away with
// more bytes.
bool ends_inside(ByteSpan bytes, std::uint64_t max_opcodes) {
  PickleDecoder decoder(bytes);
  for (std::uint64_t count = 0; count < max_opcodes; ++count) {
    const Instruction* instruction = decoder.next();
    if (instruction == nullptr) {
      const std::string detail = decoder.error().detail;
      return detail == "E_TRUNCATED" || detail == "E_PICKLE" ||
             detail == "E_FRAME";
    }
    if (instruction->info->op == Op::kStop) {
      return false;
    }
  }
  return false;
}

} // namespace

Result<ByteSpan> PickleStream::window() {
  const std::uint64_t most = std::min(remaining(), limits_.max_pickle_bytes);
  std::uint64_t length =
      source_->is_stable() ? most : std::min(most, kFirstWindow);
  const auto budget = budget_of(limits_, source_->size());
  for (;;) {
    if (Status read = budget->read(source_->is_stable() ? 0 : length); !read) {
      read.error().offset = position_;
      return std::move(read).error();
    }
    LOCKSTEP_ASSIGN(
        const ByteSpan bytes,
        source_->view(position_, length, scratch_));
    if (length == most || !ends_inside(bytes, limits_.max_opcodes)) {
      return bytes;
    }
    length = std::min(most, length * kGrowth);
  }
}

Result<PickleResult> PickleStream::next(PersistentIdHandler* handler) {
  LOCKSTEP_ASSIGN(const ByteSpan bytes, window());
  const bool is_capped = bytes.size() < remaining();
  auto pickle = read_pickle(bytes, handler, limits_);
  if (!pickle) {
    Error error = std::move(pickle).error();
    if (is_capped && bytes.size() == limits_.max_pickle_bytes &&
        ends_inside(bytes, limits_.max_opcodes)) {
      error.code = ErrorCode::kUnsafe;
      error.detail = "E_LIMIT";
      error.message =
          format("a pickle has more than {} bytes", limits_.max_pickle_bytes);
      error.hint = "Limits::max_pickle_bytes allows more";
    }
    error.offset = position_ + error.offset.value_or(0);
    return error;
  }
  for (GlobalUse& use : pickle->globals) {
    use.offset += position_;
  }
  position_ += pickle->consumed;
  return pickle;
}

Result<std::uint64_t> PickleStream::next_number(std::size_t size) {
  if (remaining() < size) {
    return corrupt_file(
        "E_TRUNCATED",
        format(
            "the file ends inside a number; expected {} bytes, got {}",
            size,
            remaining()),
        {},
        position_);
  }
  LOCKSTEP_ASSIGN(
      const ByteSpan bytes,
      source_->view(position_, size, scratch_));
  std::uint64_t number = 0;
  for (std::size_t i = size; i-- > 0;) {
    number = number << 8 | static_cast<std::uint64_t>(bytes[i]);
  }
  position_ += size;
  return number;
}

Result<std::int32_t> PickleStream::next_i32() {
  LOCKSTEP_ASSIGN(const std::uint64_t number, next_number(4));
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(number));
}

Result<std::int64_t> PickleStream::next_i64() {
  LOCKSTEP_ASSIGN(const std::uint64_t number, next_number(8));
  return static_cast<std::int64_t>(number);
}

Status PickleStream::skip(std::uint64_t bytes) {
  if (bytes > remaining()) {
    return corrupt_file(
        "E_TRUNCATED",
        format("expected {} more bytes, got {}", bytes, remaining()),
        {},
        position_);
  }
  position_ += bytes;
  return {};
}

} // namespace lockstep::ckpt
