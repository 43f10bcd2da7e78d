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

#include "lockstep/base/error.h"
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

/// Which pickles are taken.
enum class Grammar : std::uint8_t {
  /// What Python's pickler writes: PROTO once and in front, whole frames.
  kWritten,
  /// What Python's unpicklers load: PROTO anywhere, several times or nowhere;
  /// frames are ignored.
  kLoaded,
  /// The same as the unpickler in C loads it from a file without `peek`
  /// (io.BytesIO): an operand that crosses the end of its frame begins behind
  /// the frame, and what stands in front is lost.
  kBuffered,
};

/// Reads instructions one after the other.
/// Errors: kCorrupt (E_TRUNCATED, E_FRAME, E_PROTO, E_PICKLE), kUnsupported
/// (E_OPCODE, E_PROTO).
class PickleDecoder {
 public:
  explicit PickleDecoder(ByteSpan bytes, Grammar grammar = Grammar::kWritten)
      : bytes_(bytes), grammar_(grammar) {}

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

  /// Goes over `bytes` that are no instructions. Errors: kCorrupt
  /// (E_TRUNCATED).
  Status skip(std::uint64_t bytes);

  /// Units: bytes read so far.
  [[nodiscard]] std::uint64_t position() const noexcept {
    return position_;
  }
  /// True if a frame goes on behind what was read (grammars but `kWritten`).
  [[nodiscard]] bool is_in_frame() const noexcept {
    return position_ < buffer_end_;
  }
  /// True if an instruction crossed the end of a frame: Python's unpicklers do
  /// not agree on what it says (grammars but `kWritten`).
  [[nodiscard]] bool crosses_frames() const noexcept {
    return crosses_frames_;
  }
  /// True if the end of the bytes was in the way of an instruction or a frame:
  /// with more bytes behind it they could say something else.
  [[nodiscard]] bool touches_end() const noexcept {
    return touches_end_;
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
  bool enter_frame();
  void reach(std::uint64_t bytes, bool is_copied = false);
  bool fail(Error error);
  void note_no_opcode();
  Error truncated(std::uint64_t need);
  [[nodiscard]] std::uint64_t remaining() const noexcept {
    return bytes_.size() - position_;
  }

  ByteSpan bytes_;
  Grammar grammar_ = Grammar::kWritten;
  Instruction instruction_ = {};
  std::uint64_t position_ = 0;
  std::optional<int> protocol_ = {};
  std::optional<std::uint64_t> frame_end_ = {};
  // Where the bytes end that the unpickler in C has in memory; 0 in no frame.
  std::uint64_t buffer_end_ = 0;
  bool crosses_frames_ = false;
  bool touches_end_ = false;
  Error error_ = {};
};

} // namespace lockstep::ckpt
