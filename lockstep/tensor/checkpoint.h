// SPDX-License-Identifier: BSD-3-Clause
//
// Checkpoint files for programs with tensors.
//   save(checkpoint({{"epoch", 3}, {"state_dict", state_dict(*net)}}),
//        "checkpoint.pth.tar");
//   Checkpoint file = load("checkpoint.pth.tar", {.map_location = "cpu"});
//   load_state_dict(*net, file["state_dict"]);
#pragma once

#include <bit>
#include <concepts>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include <ATen/core/Tensor.h>

#include "lockstep/base/fs.h"
#include "lockstep/ckpt/value.h"
#include "lockstep/tensor/map_location.h"
#include "lockstep/tensor/state_dict.h"

namespace lockstep {

/// A file that was read. Copies share its contents.
/// Ownership: tensors made from it keep the file mapped.
class Checkpoint {
 public:
  Checkpoint(ckpt::Value root, std::string path)
      : root_(std::move(root)), path_(std::move(path)) {}

  /// Everything in the file. Of a temporary, as `load(path)` is, these give a
  /// value that owns what it holds.
  [[nodiscard]] const ckpt::Value& root() const& noexcept {
    return root_;
  }
  [[nodiscard]] ckpt::Value root() && noexcept {
    return std::move(root_);
  }
  [[nodiscard]] bool contains(std::string_view key) const noexcept {
    return root_.find(key) != nullptr;
  }
  /// The entry under `key`. Errors: throws kNotFound, with the nearest key.
  const ckpt::Value& operator[](std::string_view key) const&;
  ckpt::Value operator[](std::string_view key) &&;

 private:
  ckpt::Value root_;
  std::string path_;
};

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

/// What a file or an entry of a checkpoint holds: weights, a tensor, or plain
/// data.
class CheckpointEntry {
 public:
  // Implicit on purpose: in `checkpoint({...})` and in calls of `save`.
  // NOLINTBEGIN(google-explicit-constructor)
  CheckpointEntry(StateDict weights) : data_(std::move(weights)) {}
  CheckpointEntry(at::Tensor tensor) : data_(std::move(tensor)) {}
  template <class T>
    requires std::constructible_from<ckpt::Value, const T&>
  CheckpointEntry(const T& value) : data_(ckpt::Value(value)) {}
  // NOLINTEND(google-explicit-constructor)

  [[nodiscard]] const std::variant<ckpt::Value, StateDict, at::Tensor>& data()
      const noexcept {
    return data_;
  }

 private:
  std::variant<ckpt::Value, StateDict, at::Tensor> data_;
};

/// A dict for `save`. Tensors alias live memory, and those that share a
/// storage share it in the file; no bytes are copied for CPU tensors.
ckpt::Value checkpoint(
    std::initializer_list<std::pair<std::string, CheckpointEntry>> entries);

/// Writes PyTorch's zip format, atomically; Python reads it with
/// `torch.load(weights_only=True)`.
///   save(state_dict(*net), "weights.pth");
/// Errors: throws what `ckpt::save` returns; the old file is then untouched.
void save(
    const CheckpointEntry& content,
    const std::string& path,
    FileSystem& fs = real_fs());

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
