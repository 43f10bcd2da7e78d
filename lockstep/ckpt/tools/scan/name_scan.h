// SPDX-License-Identifier: BSD-3-Clause
//
// The policy of the pickle machine that keeps what names are made of: texts,
// names, and tuples of them. It takes whatever a pickle does to the rest.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/ckpt/core/budget.h"
#include "lockstep/ckpt/pickle/pickle_decoder.h"
#include "lockstep/ckpt/tools/scan/array_wrapper.h"
#include "lockstep/ckpt/tools/scan/pickle_scan.h"

namespace lockstep::ckpt::internal {

/// A value as the scan sees it: small, since a file decides how many there are,
/// and without content, so that nothing in a file can make it deep.
struct Sketch {
  enum class Kind : std::uint8_t {
    kOther,
    kText,
    kName,
    /// A tuple (text, name, text, ...).
    kStorageId,
    /// A tuple of three that ends with a name, and the list whose texts are
    /// collected.
    kTriple,
    kKeys,
    /// A tuple (name, text).
    kMember,
    /// What the reader fills with raw bytes, and a tuple that begins with it.
    kStorage,
    kStorages,
    /// What joblib's arrays are made of: a number below 2^32, None, a tuple of
    /// numbers, tuples (text, ...) and (name, ...), `numpy.dtype(...)`, its
    /// state and a pair that begins with it, a new dict, one with nothing but
    /// parts of a wrapper's state, and the wrapper.
    kNumber,
    kNone,
    kShape,
    kTexts,
    kNames,
    kType,
    kTypeState,
    kTypePair,
    kDict,
    kState,
    kWrapper,
    /// Anything else that is no text.
    kNoText,
  };
  Kind kind = Kind::kOther;
  /// The number, a row of the list of the kind, or how many came before it.
  std::uint32_t index = 0;

  template <class Rows>
  static Sketch of_row(Kind kind, Rows& rows, typename Rows::value_type row) {
    rows.push_back(std::move(row));
    return {.kind = kind, .index = static_cast<std::uint32_t>(rows.size() - 1)};
  }
};

/// Threads: one at a time.
class NameScan {
 public:
  using Slot = Sketch;

  NameScan(ByteSpan bytes, const PickleScanOptions& options)
      : bytes_(bytes),
        options_(options),
        budget_(budget_of(options.limits, bytes.size())) {
    result_.has_changed_names = options.has_changed_names;
  }

  /// Raw bytes of arrays are skipped there; without it they are opcodes.
  void skip_in(PickleDecoder& decoder) {
    decoder_ = &decoder;
  }

  Result<Sketch> plain(const Instruction& in);
  Result<Sketch> container(const Instruction& in, std::span<Sketch> taken);
  Result<Sketch> call(const Instruction& in, std::span<Sketch> taken);
  Status add(const Instruction& in, Sketch& target, std::span<Sketch> taken);
  [[nodiscard]] Status pushed(const Sketch& /*sketch*/) const {
    return over_ ? Status(*over_) : Status();
  }
  void reused(const Sketch& sketch);

  /// The names that the instruction asks for at which the machine stopped.
  void note_last(const Instruction& in, const Error& error);
  /// True if elements of an array were skipped.
  [[nodiscard]] bool has_arrays() const noexcept {
    return has_arrays_;
  }
  /// True if the end of the bytes was in the way of elements.
  [[nodiscard]] bool touches_end() const noexcept {
    return touches_end_;
  }
  /// True if the first array was one of objects.
  [[nodiscard]] bool begins_with_objects() const noexcept {
    return begins_with_objects_;
  }
  /// What STOP gives.
  void note_root(const Sketch& root);
  PickleScan finish() &&;

 private:
  static constexpr std::string_view kGetattr = "builtins.getattr";

  // The state of joblib's wrapper, as far as a dict holds it.
  struct ArrayState {
    std::uint32_t dict = 0;
    std::optional<std::uint64_t> count = {};
    std::optional<std::uint32_t> type = {};
    bool is_aligned = false;
  };

  Sketch keep(Sketch::Kind kind, std::string_view text);
  std::string_view own(std::string text);
  [[nodiscard]] std::string_view text_of(const Sketch& sketch) const {
    return texts_[sketch.index];
  }
  Sketch text(std::string_view text, std::uint64_t offset);
  Sketch name(std::string full, std::uint64_t offset);
  Result<Sketch> stack_global(
      std::span<const Sketch> taken,
      std::uint64_t offset);
  [[nodiscard]] bool may_be_text(const Sketch& sketch) const;
  Sketch new_object(const Sketch& type);
  Sketch reduce(std::span<const Sketch> taken);
  [[nodiscard]] bool may_give_back(const Sketch& function, const Sketch& args)
      const;
  Sketch instance_of(const Sketch& type);
  Sketch tuple(std::span<const Sketch> parts);
  Sketch shape(std::span<const Sketch> parts);
  Sketch new_dict(std::span<const Sketch> items);
  void set_item(Sketch& dict, const Sketch& key, const Sketch& value);
  bool set_part(Sketch& dict, const Sketch& key, const Sketch& value);
  Status build(Sketch& target, const Sketch& state);
  [[nodiscard]] WrappedArray array_of(
      const Sketch& wrapper,
      const Sketch& state) const;
  Status skip_array(const WrappedArray& array);
  Status scan_objects();
  [[nodiscard]] bool is_getattr(const Sketch& sketch) const;
  [[nodiscard]] bool is_member_of_enum(const Sketch& args) const;
  Sketch new_list(std::span<const Sketch> items);
  void add_keys(std::span<const Sketch> items);
  void spoil_keys();
  [[nodiscard]] bool is_module_id(const Sketch& id) const;
  Sketch persistent(const Sketch& id);
  void note_use(const Instruction& in, std::span<const Sketch> taken);
  [[nodiscard]] bool holds_wrapper(const Sketch& sketch) const;
  [[nodiscard]] bool is_for_rebuilding(const Sketch& function) const;
  void add_storage(const Sketch& key, std::optional<DType> dtype);
  std::string_view note(std::string name, std::uint64_t offset, bool is_nested);
  void look_inside(std::string_view bytes, std::uint64_t offset);

  ByteSpan bytes_;
  PickleScanOptions options_;
  PickleDecoder* decoder_ = nullptr;
  PickleScan result_;
  // Views point into the pickle, or to what stays.
  // The first is the empty one. A deque does not copy as it grows.
  std::deque<std::string_view> texts_{{}};
  std::deque<std::string> owned_;
  // Those that may be ids of storages, with the view if there is one, or
  // arguments of `getattr`.
  std::vector<std::array<Sketch, 4>> tuples_;
  std::map<std::string, std::size_t, std::less<>> rows_;
  // Rows of `texts_` that STACK_GLOBAL put together before.
  std::map<std::pair<std::uint32_t, std::uint32_t>, Sketch> joined_;
  // Counts names: two texts of a megabyte can be put together often.
  std::shared_ptr<Budget> budget_;
  std::optional<Error> over_;
  // Keys of the storages and copies of the texts that are collected, both by
  // rows of `texts_`.
  std::set<std::uint32_t> keys_;
  std::map<std::uint32_t, std::shared_ptr<const std::string>> shared_;
  bool has_list_ = false;
  bool is_list_spoiled_ = false;
  // Where `getattr` is named, and how often it came onto the stack for anything
  // but a harmless call.
  std::vector<std::uint64_t> getattrs_;
  std::uint64_t open_getattrs_ = 0;
  // Numbers of elements (first that of the shape ()), types (nothing if it is
  // not known) and their states, and states of joblib's arrays.
  std::vector<std::uint64_t> counts_{1};
  std::vector<std::optional<WrappedType>> types_;
  std::vector<WrappedTypeState> type_states_;
  std::vector<ArrayState> states_;
  // Of each dict, if it was used again and may have more items; of each
  // wrapper, if its array was read, after which it keeps its state.
  std::vector<bool> is_reused_;
  std::vector<bool> is_built_;
  // The first one; a second copy of joblib reads its own alone.
  std::string_view wrapper_;
  bool has_two_wrappers_ = false;
  bool names_wrapper_ = false;
  bool has_arrays_ = false;
  bool begins_with_objects_ = false;
  bool touches_end_ = false;
};

} // namespace lockstep::ckpt::internal
