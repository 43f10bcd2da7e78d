// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/tools/scan/pickle_scan.h"

#include <algorithm>
#include <array>
#include <deque>
#include <initializer_list>
#include <map>
#include <set>
#include <span>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/read_error.h"
#include "lockstep/ckpt/core/storage_class.h"
#include "lockstep/ckpt/pickle.h"
#include "lockstep/ckpt/pickle/globals.h"
#include "lockstep/ckpt/pickle/pickle_text.h"
#include "lockstep/ckpt/pickle/stack_machine.h"

namespace lockstep::ckpt {
namespace {

constexpr std::string_view kGetattr = "builtins.getattr";
// Small at first: a file may hold many small pickles.
constexpr std::uint64_t kFirstWindow = 1ULL << 9;
constexpr std::uint64_t kWindowGrowth = 8;

// A value as the scan sees it: small, since a file decides how many there are,
// and without content, so that nothing in a file can make it deep.
struct Sketch {
  enum class Kind : std::uint8_t {
    kOther,
    kText,
    kName,
    // A tuple (text, name, text, ...).
    kStorageId,
    // A tuple (name, text).
    kMember,
  };
  Kind kind = Kind::kOther;
  // Row of `texts_` (texts and names) or of `tuples_`.
  std::uint32_t index = 0;
};
using Kind = Sketch::Kind;

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

// The policy of the pickle machine that keeps what names are made of: texts,
// names, and tuples of them. It takes whatever a pickle does to the rest.
class NameScan {
 public:
  using Slot = Sketch;

  explicit NameScan(const PickleScanOptions& options)
      : options_(options),
        name_bytes_(options_.limits.made ? options_.limits.made->made : own_) {}

  Result<Sketch> plain(const Instruction& in) {
    switch (in.info->op) {
      case Op::kBinUnicode:
      case Op::kShortBinUnicode:
      case Op::kBinUnicode8:
      case Op::kBinString:
      case Op::kShortBinString:
        return text(in.text, in.offset);
      case Op::kString: {
        auto plain = unquote(in.text);
        return text(plain ? own(*std::move(plain)) : in.text, in.offset);
      }
      case Op::kUnicode: {
        auto plain = unescape_unicode(in.text);
        return text(plain ? own(*std::move(plain)) : in.text, in.offset);
      }
      case Op::kBinBytes:
      case Op::kShortBinBytes:
      case Op::kBinBytes8:
      case Op::kByteArray8:
        look_inside(in.text, in.offset);
        return Sketch{};
      default:
        return Sketch{};
    }
  }

  Result<Sketch> container(const Instruction& in, std::span<Sketch> taken) {
    switch (in.info->op) {
      case Op::kTuple:
      case Op::kTuple1:
      case Op::kTuple2:
      case Op::kTuple3:
        return tuple(taken);
      default:
        return Sketch{};
    }
  }

  Result<Sketch> call(const Instruction& in, std::span<Sketch> taken) {
    switch (in.info->op) {
      case Op::kGlobal:
        return name(dotted_name(in.text, in.second), in.offset);
      case Op::kInst:
        name(dotted_name(in.text, in.second), in.offset);
        return Sketch{};
      case Op::kStackGlobal:
        if (!starts_with(taken, {Kind::kText, Kind::kText})) {
          note("?", in.offset, /*is_nested=*/false);
          return Sketch{};
        }
        return name(
            dotted_name(text_of(taken[0]), text_of(taken[1])),
            in.offset);
      case Op::kReduce:
        if (is_getattr(taken[0]) && is_member_of_enum(taken[1])) {
          --open_getattrs_;
        }
        return Sketch{};
      case Op::kBinPersId:
        note_storage(taken[0]);
        return Sketch{};
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

  static Status add(
      const Instruction& /*in*/,
      Sketch& /*target*/,
      std::span<Sketch> /*taken*/) {
    return {};
  }

  [[nodiscard]] Status pushed(const Sketch& /*sketch*/) const {
    const std::uint64_t most = options_.limits.max_made_bytes;
    return name_bytes_ <= most
               ? Status()
               : Status(read_error(
                     ErrorCode::kUnsafe,
                     "E_LIMIT",
                     format("the names have more than {} bytes", most),
                     "--max-made-bytes allows more"));
  }

  void reused(const Sketch& sketch) {
    open_getattrs_ += is_getattr(sketch) ? 1 : 0;
    if (options_.collect_texts && sketch.kind == Kind::kText) {
      result_.texts.push_back(shared_.at(sketch.index));
    }
  }

  PickleScan finish() && {
    if (open_getattrs_ != 0) {
      for (const std::uint64_t offset : getattrs_) {
        note(std::string(kGetattr), offset, /*is_nested=*/false);
      }
    }
    return std::move(result_);
  }

 private:
  // Views must point into the pickle, or to what stays.
  Sketch keep(Kind kind, std::string_view text) {
    texts_.push_back(text);
    return {
        .kind = kind,
        .index = static_cast<std::uint32_t>(texts_.size() - 1)};
  }

  std::string_view own(std::string text) {
    return owned_.emplace_back(std::move(text));
  }

  [[nodiscard]] std::string_view text_of(const Sketch& sketch) const {
    return texts_[sketch.index];
  }

  Sketch text(std::string_view text, std::uint64_t offset) {
    // How protocol 2 spells bytes: a text of code points below 256.
    const auto bytes = latin1_from_utf8(text);
    look_inside(bytes ? std::string_view(*bytes) : text, offset);
    const Sketch kept = keep(Kind::kText, text);
    if (options_.collect_texts) {
      const auto shared = std::make_shared<const std::string>(text);
      shared_.emplace(kept.index, shared);
      result_.texts.push_back(shared);
    }
    return kept;
  }

  Sketch name(std::string full, std::uint64_t offset) {
    if (full == kGetattr) {
      getattrs_.push_back(offset);
      ++open_getattrs_;
      return keep(Kind::kName, kGetattr);
    }
    return keep(
        Kind::kName,
        note(std::move(full), offset, /*is_nested=*/false));
  }

  Sketch tuple(std::span<const Sketch> parts) {
    const bool is_member =
        parts.size() == 2 && starts_with(parts, {Kind::kName, Kind::kText});
    if (!is_member &&
        !starts_with(parts, {Kind::kText, Kind::kName, Kind::kText})) {
      return {};
    }
    std::array<Sketch, 3> kept;
    std::ranges::copy(parts.first(is_member ? 2 : 3), kept.begin());
    tuples_.push_back(kept);
    return {
        .kind = is_member ? Kind::kMember : Kind::kStorageId,
        .index = static_cast<std::uint32_t>(tuples_.size() - 1)};
  }

  [[nodiscard]] bool is_getattr(const Sketch& sketch) const {
    return sketch.kind == Kind::kName && text_of(sketch) == kGetattr;
  }

  [[nodiscard]] bool is_member_of_enum(const Sketch& args) const {
    if (args.kind != Kind::kMember) {
      return false;
    }
    const auto& parts = tuples_[args.index];
    return is_enum_member(
        format("{}.{}", text_of(parts[0]), text_of(parts[1])));
  }

  void note_storage(const Sketch& id) {
    if (id.kind != Kind::kStorageId) {
      return;
    }
    // ("storage", class, key)
    const auto& parts = tuples_[id.index];
    const auto dtype = storage_class_dtype(text_of(parts[1]));
    if (dtype && keys_.insert(parts[2].index).second) {
      result_.storages.push_back(
          {.key = std::string(text_of(parts[2])), .dtype = *dtype});
    }
  }

  // The view stays valid.
  std::string_view
  note(std::string name, std::uint64_t offset, bool is_nested) {
    // Short ones count once: a file of a million tensors has a million calls.
    constexpr std::size_t kShort = 256;
    const bool is_long = name.size() > kShort;
    name_bytes_ += is_long ? name.size() : 0;
    const auto [row, is_new] =
        rows_.try_emplace(std::move(name), result_.names.size());
    name_bytes_ += is_new && !is_long ? row->first.size() : 0;
    if (is_new) {
      result_.names.push_back(
          {.name = row->first, .offset = offset, .is_nested = is_nested});
    }
    ++result_.names[row->second].count;
    return row->first;
  }

  // A pickle in a string: with PROTO in front, or one that ends where the
  // string ends and names something.
  void look_inside(std::string_view bytes, std::uint64_t offset) {
    const bool has_proto = starts_like_pickle(bytes);
    const bool may_be_old = bytes.size() > 4 && bytes.back() == '.' &&
                            bytes.find('\n') != std::string_view::npos;
    if (options_.nesting == 0 || (!has_proto && !may_be_old)) {
      return;
    }
    PickleScanOptions inner = options_;
    --inner.nesting;
    inner.collect_texts = false;
    const PickleScan scan = scan_pickle(as_byte_span(bytes), inner);
    const bool ended = !scan.broken;
    const bool is_pickle = has_proto ? ended || !scan.names.empty()
                                     : ended && scan.consumed == bytes.size() &&
                                           !scan.names.empty();
    if (!is_pickle) {
      return;
    }
    result_.nested += 1 + scan.nested;
    for (const PickleName& name : scan.names) {
      note(name.name, offset, /*is_nested=*/true);
    }
  }

  PickleScanOptions options_;
  PickleScan result_;
  std::vector<std::string_view> texts_;
  std::deque<std::string> owned_;
  // Those that may be ids of storages or arguments of `getattr`.
  std::vector<std::array<Sketch, 3>> tuples_;
  std::map<std::string, std::size_t> rows_;
  // Of the different names: two texts of a megabyte can be put together often.
  // Of all pickles of the file, if it counts them.
  std::uint64_t own_ = 0;
  std::uint64_t& name_bytes_;
  // Keys of the storages and, if collected, copies of the texts, both by rows
  // of `texts_`.
  std::set<std::uint32_t> keys_;
  std::map<std::uint32_t, std::shared_ptr<const std::string>> shared_;
  // Where `getattr` is named, and how often it came onto the stack for anything
  // but a harmless call.
  std::vector<std::uint64_t> getattrs_;
  std::uint64_t open_getattrs_ = 0;
};

bool may_be_cut(const Error& error) {
  return error.detail == "E_TRUNCATED" || error.detail == "E_PICKLE" ||
         error.detail == "E_FRAME";
}

} // namespace

PickleScan scan_pickle(ByteSpan bytes, const PickleScanOptions& options) {
  NameScan names(options);
  StackMachine machine(bytes, options.limits.max_opcodes, names);
  Status status = machine.run();
  PickleScan scan = std::move(names).finish();
  scan.consumed = machine.decoder().position();
  if (!status) {
    scan.broken = std::move(status).error();
  }
  return scan;
}

Result<PickleScan> scan_pickle_at(
    ByteSource& source,
    std::uint64_t offset,
    const PickleScanOptions& options) {
  const std::uint64_t rest = source.size() - offset;
  const std::uint64_t most = std::min(rest, options.limits.max_pickle_bytes);
  std::vector<std::byte> scratch;
  for (std::uint64_t window = std::min(kFirstWindow, most);;
       window = std::min(window * kWindowGrowth, most)) {
    LOCKSTEP_ASSIGN(const ByteSpan bytes, source.view(offset, window, scratch));
    PickleScan scan = scan_pickle(bytes, options);
    const bool is_cut = scan.broken && may_be_cut(*scan.broken);
    if (is_cut && window == most && most < rest) {
      scan.broken = read_error(
          ErrorCode::kUnsafe,
          "E_LIMIT",
          format("pickle is larger than {} bytes", most),
          "--max-pickle-bytes allows more");
    }
    if (!is_cut || window == most) {
      return scan;
    }
  }
}

} // namespace lockstep::ckpt
