// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/pickle/pickle_decoder.h"

#include <bit>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/internal/read_le.h"

namespace lockstep::ckpt {
namespace {

constexpr int kNewestProtocol = 5;
constexpr std::uint8_t kProto = 0x80;
constexpr std::uint8_t kFrame = 0x95;

Error truncated(std::uint64_t need, std::uint64_t have) {
  return pickle_error(
      ErrorCode::kCorrupt,
      "E_TRUNCATED",
      format("operand is cut; expected {} bytes, got {}", need, have));
}

} // namespace

Error pickle_error(
    ErrorCode code,
    std::string_view detail,
    std::string message,
    std::string hint) {
  return {
      .code = code,
      .op = "ckpt.read",
      .message = std::move(message),
      .hint = std::move(hint),
      .detail = std::string(detail)};
}

Result<const Instruction*> PickleDecoder::next() {
  const OpcodeInfo* info = nullptr;
  std::uint8_t code = 0;
  if (remaining() != 0) {
    code = static_cast<std::uint8_t>(bytes_[position_]);
    info = find_opcode(code);
  }
  if (info == nullptr) {
    return no_opcode();
  }
  instruction_ = {.info = info, .offset = position_};
  ++position_;
  if (info->operand != Operand::kNone) {
    if (Status status = read_operand(); !status) {
      return at_instruction(std::move(status).error());
    }
  }
  // Nearly every opcode has its protocol declared and is in no frame.
  if (!protocol_ || code == kProto) {
    if (Status status = check_protocol(); !status) {
      return at_instruction(std::move(status).error());
    }
  }
  if (frame_end_ || code == kFrame) {
    if (Status status = check_frame(); !status) {
      return at_instruction(std::move(status).error());
    }
  }
  return &instruction_;
}

Error PickleDecoder::no_opcode() const {
  Error error = remaining() == 0
                    ? pickle_error(
                          ErrorCode::kCorrupt,
                          "E_PICKLE",
                          "pickle ends without STOP")
                    : pickle_error(
                          ErrorCode::kUnsupported,
                          "E_OPCODE",
                          format(
                              "unknown opcode {:#04x}",
                              static_cast<std::uint8_t>(bytes_[position_])),
                          "the bytes are no pickle, or are damaged");
  error.offset = position_;
  return error;
}

Error PickleDecoder::at_instruction(Error error) const {
  error.message = format("{}: {}", instruction_.info->name, error.message);
  error.offset = instruction_.offset;
  return error;
}

Status PickleDecoder::read_operand() {
  const Operand operand = instruction_.info->operand;
  const std::size_t size = operand_bytes(operand);
  if (size == 0) {
    return read_lines();
  }
  if (remaining() < size) {
    return truncated(size, remaining());
  }
  const std::uint64_t number =
      internal::read_number(bytes_.subspan(position_), size);
  position_ += size;
  instruction_.number = number;
  if (has_length(operand)) {
    return read_bytes();
  }
  if (operand == Operand::kI4) {
    instruction_.number = static_cast<std::uint64_t>(std::int64_t{
        static_cast<std::int32_t>(static_cast<std::uint32_t>(number))});
  }
  if (operand == Operand::kF8) {
    // Big-endian, unlike everything else in a pickle.
    instruction_.real = std::bit_cast<double>(__builtin_bswap64(number));
  }
  return {};
}

Status PickleDecoder::read_lines() {
  LOCKSTEP_ASSIGN(instruction_.text, read_line());
  if (instruction_.info->operand == Operand::kTwoLines) {
    LOCKSTEP_ASSIGN(instruction_.second, read_line());
  }
  return {};
}

Status PickleDecoder::read_bytes() {
  const std::uint64_t length = instruction_.number;
  const bool is_signed = instruction_.info->operand == Operand::kSignedBytes4;
  if (is_signed && length > 0x7FFFFFFF) {
    return pickle_error(
        ErrorCode::kCorrupt,
        "E_TRUNCATED",
        "negative length of the operand");
  }
  if (length > remaining()) {
    return truncated(length, remaining());
  }
  const auto* begin = reinterpret_cast<const char*>(&bytes_[0]) + position_;
  instruction_.text = {begin, static_cast<std::size_t>(length)};
  position_ += length;
  return {};
}

Result<std::string_view> PickleDecoder::read_line() {
  const auto* begin = reinterpret_cast<const char*>(&bytes_[0]) + position_;
  const std::string_view rest(begin, static_cast<std::size_t>(remaining()));
  const std::size_t end = rest.find('\n');
  if (end == std::string_view::npos) {
    return pickle_error(
        ErrorCode::kCorrupt,
        "E_TRUNCATED",
        "operand is cut; expected a line feed, got the end of the pickle");
  }
  position_ += end + 1;
  return rest.substr(0, end);
}

Status PickleDecoder::check_protocol() {
  if (instruction_.info->code != kProto) {
    if (!protocol_ && instruction_.info->protocol >= 2) {
      return pickle_error(
          ErrorCode::kCorrupt,
          "E_PROTO",
          format(
              "opcode of protocol {} in a pickle without PROTO",
              instruction_.info->protocol));
    }
    return {};
  }
  if (instruction_.offset != 0 || protocol_) {
    return pickle_error(
        ErrorCode::kCorrupt,
        "E_PROTO",
        "expected only at the start of the pickle");
  }
  if (instruction_.number > kNewestProtocol) {
    return pickle_error(
        ErrorCode::kUnsupported,
        "E_PROTO",
        format(
            "expected protocol 0 to {}, got {}",
            kNewestProtocol,
            instruction_.number));
  }
  protocol_ = static_cast<int>(instruction_.number);
  return {};
}

Status PickleDecoder::check_frame() {
  const auto bad = [](std::string message) {
    return pickle_error(ErrorCode::kCorrupt, "E_FRAME", std::move(message));
  };
  if (frame_end_ && position_ > *frame_end_) {
    return bad(format("crosses the end of its frame at {:#x}", *frame_end_));
  }
  if (instruction_.info->code == kFrame) {
    if (frame_end_ && position_ != *frame_end_) {
      return bad("frame inside a frame");
    }
    if (instruction_.number > remaining()) {
      return bad(format(
          "frame of {} bytes, but {} remain",
          instruction_.number,
          remaining()));
    }
    frame_end_ = position_ + instruction_.number;
  }
  if (frame_end_ && position_ == *frame_end_) {
    frame_end_.reset();
  }
  return {};
}

} // namespace lockstep::ckpt
