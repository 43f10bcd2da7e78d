// SPDX-License-Identifier: BSD-3-Clause
//
// Every opcode of pickle protocols 0 to 5 in one table: its name, its operand,
// since when it exists and what it does to the stack.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace lockstep::ckpt {

/// The opcodes under Python's names. The byte of the stream is the value.
enum class Op : std::uint8_t {
  kMark = '(',
  kEmptyTuple = ')',
  kStop = '.',
  kPop = '0',
  kPopMark = '1',
  kDup = '2',
  kBinBytes = 'B',
  kShortBinBytes = 'C',
  kFloat = 'F',
  kBinFloat = 'G',
  kInt = 'I',
  kBinInt = 'J',
  kBinInt1 = 'K',
  kLong = 'L',
  kBinInt2 = 'M',
  kNone = 'N',
  kPersId = 'P',
  kBinPersId = 'Q',
  kReduce = 'R',
  kString = 'S',
  kBinString = 'T',
  kShortBinString = 'U',
  kUnicode = 'V',
  kBinUnicode = 'X',
  kEmptyList = ']',
  kAppend = 'a',
  kBuild = 'b',
  kGlobal = 'c',
  kDict = 'd',
  kAppends = 'e',
  kGet = 'g',
  kBinGet = 'h',
  kInst = 'i',
  kLongBinGet = 'j',
  kList = 'l',
  kObj = 'o',
  kPut = 'p',
  kBinPut = 'q',
  kLongBinPut = 'r',
  kSetItem = 's',
  kTuple = 't',
  kSetItems = 'u',
  kEmptyDict = '}',
  kProto = 0x80,
  kNewObj = 0x81,
  kExt1 = 0x82,
  kExt2 = 0x83,
  kExt4 = 0x84,
  kTuple1 = 0x85,
  kTuple2 = 0x86,
  kTuple3 = 0x87,
  kNewTrue = 0x88,
  kNewFalse = 0x89,
  kLong1 = 0x8A,
  kLong4 = 0x8B,
  kShortBinUnicode = 0x8C,
  kBinUnicode8 = 0x8D,
  kBinBytes8 = 0x8E,
  kEmptySet = 0x8F,
  kAddItems = 0x90,
  kFrozenSet = 0x91,
  kNewObjEx = 0x92,
  kStackGlobal = 0x93,
  kMemoize = 0x94,
  kFrame = 0x95,
  kByteArray8 = 0x96,
  kNextBuffer = 0x97,
  kReadonlyBuffer = 0x98,
};

constexpr std::uint8_t opcode_byte(Op op) {
  return static_cast<std::uint8_t>(op);
}

/// The newest protocol there is.
inline constexpr int kNewestProtocol = 5;

/// What follows the opcode byte. Integers are little-endian.
enum class Operand : std::uint8_t {
  kNone,
  /// Unsigned number of 1, 2, 4 or 8 bytes.
  kU1,
  kU2,
  kU4,
  kU8,
  /// Signed number of 4 bytes.
  kI4,
  /// Big-endian double.
  kF8,
  /// Text up to a line feed; two such texts.
  kLine,
  kTwoLines,
  /// Length of 1, 4 or 8 bytes, then that many bytes.
  kBytes1,
  kBytes4,
  kBytes8,
  /// Signed length of 4 bytes, then that many bytes.
  kSignedBytes4,
};

/// Units: bytes of a number kind; of a byte kind, bytes of its length; 0 for
/// others.
constexpr std::size_t operand_bytes(Operand operand) {
  switch (operand) {
    case Operand::kU1:
    case Operand::kBytes1:
      return 1;
    case Operand::kU2:
      return 2;
    case Operand::kU4:
    case Operand::kI4:
    case Operand::kBytes4:
    case Operand::kSignedBytes4:
      return 4;
    case Operand::kU8:
    case Operand::kF8:
    case Operand::kBytes8:
      return 8;
    default:
      return 0;
  }
}

/// True if the operand is a length and as many bytes.
constexpr bool has_length(Operand operand) {
  return operand >= Operand::kBytes1;
}

/// What an opcode does to the stack. What the values are is up to the policy of
/// the machine (stack_machine.h).
enum class Action : std::uint8_t {
  /// Nothing: the decoder has dealt with it.
  kSkip,
  kStop,
  kMark,
  kPop,
  kPopMark,
  kDup,
  kPut,
  kMemoize,
  kGet,
  /// Pushes what the operand spells out.
  kPlain,
  /// Takes values and pushes a container of them.
  kContainer,
  /// Takes values and pushes what a name, a call or an id stands for.
  kCall,
  /// Takes values and gives them to the value below.
  kAdd,
};

/// As `OpcodeInfo::takes`: the values above the last mark, which goes, too.
inline constexpr std::uint8_t kToMark = 0xFF;

/// One row of the table.
struct OpcodeInfo {
  Op op = Op::kStop;
  /// Python's name: "BINUNICODE".
  std::string_view name = {};
  Operand operand = Operand::kNone;
  /// First protocol that has it.
  std::uint8_t protocol = 0;
  Action action = Action::kSkip;
  /// Number of values that the action takes off the stack.
  std::uint8_t takes = 0;
};

/// All rows, in the order of their bytes.
std::span<const OpcodeInfo> opcode_table();

namespace internal {
/// Rows by byte.
extern const std::array<const OpcodeInfo*, 256> kOpcodeRows;
} // namespace internal

/// The row of a byte, null if no protocol has such an opcode.
inline const OpcodeInfo* find_opcode(std::uint8_t byte) {
  return internal::kOpcodeRows[byte];
}

} // namespace lockstep::ckpt
