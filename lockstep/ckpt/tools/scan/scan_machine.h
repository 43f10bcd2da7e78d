// SPDX-License-Identifier: BSD-3-Clause
//
// A pickle machine that keeps only what names are made of: texts, names, and
// tuples of them. Everything else is a value without content, so that nothing
// in a file can make it large or deep.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/ckpt/pickle/pickle_decoder.h"
#include "lockstep/ckpt/tools/scan/pickle_scan.h"

namespace lockstep::ckpt::internal {

/// A value as the scan sees it: small, since a file decides how many there are.
struct Sketch {
  enum class Kind : std::uint8_t {
    kOther,
    kMark,
    kText,
    kName,
    /// A tuple (text, name, text, ...).
    kStorageId,
    /// A tuple (name, text).
    kMember,
  };
  Kind kind = Kind::kOther;
  /// Row of `texts_` (texts and names) or of `tuples_`.
  std::uint32_t index = 0;
};

/// E_STACK: the pickle takes what is not on its stack.
Error stack_error(std::string message);

class ScanMachine {
 public:
  ScanMachine(ByteSpan bytes, const PickleScanOptions& options)
      : options_(options), decoder_(bytes) {}

  void run();

  // One handler per kind of opcode; `row` of the table calls them.
  Status push_other(const Instruction& in);
  Status push_text(const Instruction& in);
  Status push_string_line(const Instruction& in);
  Status push_unicode_line(const Instruction& in);
  Status push_bytes(const Instruction& in);
  Status push_mark(const Instruction& in);
  Status push_empty_tuple(const Instruction& in);
  Status push_extension(const Instruction& in);
  Status global(const Instruction& in);
  Status stack_global(const Instruction& in);
  Status inst(const Instruction& in);
  Status collapse(const Instruction& in);
  Status drop_to_mark(const Instruction& in);
  Status tuple(const Instruction& in);
  Status tuple_n(const Instruction& in);
  Status drop_one(const Instruction& in);
  Status drop_two(const Instruction& in);
  Status call_two(const Instruction& in);
  Status reduce(const Instruction& in);
  Status call_three(const Instruction& in);
  Status pop(const Instruction& in);
  Status dup(const Instruction& in);
  Status put(const Instruction& in);
  Status put_line(const Instruction& in);
  Status memoize(const Instruction& in);
  Status get(const Instruction& in);
  Status get_line(const Instruction& in);
  Status binpersid(const Instruction& in);
  Status nothing(const Instruction& in);

  PickleScan result;

 private:
  Status execute(const Instruction& in);
  Result<Sketch> take();
  Result<std::vector<Sketch>> take_to_mark();
  Status take_values(std::size_t count);
  Status fetch(std::uint64_t index);
  void store(std::uint64_t index);
  void push(Sketch sketch);
  // Views must point into the pickle or into `owned_`.
  void push_view(Sketch::Kind kind, std::string_view text);
  void push_text_value(std::string_view text, std::uint64_t offset);
  void push_tuple(std::vector<Sketch> parts);
  Status push_name(
      std::string_view module,
      std::string_view name,
      std::uint64_t offset);
  std::string_view own(std::string text);
  [[nodiscard]] std::string_view text_of(const Sketch& sketch) const;
  [[nodiscard]] bool is_getattr(const Sketch& sketch) const;
  [[nodiscard]] bool is_member_of_enum(const Sketch& args) const;
  void note(std::string name, std::uint64_t offset, bool is_nested);
  void look_inside(std::string_view bytes, std::uint64_t offset);

  PickleScanOptions options_;
  PickleDecoder decoder_;
  std::vector<Sketch> stack_;
  std::vector<std::string_view> texts_;
  std::deque<std::string> owned_;
  // Those that may be ids of storages or arguments of `getattr`.
  std::vector<std::vector<Sketch>> tuples_;
  // Python numbers the memo from 0 on; other indices are rare.
  std::vector<Sketch> memo_;
  std::map<std::uint64_t, Sketch> far_memo_;
  std::map<std::string, std::size_t> rows_;
  // Where `getattr` is named, and how often it came onto the stack for anything
  // but a harmless call.
  std::vector<std::uint64_t> getattrs_;
  std::uint64_t open_getattrs_ = 0;
};

} // namespace lockstep::ckpt::internal
