// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/tools/scan/scan_machine.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <span>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/read_error.h"
#include "lockstep/ckpt/formats/dcp/dcp_metadata.h"
#include "lockstep/ckpt/pickle/pickle_text.h"

namespace lockstep::ckpt::internal {
namespace {

using Kind = Sketch::Kind;
using Handler = Status (ScanMachine::*)(const Instruction&);

constexpr std::string_view kGetattr = "builtins.getattr";

// Opcodes that are not here push a value without content.
constexpr std::array<std::pair<Op, Handler>, 53> kScanHandlers{{
    {Op::kBinUnicode, &ScanMachine::push_text},
    {Op::kShortBinUnicode, &ScanMachine::push_text},
    {Op::kBinUnicode8, &ScanMachine::push_text},
    {Op::kBinString, &ScanMachine::push_text},
    {Op::kShortBinString, &ScanMachine::push_text},
    {Op::kString, &ScanMachine::push_string_line},
    {Op::kUnicode, &ScanMachine::push_unicode_line},
    {Op::kBinBytes, &ScanMachine::push_bytes},
    {Op::kShortBinBytes, &ScanMachine::push_bytes},
    {Op::kBinBytes8, &ScanMachine::push_bytes},
    {Op::kByteArray8, &ScanMachine::push_bytes},
    {Op::kMark, &ScanMachine::push_mark},
    {Op::kEmptyTuple, &ScanMachine::push_empty_tuple},
    {Op::kExt1, &ScanMachine::push_extension},
    {Op::kExt2, &ScanMachine::push_extension},
    {Op::kExt4, &ScanMachine::push_extension},
    {Op::kGlobal, &ScanMachine::global},
    {Op::kStackGlobal, &ScanMachine::stack_global},
    {Op::kInst, &ScanMachine::inst},
    {Op::kObj, &ScanMachine::collapse},
    {Op::kList, &ScanMachine::collapse},
    {Op::kDict, &ScanMachine::collapse},
    {Op::kFrozenSet, &ScanMachine::collapse},
    {Op::kAppends, &ScanMachine::drop_to_mark},
    {Op::kSetItems, &ScanMachine::drop_to_mark},
    {Op::kAddItems, &ScanMachine::drop_to_mark},
    {Op::kPopMark, &ScanMachine::drop_to_mark},
    {Op::kTuple, &ScanMachine::tuple},
    {Op::kTuple1, &ScanMachine::tuple_n},
    {Op::kTuple2, &ScanMachine::tuple_n},
    {Op::kTuple3, &ScanMachine::tuple_n},
    {Op::kAppend, &ScanMachine::drop_one},
    {Op::kBuild, &ScanMachine::drop_one},
    {Op::kSetItem, &ScanMachine::drop_two},
    {Op::kReduce, &ScanMachine::reduce},
    {Op::kNewObj, &ScanMachine::call_two},
    {Op::kNewObjEx, &ScanMachine::call_three},
    {Op::kPop, &ScanMachine::pop},
    {Op::kDup, &ScanMachine::dup},
    {Op::kBinPut, &ScanMachine::put},
    {Op::kLongBinPut, &ScanMachine::put},
    {Op::kPut, &ScanMachine::put_line},
    {Op::kMemoize, &ScanMachine::memoize},
    {Op::kBinGet, &ScanMachine::get},
    {Op::kLongBinGet, &ScanMachine::get},
    {Op::kGet, &ScanMachine::get_line},
    {Op::kBinPersId, &ScanMachine::binpersid},
    {Op::kProto, &ScanMachine::nothing},
    {Op::kFrame, &ScanMachine::nothing},
    {Op::kReadonlyBuffer, &ScanMachine::nothing},
    {Op::kEmptyList, &ScanMachine::push_other},
    {Op::kEmptyDict, &ScanMachine::push_other},
    {Op::kEmptySet, &ScanMachine::push_other},
}};

constexpr auto kByOpcode = [] {
  std::array<Handler, 256> handlers{};
  handlers.fill(&ScanMachine::push_other);
  for (const auto& [op, handler] : kScanHandlers) {
    handlers.at(opcode_byte(op)) = handler;
  }
  return handlers;
}();

// What a tuple may be; the others are not kept.
Kind kind_of(std::span<const Sketch> parts) {
  const auto is = [parts](std::initializer_list<Kind> kinds) {
    return std::ranges::equal(
        kinds,
        parts.first(kinds.size()),
        {},
        {},
        &Sketch::kind);
  };
  if (parts.size() == 2 && is({Kind::kName, Kind::kText})) {
    return Kind::kMember;
  }
  return parts.size() > 2 && is({Kind::kText, Kind::kName, Kind::kText})
             ? Kind::kStorageId
             : Kind::kOther;
}

} // namespace

Error stack_error(std::string message) {
  return corrupt_pickle("E_STACK", std::move(message));
}

void ScanMachine::run() {
  for (std::uint64_t count = 0;; ++count) {
    const Instruction* instruction = decoder_.next();
    if (instruction == nullptr) {
      result.broken = decoder_.error();
      break;
    }
    if (instruction->info->op == Op::kStop) {
      break;
    }
    if (count >= options_.limits.max_opcodes) {
      result.broken = pickle_error(
          ErrorCode::kUnsafe,
          "E_LIMIT",
          "pickle has too many opcodes");
      break;
    }
    Status status = execute(*instruction);
    if (!status) {
      result.broken = std::move(status).error();
      break;
    }
  }
  result.consumed = decoder_.position();
  if (open_getattrs_ != 0) {
    for (const std::uint64_t offset : getattrs_) {
      note(std::string(kGetattr), offset, /*is_nested=*/false);
    }
  }
}

Status ScanMachine::execute(const Instruction& in) {
  Status status = (this->*kByOpcode.at(opcode_byte(in.info->op)))(in);
  if (status) {
    return {};
  }
  Error error = std::move(status).error();
  error.offset = in.offset;
  error.message = format("{}: {}", in.info->name, error.message);
  return error;
}

Result<Sketch> ScanMachine::take() {
  if (stack_.empty() || stack_.back().kind == Kind::kMark) {
    return stack_error("nothing is on the stack");
  }
  Sketch top = stack_.back();
  stack_.pop_back();
  return top;
}

Result<std::vector<Sketch>> ScanMachine::take_to_mark() {
  std::size_t begin = stack_.size();
  while (begin > 0 && stack_[begin - 1].kind != Kind::kMark) {
    --begin;
  }
  if (begin == 0) {
    return stack_error("no MARK is on the stack");
  }
  const auto first = stack_.begin() + static_cast<std::ptrdiff_t>(begin);
  std::vector<Sketch> taken(
      std::make_move_iterator(first),
      std::make_move_iterator(stack_.end()));
  stack_.resize(begin - 1);
  return taken;
}

Status ScanMachine::take_values(std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    LOCKSTEP_TRY(take());
  }
  return {};
}

Status ScanMachine::fetch(std::uint64_t index) {
  const auto far = far_memo_.find(index);
  if (index >= memo_.size() && far == far_memo_.end()) {
    return corrupt_pickle("E_MEMO", format("the memo has no entry {}", index));
  }
  const Sketch found = index < memo_.size() ? memo_[index] : far->second;
  if (options_.collect_texts && found.kind == Kind::kText) {
    result.texts.emplace_back(text_of(found));
  }
  push(found);
  return {};
}

void ScanMachine::store(std::uint64_t index) {
  if (index < memo_.size()) {
    memo_[index] = stack_.back();
  } else if (index == memo_.size() && !far_memo_.contains(index)) {
    memo_.push_back(stack_.back());
  } else {
    far_memo_[index] = stack_.back();
  }
}

void ScanMachine::push(Sketch sketch) {
  open_getattrs_ += is_getattr(sketch) ? 1 : 0;
  stack_.push_back(sketch);
}

void ScanMachine::push_view(Kind kind, std::string_view text) {
  texts_.push_back(text);
  push({.kind = kind, .index = static_cast<std::uint32_t>(texts_.size() - 1)});
}

void ScanMachine::push_text_value(std::string_view text, std::uint64_t offset) {
  // How protocol 2 spells bytes: a text of code points below 256.
  const auto bytes = latin1_from_utf8(text);
  look_inside(bytes ? std::string_view(*bytes) : text, offset);
  if (options_.collect_texts) {
    result.texts.emplace_back(text);
  }
  push_view(Kind::kText, text);
}

void ScanMachine::push_tuple(std::vector<Sketch> parts) {
  const Kind kind = kind_of(parts);
  if (kind == Kind::kOther) {
    push({});
    return;
  }
  push({.kind = kind, .index = static_cast<std::uint32_t>(tuples_.size())});
  tuples_.push_back(std::move(parts));
}

std::string_view ScanMachine::own(std::string text) {
  return owned_.emplace_back(std::move(text));
}

std::string_view ScanMachine::text_of(const Sketch& sketch) const {
  return texts_[sketch.index];
}

Status ScanMachine::push_name(
    std::string_view module,
    std::string_view name,
    std::uint64_t offset) {
  const bool is_dotted = name.find('.') != std::string_view::npos;
  std::string full = format("{}{}{}", module, is_dotted ? ":" : ".", name);
  if (full == kGetattr) {
    getattrs_.push_back(offset);
  } else {
    note(full, offset, /*is_nested=*/false);
  }
  push_view(Kind::kName, own(std::move(full)));
  return {};
}

bool ScanMachine::is_getattr(const Sketch& sketch) const {
  return sketch.kind == Kind::kName && text_of(sketch) == kGetattr;
}

bool ScanMachine::is_member_of_enum(const Sketch& args) const {
  if (args.kind != Kind::kMember) {
    return false;
  }
  const auto& parts = tuples_[args.index];
  return is_enum_lookup(format("{}.{}", text_of(parts[0]), text_of(parts[1])));
}

void ScanMachine::note(std::string name, std::uint64_t offset, bool is_nested) {
  const auto [row, is_new] = rows_.try_emplace(name, result.names.size());
  if (is_new) {
    result.names.push_back(
        {.name = std::move(name), .offset = offset, .is_nested = is_nested});
  }
  ++result.names[row->second].count;
}

// A pickle in a string: with PROTO in front, or one that ends where the string
// ends and names something.
void ScanMachine::look_inside(std::string_view bytes, std::uint64_t offset) {
  const ByteSpan span = as_byte_span(bytes);
  const bool has_proto = starts_like_pickle(bytes);
  const bool may_be_old = bytes.size() > 4 && bytes.back() == '.' &&
                          bytes.find('\n') != std::string_view::npos;
  if (options_.nesting == 0 || (!has_proto && !may_be_old)) {
    return;
  }
  PickleScanOptions inner = options_;
  --inner.nesting;
  inner.collect_texts = false;
  const PickleScan scan = scan_pickle(span, inner);
  const bool ended = !scan.broken;
  const bool is_pickle =
      has_proto ? ended || !scan.names.empty()
                : ended && scan.consumed == bytes.size() && !scan.names.empty();
  if (!is_pickle) {
    return;
  }
  result.nested += 1 + scan.nested;
  for (const PickleName& name : scan.names) {
    note(name.name, offset, /*is_nested=*/true);
  }
}

} // namespace lockstep::ckpt::internal
