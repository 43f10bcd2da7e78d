// SPDX-License-Identifier: BSD-3-Clause
//
// The bytes of a protocol-2 pickle and its memo, for the pickle writer only.
// Each method writes what Python's C pickler writes for the same thing.
//   PickleOutput out;
//   out.global("collections.OrderedDict");
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

#include "lockstep/ckpt/pickle/pickle_opcodes.h"

namespace lockstep::ckpt::internal {

/// Units: bytes of UTF-8. Longer text takes BINUNICODE8 of protocol 4, which
/// PyTorch's safe loader and LibTorch do not read.
inline constexpr std::uint64_t kMaxPickledText = 0xFFFFFFFF;

/// Grows a pickle. Threads: one at a time.
class PickleOutput {
 public:
  /// `builtins`: the module of Python's own names, a literal. Protocol 2 has
  /// the old name; LibTorch knows only "builtins".
  explicit PickleOutput(std::string_view builtins = "__builtin__");

  void op(Op code);
  void boolean(bool value);
  void integer(std::int64_t value);
  /// Two's complement, little-endian, minimal, at most 255 bytes.
  void big_integer(std::string_view bytes);
  void real(double value);

  /// A string object that is nowhere else; takes a memo entry. Texts are not
  /// longer than `kMaxPickledText`; callers check it.
  void fresh_text(std::string_view text);
  /// A string object that its address tells apart: a reference if it was
  /// written.
  void shared_text(const std::string& text);
  /// One of our own strings: a reference if the same text was written so.
  void literal(std::string_view text);
  /// "module.Name", by reference if it was written. Names of Python 3 are
  /// spelled as protocol 2 wants them.
  void global(std::string_view name);
  /// Closes a tuple of `size` elements that are on the stack; those of more
  /// than 3 need a mark before them. Takes a memo entry.
  void tuple(std::size_t size);
  /// The same for a tuple that may come again.
  void tuple(std::size_t size, const void* identity);
  /// A whole tuple of integers.
  void integer_tuple(std::span<const std::int64_t> values);

  /// Gives the object on top of the stack a memo entry.
  void put();
  /// The same for an object that may come again.
  void put(const void* identity);
  /// Writes a reference to an object, if it has a memo entry.
  bool get(const void* identity);
  [[nodiscard]] bool has(const void* identity) const;

  std::string finish() &&;

 private:
  void byte(std::uint64_t value);
  void little_endian(std::uint64_t value, int bytes);
  void reference(std::uint32_t entry);

  std::string_view builtins_;
  std::string bytes_;
  std::uint32_t next_ = 0;
  std::unordered_map<const void*, std::uint32_t> objects_;
  std::map<std::string, std::uint32_t, std::less<>> literals_;
  std::map<std::string, std::uint32_t, std::less<>> globals_;
};

} // namespace lockstep::ckpt::internal
