// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/pickle/pickle_decoder.h"

#include <bit>
#include <utility>

#include "lockstep/base/strings.h"

namespace lockstep::ckpt {
namespace {

constexpr int kNewestProtocol = 5;
constexpr std::uint8_t kProto = 0x80;
constexpr std::uint8_t kFrame = 0x95;

// Bytes of a number kind; of a byte kind: bytes of its length.
std::size_t width(Operand operand) {
  switch (operand) {
    using enum Operand;
    case kU1:
    case kBytes1:
      return 1;
    case kU2:
      return 2;
    case kU4:
    case kI4:
    case kBytes4:
    case kSignedBytes4:
      return 4;
    case kU8:
    case kF8:
    case kBytes8:
      return 8;
    default:
      return 0;
  }
}

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

Result<Instruction> PickleDecoder::next() {
  Instruction instruction{.offset = position_};
  if (remaining() == 0) {
    Error error = pickle_error(
        ErrorCode::kCorrupt,
        "E_PICKLE",
        "pickle ends without STOP");
    error.offset = position_;
    return error;
  }
  const auto code = static_cast<std::uint8_t>(bytes_[position_]);
  instruction.info = find_opcode(code);
  if (instruction.info == nullptr) {
    Error error = pickle_error(
        ErrorCode::kUnsupported,
        "E_OPCODE",
        format("unknown opcode {:#04x}", code),
        "the bytes are no pickle, or are damaged");
    error.offset = position_;
    return error;
  }
  ++position_;
  Status status = read_operand(instruction);
  if (status) {
    status = check_protocol(instruction);
  }
  if (status) {
    status = check_frame(instruction);
  }
  if (!status) {
    Error error = std::move(status).error();
    error.message = format("{}: {}", instruction.info->name, error.message);
    error.offset = instruction.offset;
    return error;
  }
  return instruction;
}

Status PickleDecoder::read_operand(Instruction& instruction) {
  const Operand operand = instruction.info->operand;
  switch (operand) {
    using enum Operand;
    case kNone:
      return {};
    case kLine:
    case kTwoLines: {
      LOCKSTEP_ASSIGN(instruction.text, read_line());
      if (operand == kTwoLines) {
        LOCKSTEP_ASSIGN(instruction.second, read_line());
      }
      return {};
    }
    case kBytes1:
    case kBytes4:
    case kBytes8:
    case kSignedBytes4:
      return read_bytes(instruction, width(operand));
    case kI4:
      LOCKSTEP_TRY(read_number(instruction, 4));
      instruction.number =
          static_cast<std::uint64_t>(std::int64_t{static_cast<std::int32_t>(
              static_cast<std::uint32_t>(instruction.number))});
      return {};
    case kF8:
      LOCKSTEP_TRY(read_number(instruction, 8));
      // Big-endian, unlike everything else in a pickle.
      instruction.real =
          std::bit_cast<double>(__builtin_bswap64(instruction.number));
      return {};
    default:
      return read_number(instruction, width(operand));
  }
}

Status PickleDecoder::read_number(Instruction& instruction, std::size_t size) {
  if (remaining() < size) {
    return truncated(size, remaining());
  }
  std::uint64_t number = 0;
  for (std::size_t i = size; i-- > 0;) {
    number = number << 8 | static_cast<std::uint64_t>(bytes_[position_ + i]);
  }
  position_ += size;
  instruction.number = number;
  return {};
}

Status PickleDecoder::read_bytes(
    Instruction& instruction,
    std::size_t length_size) {
  LOCKSTEP_TRY(read_number(instruction, length_size));
  const std::uint64_t length = instruction.number;
  const bool is_signed = instruction.info->operand == Operand::kSignedBytes4;
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
  instruction.text = {begin, static_cast<std::size_t>(length)};
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

Status PickleDecoder::check_protocol(const Instruction& instruction) {
  if (instruction.info->code != kProto) {
    if (!protocol_ && instruction.info->protocol >= 2) {
      return pickle_error(
          ErrorCode::kCorrupt,
          "E_PROTO",
          format(
              "opcode of protocol {} in a pickle without PROTO",
              instruction.info->protocol));
    }
    return {};
  }
  if (instruction.offset != 0 || protocol_) {
    return pickle_error(
        ErrorCode::kCorrupt,
        "E_PROTO",
        "expected only at the start of the pickle");
  }
  if (instruction.number > kNewestProtocol) {
    return pickle_error(
        ErrorCode::kUnsupported,
        "E_PROTO",
        format(
            "expected protocol 0 to {}, got {}",
            kNewestProtocol,
            instruction.number));
  }
  protocol_ = static_cast<int>(instruction.number);
  return {};
}

Status PickleDecoder::check_frame(const Instruction& instruction) {
  const auto bad = [](std::string message) {
    return pickle_error(ErrorCode::kCorrupt, "E_FRAME", std::move(message));
  };
  if (frame_end_ && position_ > *frame_end_) {
    return bad(format("crosses the end of its frame at {:#x}", *frame_end_));
  }
  if (instruction.info->code == kFrame) {
    if (frame_end_ && position_ != *frame_end_) {
      return bad("frame inside a frame");
    }
    if (instruction.number > remaining()) {
      return bad(format(
          "frame of {} bytes, but {} remain",
          instruction.number,
          remaining()));
    }
    frame_end_ = position_ + instruction.number;
  }
  if (frame_end_ && position_ == *frame_end_) {
    frame_end_.reset();
  }
  return {};
}

} // namespace lockstep::ckpt
