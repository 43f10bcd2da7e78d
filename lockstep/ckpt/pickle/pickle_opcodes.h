// SPDX-License-Identifier: BSD-3-Clause
//
// Every opcode of pickle protocols 0 to 5 in one table: its operand, since
// when it exists, and what the machine does with it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace lockstep::ckpt {

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

/// Items of the tuple that TUPLE1, TUPLE2 or TUPLE3 makes.
constexpr std::size_t short_tuple_items(std::uint8_t code) {
  constexpr std::uint8_t kTuple1 = 0x85;
  return std::size_t{1} + code - kTuple1;
}

namespace internal {
/// By `Operand`. Inside the function GCC would copy it at each call.
inline constexpr std::array<std::uint8_t, 13>
    kOperandBytes{0, 1, 2, 4, 8, 4, 8, 0, 0, 1, 4, 8, 4};
} // namespace internal

/// Units: bytes of a number kind; of a byte kind, bytes of its length; 0 for
/// others.
constexpr std::size_t operand_bytes(Operand operand) {
  return internal::kOperandBytes.at(static_cast<std::size_t>(operand));
}

/// True if the operand is a length and as many bytes.
constexpr bool has_length(Operand operand) {
  return operand >= Operand::kBytes1;
}

/// What the machine does with an opcode.
enum class Treatment : std::uint8_t {
  /// Read into the value tree.
  kRead,
  /// A call of something we do not run: kept as an `Object` node.
  kOpaque,
  /// An error by name.
  kRefused,
};

/// One row of the table.
struct OpcodeInfo {
  std::uint8_t code = 0;
  /// Python's name: "BINUNICODE".
  std::string_view name = {};
  Operand operand = Operand::kNone;
  /// First protocol that has it.
  std::uint8_t protocol = 0;
  Treatment treatment = Treatment::kRead;
};

/// All rows, in the order of `code`.
std::span<const OpcodeInfo> opcode_table();

namespace internal {
/// Rows by code.
extern const std::array<const OpcodeInfo*, 256> kOpcodeRows;
/// Bytes of opcode and operand, by code, where the code alone tells them and
/// reads nothing from the memo; else 0.
extern const std::array<std::uint8_t, 256> kPlainBytes;
} // namespace internal

/// The row of `code`, null if no protocol has it.
inline const OpcodeInfo* find_opcode(std::uint8_t code) {
  return internal::kOpcodeRows[code];
}

} // namespace lockstep::ckpt
