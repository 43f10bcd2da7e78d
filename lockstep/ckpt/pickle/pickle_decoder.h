// SPDX-License-Identifier: BSD-3-Clause
//
// Cuts a pickle into instructions. Lengths are compared with the bytes that
// remain before anything is made of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "lockstep/base/fs.h"
#include "lockstep/ckpt/pickle/pickle_opcodes.h"

namespace lockstep::ckpt {

/// One opcode with its operand. Views point into the pickle.
struct Instruction {
  const OpcodeInfo* info = nullptr;
  /// Units: bytes from the start of the pickle.
  std::uint64_t offset = 0;
  /// Operand of the number kinds; signed ones are sign-extended.
  std::uint64_t number = 0;
  double real = 0;
  /// Operand of the byte kinds and the first line.
  std::string_view text = {};
  /// Second line.
  std::string_view second = {};
};

/// `error` with the opcode's name and offset, unless it has an offset.
Error in_opcode(const Instruction& instruction, Error error);

/// Reads instructions one after the other.
/// Errors: kCorrupt (E_TRUNCATED, E_FRAME, E_PROTO, E_PICKLE), kUnsupported
/// (E_OPCODE, E_PROTO).
class PickleDecoder {
 public:
  explicit PickleDecoder(ByteSpan bytes) : bytes_(bytes) {}

  /// The next instruction, null where the bytes end it: `error()` says why.
  /// Ownership: until the next call.
  const Instruction* next();
  [[nodiscard]] const Error& error() const {
    return error_;
  }
  /// The one that `next` gave last.
  [[nodiscard]] const Instruction& instruction() const noexcept {
    return instruction_;
  }

  /// Units: bytes read so far.
  [[nodiscard]] std::uint64_t position() const noexcept {
    return position_;
  }
  /// Declared protocol; 0 or 1 need no declaration.
  [[nodiscard]] int protocol() const noexcept {
    return protocol_.value_or(0);
  }

 private:
  // These return false after noting an error.
  bool read_operand();
  bool read_number(std::size_t width);
  bool read_bytes();
  bool read_line(std::string_view& line);
  bool check_protocol();
  bool check_frame();
  bool fail(Error error);
  void note_no_opcode();
  [[nodiscard]] std::uint64_t remaining() const noexcept {
    return bytes_.size() - position_;
  }

  ByteSpan bytes_;
  Instruction instruction_ = {};
  std::uint64_t position_ = 0;
  std::optional<int> protocol_ = {};
  std::optional<std::uint64_t> frame_end_ = {};
  Error error_ = {};
};

} // namespace lockstep::ckpt
