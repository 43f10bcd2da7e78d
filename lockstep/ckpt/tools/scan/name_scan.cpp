// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/tools/scan/name_scan.h"

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <optional>

#include "lockstep/base/internal/numbers.h"
#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/read_error.h"
#include "lockstep/ckpt/core/read_le.h"
#include "lockstep/ckpt/core/storage_class.h"
#include "lockstep/ckpt/pickle/dangerous_names.h"
#include "lockstep/ckpt/pickle/globals.h"
#include "lockstep/ckpt/pickle/pickle.h"
#include "lockstep/ckpt/pickle/pickle_text.h"

namespace lockstep::ckpt::internal {

using Kind = Sketch::Kind;

namespace {

// What a different name takes here and in the report. Units: bytes.
constexpr std::uint64_t kNameCost = 512;

bool starts_with(
    std::span<const Sketch> parts,
    std::initializer_list<Kind> kinds) {
  return parts.size() >= kinds.size() && std::ranges::equal(
                                             kinds,
                                             parts.first(kinds.size()),
                                             {},
                                             {},
                                             &Sketch::kind);
}

// One that a size may be.
Sketch small_number(std::optional<std::uint64_t> value) {
  return value && *value <= std::numeric_limits<std::uint32_t>::max()
             ? Sketch{.kind = Kind::kNumber, .index = static_cast<std::uint32_t>(*value)}
             : Sketch{.kind = Kind::kNoText};
}

// Of the bytes of a LONG1, lowest first.
Sketch small_long(std::string_view bytes) {
  constexpr std::size_t kMost = sizeof(std::uint32_t);
  constexpr unsigned char kSign = 0x80;
  if (bytes.size() > kMost ||
      (!bytes.empty() &&
       (static_cast<unsigned char>(bytes.back()) & kSign) != 0)) {
    return {.kind = Kind::kNoText};
  }
  return small_number(read_number(as_byte_span(bytes), bytes.size()));
}

// The lines of an operand that the end of the bytes cuts: Python's own
// unpickler takes each without its last byte, whatever that is.
std::pair<std::string_view, std::string_view> cut_lines(std::string_view rest) {
  const auto line = [&rest] {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view all = rest.substr(0, end + 1);
    rest.remove_prefix(all.size());
    return all.substr(0, all.empty() ? 0 : all.size() - 1);
  };
  const std::string_view first = line();
  return {first, line()};
}

} // namespace

Result<Sketch> NameScan::plain(const Instruction& in) {
  switch (in.info->op) {
    case Op::kBinUnicode:
    case Op::kShortBinUnicode:
    case Op::kBinUnicode8:
    case Op::kBinString:
    case Op::kShortBinString:
      return text(in.text, in.offset);
    case Op::kString: {
      auto plain = unquote(in.text);
      const std::string_view inside =
          in.text.substr(in.text.empty() ? 0 : 1, plain ? plain->size() : 0);
      const bool is_inside = !plain || inside == *plain;
      return text(
          is_inside ? (plain ? inside : in.text) : own(*std::move(plain)),
          in.offset);
    }
    case Op::kUnicode: {
      auto plain = unescape_unicode(in.text);
      const bool is_same = !plain || *plain == in.text;
      return text(is_same ? in.text : own(*std::move(plain)), in.offset);
    }
    case Op::kBinBytes:
    case Op::kShortBinBytes:
    case Op::kBinBytes8:
    case Op::kByteArray8:
      look_inside(in.text, in.offset);
      return Sketch{.kind = Kind::kNoText};
    case Op::kBinInt:
    case Op::kBinInt1:
    case Op::kBinInt2:
      return small_number(in.number);
    case Op::kLong1:
      return small_long(in.text);
    case Op::kNone:
      return Sketch{.kind = Kind::kNone};
    case Op::kInt:
    case Op::kLong:
      return small_number(
          parse_number<std::uint64_t>(in.text.substr(0, in.text.find('L'))));
    default:
      return Sketch{.kind = Kind::kNoText};
  }
}

Result<Sketch> NameScan::container(
    const Instruction& in,
    std::span<Sketch> taken) {
  note_use(in, taken);
  switch (in.info->op) {
    case Op::kEmptyTuple:
    case Op::kTuple:
    case Op::kTuple1:
    case Op::kTuple2:
    case Op::kTuple3:
      return tuple(taken);
    case Op::kEmptyDict:
    case Op::kDict:
      return new_dict(taken);
    case Op::kEmptyList:
    case Op::kList:
      return new_list(taken);
    default:
      return Sketch{.kind = Kind::kNoText};
  }
}

Result<Sketch> NameScan::call(const Instruction& in, std::span<Sketch> taken) {
  note_use(in, taken);
  switch (in.info->op) {
    case Op::kGlobal:
      return name(dotted_name(in.text, in.second), in.offset);
    case Op::kInst: {
      const Sketch type = name(dotted_name(in.text, in.second), in.offset);
      result_.has_changed_names =
          result_.has_changed_names || (holds_wrapper(type) && !taken.empty());
      return instance_of(type);
    }
    case Op::kStackGlobal:
      return stack_global(taken, in.offset);
    case Op::kReduce:
      return reduce(taken);
    case Op::kNewObj:
    case Op::kNewObjEx:
      return new_object(taken[0]);
    case Op::kObj:
      return taken.empty() ? Sketch{} : instance_of(taken[0]);
    case Op::kBinPersId:
      return persistent(taken[0]);
    case Op::kExt1:
    case Op::kExt2:
    case Op::kExt4:
      // The registry of extension numbers lives in the reading program.
      note(format("?extension.{}", in.number), in.offset, false);
      return Sketch{};
    default:
      return Sketch{};
  }
}

Status
NameScan::add(const Instruction& in, Sketch& target, std::span<Sketch> taken) {
  note_use(in, taken);
  if (target.kind == Kind::kKeys) {
    const bool is_append =
        in.info->op == Op::kAppend || in.info->op == Op::kAppends;
    is_append ? add_keys(taken) : spoil_keys();
    return {};
  }
  if (target.kind == Kind::kName) {
    result_.has_changed_names = true; // Python has one class for all uses
    return {};
  }
  if (target.kind == Kind::kStorage) {
    result_.has_unknown_ids = true; // it may have another type now
    return {};
  }
  switch (in.info->op) {
    case Op::kSetItem:
    case Op::kSetItems:
      for (std::size_t i = 0; i + 1 < taken.size(); i += 2) {
        set_item(target, taken[i], taken[i + 1]);
      }
      return {};
    case Op::kBuild:
      return build(target, taken[0]);
    default:
      return {};
  }
}

void NameScan::reused(const Sketch& sketch) {
  if (sketch.kind == Kind::kDict) {
    is_reused_[sketch.index] = true;
  } else if (sketch.kind == Kind::kState) {
    is_reused_[states_[sketch.index].dict] = true;
  }
  if (sketch.kind == Kind::kKeys) {
    spoil_keys();
  }
  open_getattrs_ += is_getattr(sketch) ? 1 : 0;
}

void NameScan::note_last(const Instruction& in, const Error& error) {
  const bool has_lines =
      in.info != nullptr && in.info->operand == Operand::kTwoLines;
  if (has_lines && error.detail == "E_TRUNCATED") {
    const auto [module, last] =
        cut_lines(as_text(bytes_.subspan(in.offset + 1)));
    name(dotted_name(module, last), in.offset);
  } else if (has_lines && error.detail == "E_STACK") {
    // Python's own unpickler asks for the class before it looks for the MARK.
    name(dotted_name(in.text, in.second), in.offset);
  }
}

PickleScan NameScan::finish() && {
  if (open_getattrs_ != 0) {
    for (const std::uint64_t offset : getattrs_) {
      note(std::string(kGetattr), offset, /*is_nested=*/false);
    }
  }
  return std::move(result_);
}

Sketch NameScan::keep(Kind kind, std::string_view text) {
  if (text.empty()) {
    return {.kind = kind, .index = 0}; // two bytes of a file each
  }
  return Sketch::of_row(kind, texts_, text);
}

std::string_view NameScan::own(std::string text) {
  return owned_.emplace_back(std::move(text));
}

Sketch NameScan::text(std::string_view text, std::uint64_t offset) {
  // How protocol 2 spells bytes: a text of code points below 256.
  const auto bytes = latin1_from_utf8(text);
  look_inside(bytes ? std::string_view(*bytes) : text, offset);
  return keep(Kind::kText, text);
}

Sketch NameScan::name(std::string full, std::uint64_t offset) {
  if (full == kGetattr) {
    getattrs_.push_back(offset);
    ++open_getattrs_;
    return keep(Kind::kName, kGetattr);
  }
  names_wrapper_ = names_wrapper_ || is_array_wrapper(full);
  return keep(Kind::kName, note(std::move(full), offset, /*is_nested=*/false));
}

Result<Sketch> NameScan::stack_global(
    std::span<const Sketch> taken,
    std::uint64_t offset) {
  if (!starts_with(taken, {Kind::kText, Kind::kText})) {
    note("?", offset, /*is_nested=*/false);
    return may_be_text(taken[0]) && may_be_text(taken[1])
               ? Result<Sketch>(Sketch{})
               : corrupt_file("E_PICKLE", "a name of values that are no texts");
  }
  const std::pair parts(taken[0].index, taken[1].index);
  const auto known = joined_.find(parts);
  if (known == joined_.end()) {
    const Sketch made =
        name(dotted_name(text_of(taken[0]), text_of(taken[1])), offset);
    joined_.emplace(parts, made);
    return made;
  }
  if (is_getattr(known->second)) {
    return name(std::string(kGetattr), offset);
  }
  ++result_.names[rows_.find(text_of(known->second))->second].count;
  return known->second;
}

Sketch NameScan::tuple(std::span<const Sketch> parts) {
  const bool is_member =
      parts.size() == 2 && starts_with(parts, {Kind::kName, Kind::kText});
  if (is_member ||
      starts_with(parts, {Kind::kText, Kind::kName, Kind::kText})) {
    constexpr std::size_t kView = 5;
    std::array<Sketch, 4> kept;
    std::ranges::copy(parts.first(is_member ? 2 : 3), kept.begin());
    kept.back() =
        parts.size() > kView ? parts[kView] : Sketch{.kind = Kind::kNone};
    return Sketch::of_row(
        is_member ? Kind::kMember : Kind::kStorageId,
        tuples_,
        kept);
  }
  if (starts_with(parts, {Kind::kName})) {
    return {.kind = Kind::kNames, .index = parts[0].index};
  }
  if (starts_with(parts, {Kind::kStorage})) {
    return {.kind = Kind::kStorages};
  }
  if (parts.size() == 3 && parts[2].kind == Kind::kName) {
    return {.kind = Kind::kTriple, .index = parts[2].index};
  }
  if (parts.size() == 2 && parts[0].kind == Kind::kType) {
    const std::optional<WrappedType>& type = types_[parts[0].index];
    if (type && type->kind != 'O') {
      return {.kind = Kind::kTypePair};
    }
  }
  if (starts_with(parts, {Kind::kText})) {
    return {.kind = Kind::kTexts, .index = parts[0].index};
  }
  return shape(parts);
}

// The view stays valid.
std::string_view
NameScan::note(std::string name, std::uint64_t offset, bool is_nested) {
  // Short ones count once: a file of a million tensors has a million calls.
  constexpr std::size_t kShort = 256;
  const bool is_long = name.size() > kShort;
  const std::uint64_t bytes = name.size();
  const auto [row, is_new] =
      rows_.try_emplace(std::move(name), result_.names.size());
  Status made =
      budget_->make((is_long || is_new ? bytes : 0) + (is_new ? kNameCost : 0));
  if (!made && !over_) {
    over_ = std::move(made).error();
  }
  if (is_new) {
    result_.names.push_back(
        {.name = row->first, .offset = offset, .is_nested = is_nested});
  }
  ++result_.names[row->second].count;
  return row->first;
}

// A pickle in a string: with PROTO in front, or one that ends where the string
// ends and names something, or names something dangerous before it breaks.
void NameScan::look_inside(std::string_view bytes, std::uint64_t offset) {
  constexpr std::string_view kNaming = "\n\x93"; // GLOBAL, INST, STACK_GLOBAL
  const bool has_proto = starts_like_pickle(bytes);
  const bool may_name = bytes.size() > 4 &&
                        bytes.find_first_of(kNaming) != std::string_view::npos;
  if (options_.nesting == 0 || (!has_proto && !may_name)) {
    return;
  }
  PickleScanOptions inner = options_;
  --inner.nesting;
  inner.collect_texts = false;
  inner.has_joblib_arrays = false;
  const PickleScan scan = scan_pickle(as_byte_span(bytes), inner);
  const bool is_whole = !scan.broken && scan.consumed == bytes.size();
  const bool is_pickle =
      has_proto ? !scan.broken || !scan.names.empty()
                : std::ranges::any_of(scan.names, [&](const PickleName& found) {
                    return is_whole || is_dangerous_path(found.name);
                  });
  if (!is_pickle) {
    return;
  }
  result_.nested += 1 + scan.nested;
  for (const PickleName& found : scan.names) {
    note(found.name, offset, /*is_nested=*/true);
  }
}

} // namespace lockstep::ckpt::internal
