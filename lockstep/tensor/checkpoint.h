// SPDX-License-Identifier: BSD-3-Clause
//
// Checkpoint files for programs with tensors.
//   save({{"epoch", 3}, {"state_dict", net}, {"optimizer", sgd}},
//        "checkpoint.pth.tar");
//   Checkpoint file = load("checkpoint.pth.tar", {.map_location = "cpu"});
//   const int epoch = file["epoch"].to<int>();
//   load_weights(*net, file);
//   load_state(sgd, file["optimizer"]);
#pragma once

#include <bit>
#include <concepts>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <ATen/core/Tensor.h>

#include "lockstep/base/fs.h"
#include "lockstep/ckpt/convert.h"
#include "lockstep/ckpt/value.h"
#include "lockstep/tensor/bridge.h"
#include "lockstep/tensor/map_location.h"
#include "lockstep/tensor/state_dict.h"

namespace lockstep {

/// A file that was read, as Python's dict (ckpt/entry.h); copies share it.
/// Ownership: tensors made from it keep the file mapped.
using Checkpoint = ckpt::Entry;

/// How `load` opens a file.
struct LoadOptions {
  /// Where tensors go; by default to the device they were saved from.
  MapLocation map_location = {};
  /// Map the file and alias tensors. Off: read them when asked for, for files
  /// that may be cut meanwhile (`ckpt::LoadOptions`).
  bool use_mmap = true;
  /// Compare the CRC of a record when its bytes are first asked for.
  bool check_crc = true;
  /// Byte order of files that do not say it (`ckpt::LoadOptions`).
  std::optional<std::endian> byteorder = {};
};

/// Opens a checkpoint; tensors are read when asked for. No code in it runs.
/// Warnings of `ckpt::load` (what is not read, half a model) are LibTorch's.
/// Errors: throws what `ckpt::load` returns, and as `location_device`.
Checkpoint load(
    const std::string& path,
    const LoadOptions& options = {},
    FileSystem& fs = real_fs());

/// What `save` writes of a T that has no `state_dict()`: `static ckpt::Value
/// value(const T&)`. Specialise it for your own types.
template <class T>
struct SavedAs {};

namespace internal {

template <class T>
concept IsModule = std::convertible_to<const T*, const torch::nn::Module*>;

template <class T>
concept HasStateDict = requires(const T& part) {
  { part.state_dict() } -> std::convertible_to<ckpt::Value>;
};

template <class T>
concept HasSavedAs = requires(const T& part) {
  { SavedAs<T>::value(part) } -> std::convertible_to<ckpt::Value>;
};

template <class T>
concept IsPart = IsModule<T> || HasStateDict<T> || HasSavedAs<T>;

[[noreturn]] void raise_empty_part();

/// A pointer or holder of one: `std::shared_ptr<Net>`, `Linear`,
/// `DataParallel`.
template <class T>
concept HoldsPart = !IsPart<T> && requires(const T& holder) {
  requires IsPart<std::remove_cvref_t<decltype(*holder)>>;
};

template <HoldsPart T>
const auto& held_part(const T& holder) {
  if constexpr (std::constructible_from<bool, const T&>) {
    if (!static_cast<bool>(holder)) {
      raise_empty_part();
    }
  }
  return *holder;
}

} // namespace internal

/// What a file or an entry of a checkpoint holds: a module or its weights, an
/// optimizer or a scheduler, a tensor, plain data, or a dict of such entries.
/// Ownership: tensors alias live memory.
class CheckpointEntry {
 public:
  using Item = std::pair<std::string, CheckpointEntry>;

  // Implicit on purpose: in calls of `save`.
  // NOLINTBEGIN(google-explicit-constructor)
  CheckpointEntry(std::initializer_list<Item> items) : data_(Items(items)) {}
  CheckpointEntry(StateDict weights) : data_(std::move(weights)) {}
  CheckpointEntry(at::Tensor tensor) : data_(std::move(tensor)) {}
  CheckpointEntry(const std::vector<at::Tensor>& tensors)
      : data_(std::vector<CheckpointEntry>(tensors.begin(), tensors.end())) {}
  CheckpointEntry(const std::map<std::string, at::Tensor>& tensors)
      : data_(Items(tensors.begin(), tensors.end())) {}
  template <class T>
    requires std::constructible_from<ckpt::Value, const T&>
  CheckpointEntry(const T& value) : data_(ckpt::Value(value)) {}
  template <internal::IsPart T>
  CheckpointEntry(const T& part) : data_(data_of(part)) {}
  template <internal::HoldsPart T>
  CheckpointEntry(const T& holder)
      : CheckpointEntry(internal::held_part(holder)) {}
  // NOLINTEND(google-explicit-constructor)

  /// As it is written. Tensors that share a storage share it in the file; no
  /// bytes are copied for CPU tensors. Errors: as `ValueBuilder`, with the
  /// entry's name.
  [[nodiscard]] ckpt::Value value() const;

 private:
  using Items = std::vector<Item>;
  using Data = std::variant<
      ckpt::Value,
      StateDict,
      at::Tensor,
      Items,
      std::vector<CheckpointEntry>>;
  struct Convert;

  template <class T>
  static Data data_of(const T& part) {
    if constexpr (internal::HasSavedAs<T>) {
      return ckpt::Value(SavedAs<T>::value(part));
    } else if constexpr (internal::IsModule<T>) {
      return state_dict(part);
    } else {
      return ckpt::Value(part.state_dict());
    }
  }

  Data data_;
};

/// Writes PyTorch's zip format, atomically; Python reads it with
/// `torch.load(weights_only=True)`.
///   save(net, "weights.pth");
/// Errors: throws what `ckpt::save` returns; the old file is then untouched.
void save(
    const CheckpointEntry& content,
    const std::string& path,
    FileSystem& fs = real_fs());

/// Gives a saved state back: `load_state(scheduler, file["scheduler"])`.
/// Weights of modules: load_weights.h. Errors: as `part.load_state_dict`.
template <class Part>
  requires requires(Part& part, const ckpt::Value& saved) {
    part.load_state_dict(saved);
  }
void load_state(Part& part, const ckpt::Value& saved) {
  part.load_state_dict(saved);
}

/// Weights inside a file, and where they were.
struct FoundWeights {
  /// A dict of tensors; shares the tree's storages.
  ckpt::Value weights = {};
  /// "state_dict", "state.model", ...; empty if the top level is the weights.
  std::string key = {};
  /// Where they were if that was no usual place; empty otherwise.
  std::string note = {};
  /// `torch.save(model.state_dict)`: taken from the model whose method it is.
  bool is_uncalled = false;
};

/// Finds the weights in what a file holds: a dict of tensors or a whole model
/// (out of its DataParallel), at the top level or under one of the keys of
/// `ckpt::locate_weights`, the same below "state" (Composer), or else the only
/// entry that is one. Errors: throws kNotFound, which names the entries if
/// there are several.
FoundWeights find_state_dict(const ckpt::Value& root);

} // namespace lockstep
