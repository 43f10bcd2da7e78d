// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/pickle/pickle_decoder.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/read_error.h"
#include "lockstep/ckpt/core/read_le.h"

namespace lockstep::ckpt {
namespace {

// Bytes are copied to where they stay, from a frame and from behind it.
bool is_bytes(Op op) {
  return op == Op::kBinBytes || op == Op::kShortBinBytes ||
         op == Op::kBinBytes8 || op == Op::kByteArray8;
}

} // namespace

Error in_opcode(const Instruction& instruction, Error error) {
  if (!error.offset) {
    error.offset = instruction.offset;
    error.message = format("{}: {}", instruction.info->name, error.message);
  }
  return error;
}

const Instruction* PickleDecoder::next() {
  reach(1);
  const OpcodeInfo* info =
      remaining() == 0
          ? nullptr
          : find_opcode(static_cast<std::uint8_t>(bytes_[position_]));
  if (info == nullptr) {
    note_no_opcode();
    return nullptr;
  }
  instruction_.info = info;
  instruction_.offset = position_++;
  // Nearly every opcode has its protocol declared and is in no frame.
  const bool is_read =
      (info->operand == Operand::kNone || read_operand()) &&
      ((protocol_ && info->op != Op::kProto) || check_protocol()) &&
      ((!frame_end_ && info->op != Op::kFrame) || check_frame());
  return is_read ? &instruction_ : nullptr;
}

Error PickleDecoder::truncated(std::uint64_t need) {
  touches_end_ = true;
  return corrupt_file(
      "E_TRUNCATED",
      format(
          "operand is truncated; expected {} bytes, got {}",
          need,
          remaining()));
}

void PickleDecoder::note_no_opcode() {
  touches_end_ = touches_end_ || remaining() == 0;
  error_ = remaining() == 0
               ? corrupt_file("E_PICKLE", "pickle ends without STOP")
               : read_error(
                     ErrorCode::kUnsupported,
                     "E_OPCODE",
                     format(
                         "unknown opcode {:#04x}",
                         static_cast<std::uint8_t>(bytes_[position_])),
                     "the bytes are not a pickle, or are damaged");
  error_.offset = position_;
}

Status PickleDecoder::skip(std::uint64_t bytes) {
  if (bytes > remaining()) {
    Error error = truncated(bytes);
    error.offset = position_;
    return error;
  }
  position_ += bytes;
  buffer_end_ = 0;
  return {};
}

bool PickleDecoder::fail(Error error) {
  error_ = in_opcode(instruction_, std::move(error));
  return false;
}

bool PickleDecoder::read_operand() {
  const Operand operand = instruction_.info->operand;
  switch (operand) {
    case Operand::kNone:
      return true;
    case Operand::kLine:
      return read_line(instruction_.text);
    case Operand::kTwoLines:
      return read_line(instruction_.text) && read_line(instruction_.second);
    default:
      return read_number(operand_bytes(operand)) &&
             (!has_length(operand) || read_bytes());
  }
}

// `bytes` are read next: as one, from the frame or from what is behind it.
void PickleDecoder::reach(std::uint64_t bytes, bool is_copied) {
  if (buffer_end_ == 0 || bytes <= buffer_end_ - position_) {
    return;
  }
  if (position_ < buffer_end_) {
    crosses_frames_ = true;
    if (grammar_ == Grammar::kBuffered && !is_copied) {
      position_ = buffer_end_;
    }
  }
  buffer_end_ = 0;
}

bool PickleDecoder::read_number(std::size_t width) {
  reach(width);
  if (remaining() < width) {
    return fail(truncated(width));
  }
  const std::uint64_t number =
      internal::read_number(bytes_.subspan(position_), width);
  position_ += width;
  instruction_.number = number;
  if (instruction_.info->operand == Operand::kI4) {
    instruction_.number = static_cast<std::uint64_t>(
        std::int64_t{static_cast<std::int32_t>(number)});
  }
  if (instruction_.info->operand == Operand::kF8) {
    // Big-endian, unlike everything else in a pickle.
    instruction_.real = std::bit_cast<double>(__builtin_bswap64(number));
  }
  return true;
}

bool PickleDecoder::read_bytes() {
  const std::uint64_t length = instruction_.number;
  const bool is_signed = instruction_.info->operand == Operand::kSignedBytes4;
  if (is_signed && length > 0x7FFFFFFF) {
    return fail(corrupt_file("E_TRUNCATED", "negative operand length"));
  }
  reach(length, is_bytes(instruction_.info->op));
  if (length > remaining()) {
    return fail(truncated(length));
  }
  instruction_.text = as_text(bytes_.subspan(position_, length));
  position_ += length;
  return true;
}

bool PickleDecoder::read_line(std::string_view& line) {
  std::string_view rest = as_text(bytes_.subspan(position_));
  std::size_t end = rest.find('\n');
  if (buffer_end_ != 0 && end >= buffer_end_ - position_) {
    reach(rest.size() + 1);
    rest = as_text(bytes_.subspan(position_));
    end = rest.find('\n');
  }
  if (end == std::string_view::npos) {
    touches_end_ = true;
    return fail(corrupt_file(
        "E_TRUNCATED",
        "operand is truncated; expected a line feed, got the end of the "
        "pickle"));
  }
  position_ += end + 1;
  line = rest.substr(0, end);
  return true;
}

bool PickleDecoder::check_protocol() {
  const auto bad = [this](ErrorCode code, std::string message) {
    return fail(read_error(code, "E_PROTO", std::move(message)));
  };
  if (instruction_.info->op != Op::kProto) {
    return grammar_ != Grammar::kWritten || instruction_.info->protocol < 2 ||
           bad(ErrorCode::kCorrupt,
               format(
                   "opcode of protocol {} in a pickle without PROTO",
                   instruction_.info->protocol));
  }
  const bool is_late = instruction_.offset != 0 || protocol_;
  if (is_late && grammar_ == Grammar::kWritten) {
    return bad(ErrorCode::kCorrupt, "expected only at the start of the pickle");
  }
  if (instruction_.number > kNewestProtocol) {
    return bad(
        ErrorCode::kUnsupported,
        format(
            "expected protocol 0 to {}, got {}",
            kNewestProtocol,
            instruction_.number));
  }
  protocol_ = static_cast<int>(instruction_.number);
  return true;
}

bool PickleDecoder::check_frame() {
  if (grammar_ != Grammar::kWritten) {
    return enter_frame();
  }
  const auto bad = [this](std::string message) {
    return fail(corrupt_file("E_FRAME", std::move(message)));
  };
  if (frame_end_ && position_ > *frame_end_) {
    return bad(format("crosses the end of its frame at {:#x}", *frame_end_));
  }
  if (instruction_.info->op == Op::kFrame) {
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
  return true;
}

bool PickleDecoder::enter_frame() {
  const std::uint64_t length = instruction_.number;
  if (buffer_end_ != 0 && length <= buffer_end_ - position_) {
    return true; // inside of the other
  }
  reach(length);
  touches_end_ = touches_end_ || length > remaining();
  if (grammar_ == Grammar::kBuffered && length > remaining()) {
    return fail(truncated(length));
  }
  const std::uint64_t held = std::min(length, remaining());
  buffer_end_ = held == 0 ? 0 : position_ + held;
  return true;
}

} // namespace lockstep::ckpt
