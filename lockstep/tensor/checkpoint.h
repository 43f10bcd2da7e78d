// SPDX-License-Identifier: BSD-3-Clause
//
// Checkpoint files for programs with tensors.
//   save({{"epoch", 3}, {"state_dict", net}, {"optimizer", sgd}},
//        "checkpoint.pth.tar");
//   Checkpoint file = load("checkpoint.pth.tar", {.map_location = "cpu"});
//   const int epoch = file["epoch"].to<int>();
//   load_weights(*net, file);
//   load_state(sgd, file["optimizer"]);
//
// `map_location` of `load`: where the tensors of a file go.
//   {.map_location = "cpu"}
//   {.map_location = torch::Device("cuda:0")}
//   {.map_location = std::map<std::string, std::string>{{"cuda:1", "cuda:0"}}}
//   {.map_location = [](const std::string& location) { return ...; }}
//
// Weights from any checkpoint into a module, in one call: saved on one device
// or many, alone or in a training checkpoint or as a whole model, with or
// without "module.", from Python or C++.
//   load_weights(*net, "whole_model_of_4_gpus.pth");
//   load_weights(*model, "vgg19.pth", {.by_position = true});
//   load_weights(*model, "resnet18.pth", {.may_differ = MayDiffer::kEnds});
//   load_weights(*net, "esrgan.pth", {.key = "params_ema"});
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include "lockstep/base/fs.h"
#include "lockstep/ckpt/convert.h"
#include "lockstep/ckpt/value.h"
#include "lockstep/tensor/state_dict.h"

#pragma GCC visibility push(default)
namespace lockstep {

/// A rule from the device tag in a file ("cpu", "cuda:1") to a device.
class MapLocation {
 public:
  /// Gets the tag; nothing means "as stored".
  using Function =
      std::function<std::optional<c10::Device>(const std::string& location)>;
  using Map = std::map<std::string, std::string>;

  /// As stored.
  MapLocation() = default;
  // Implicit on purpose: `{.map_location = "cpu"}`.
  // NOLINTBEGIN(google-explicit-constructor)
  MapLocation(const char* device) : rule_(std::string(device)) {}
  MapLocation(std::string device) : rule_(std::move(device)) {}
  MapLocation(c10::Device device) : rule_(device.str()) {}
  /// Tags that are not in the map stay as stored.
  MapLocation(Map map) : rule_(std::move(map)) {}
  template <std::invocable<const std::string&> F>
  MapLocation(F function) : rule_(Function(std::move(function))) {}
  // NOLINTEND(google-explicit-constructor)

  /// The location that `location` becomes: "cuda:0".
  /// Errors: as `location_device`.
  [[nodiscard]] std::string apply(const std::string& location) const;

 private:
  std::variant<std::monostate, std::string, Map, Function> rule_;
};

/// The device that a location names, if this machine has it.
/// Errors: throws kUnavailable with PyTorch's text for CUDA devices that are
/// not here; kUnsupported for an unknown tag.
c10::Device location_device(const std::string& location);

/// The check of `location_device` for CUDA against given facts.
/// `index` is -1 for plain "cuda".
void check_cuda_location(int index, bool is_available, int device_count);

/// Sets the location of every storage in `value` by `rule`.
/// Errors: as `MapLocation::apply`.
void map_locations(const ckpt::Value& value, const MapLocation& rule);

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

namespace internal {

template <class T>
concept IsModule = std::convertible_to<const T*, const torch::nn::Module*>;

template <class T>
concept HasState = requires(const T& part) {
  requires std::convertible_to<decltype(part.state_dict()), ckpt::Value> ||
               std::convertible_to<decltype(part.state_dict()), StateDict>;
};

template <class T>
concept IsPart = IsModule<T> || HasState<T>;

/// A pointer or holder of one: `std::shared_ptr<Net>`, `Linear`,
/// `DataParallel`.
template <class T>
concept HoldsPart =
    !IsPart<T> && !std::is_array_v<T> && requires(const T& holder) {
      requires IsPart<std::remove_cvref_t<decltype(*holder)>>;
    };

} // namespace internal

/// What a file or an entry of a checkpoint holds: a module or its weights, an
/// optimizer or a scheduler, a tensor, plain data, what a `ckpt::ToValue` of
/// the program's own makes a value of, or a dict of such entries. Ownership:
/// tensors alias live memory.
class CheckpointEntry {
 public:
  /// Key (a text, or as in Python a number) and content.
  using Item = std::pair<ckpt::Value, CheckpointEntry>;
  using Items = std::vector<Item>;

  // Implicit on purpose: in calls of `save`.
  // NOLINTBEGIN(google-explicit-constructor)
  CheckpointEntry(std::initializer_list<Item> items) : data_(Items(items)) {}
  /// Braces make a dict; a list is a `std::vector`.
  template <class T>
    requires(!std::same_as<T, Item> && !std::same_as<T, CheckpointEntry>)
  CheckpointEntry(std::initializer_list<T> list) = delete;
  CheckpointEntry(Items items) : data_(std::move(items)) {}
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
    requires(!std::constructible_from<ckpt::Value, const T&>)
  CheckpointEntry(const T& part) : data_(data_of(part)) {}
  template <internal::HoldsPart T>
    requires(!std::constructible_from<ckpt::Value, const T&>)
  CheckpointEntry(const T& holder) : data_(data_in(holder)) {}
  // NOLINTEND(google-explicit-constructor)

  /// As it is written. Weights and tensors that share a storage share it in
  /// the file; no bytes are copied for CPU tensors. Errors: as `ValueBuilder`,
  /// and kInvalidArgument for an empty pointer, with the entry's name.
  [[nodiscard]] ckpt::Value value() const;

 private:
  /// A pointer to nothing.
  struct Missing {};
  using Data = std::variant<
      ckpt::Value,
      StateDict,
      at::Tensor,
      Items,
      std::vector<CheckpointEntry>,
      Missing>;
  struct Convert;

  template <class T>
  static Data data_of(const T& part) {
    if constexpr (internal::HasState<T>) {
      return part.state_dict();
    } else {
      return state_dict(part);
    }
  }
  template <class T>
  static Data data_in(const T& holder) {
    if constexpr (std::constructible_from<bool, const T&>) {
      if (!static_cast<bool>(holder)) {
        // An optional may be empty, a pointer may not.
        constexpr bool kIsOptional = requires { holder.has_value(); };
        return kIsOptional ? Data(ckpt::Value()) : Data(Missing());
      }
    }
    return CheckpointEntry(*holder).data_;
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
/// Weights of modules: `load_weights`. Errors: as `part.load_state_dict`.
template <class Part>
  requires requires(Part& part, const ckpt::Value& saved) {
    part.load_state_dict(saved);
  }
void load_state(Part& part, const ckpt::Value& saved) {
  part.load_state_dict(saved);
}
/// The same for a part whose state is weights.
template <class Part>
  requires requires(Part& part, const StateDict& saved) {
    part.load_state_dict(saved);
  }
void load_state(Part& part, const ckpt::Value& saved) {
  part.load_state_dict(to_state_dict(saved));
}

/// Weights inside a file, and where they were.
struct FoundWeights {
  /// A dict of tensors; shares the tree's storages.
  ckpt::Value weights = {};
  /// "state_dict", "state.model", ...; empty if the top level is the weights.
  std::string key = {};
  /// Where they were if that was no usual place, and which modules could not be
  /// read; empty otherwise.
  std::string note = {};
  /// `torch.save(model.state_dict)`: taken from the model whose method it is.
  bool is_uncalled = false;
};

/// Finds the weights in what a file holds: a dict of tensors or a whole model
/// (out of its DataParallel), at the top level or under one of the keys of
/// `ckpt::locate_weights`, the same below "state" (Composer), or else the only
/// entry that is one, or the only model at any depth. Errors: throws kNotFound,
/// which names the entries if there are several.
FoundWeights find_state_dict(const ckpt::Value& root);

} // namespace lockstep

namespace lockstep::ckpt {
class Entry;
} // namespace lockstep::ckpt

namespace torch::nn {
class Module;
} // namespace torch::nn

namespace lockstep {

/// How `load_weights` reads a file.
struct LoadWeightsOptions {
  /// Where tensors go before they are copied into the module.
  MapLocation map_location = "cpu";
  /// Missing or unexpected keys are an error.
  bool strict = true;
  /// As `LoadStateDictOptions::by_position`.
  bool by_position = false;
  /// As `LoadStateDictOptions::first`: `{.by_position = true, .first = 20}`.
  std::int64_t first = 0;
  /// As `LoadStateDictOptions::may_differ`: kEnds takes a network for 1000
  /// classes and three channels into one for other classes and images.
  MayDiffer may_differ = MayDiffer::kNothing;
  /// Byte order of files that do not say it (`ckpt::LoadOptions`).
  std::optional<std::endian> byteorder = {};
  /// Where the weights are: the dotted name of an entry of the file
  /// ("params_ema", "state.model"), or what the names of some of its weights
  /// begin with ("student"). Empty: `find_state_dict` looks for them.
  std::string key = {};
};

/// Finds the weights in the file and copies them into `module`. Names need not
/// agree in what wraps the network: "module.", "_orig_mod." and the like,
/// anywhere in a name, in layers, on some keys only; one more prefix of any
/// name that a side has around all of it. The choice that fits most keys wins,
/// and a name that fits as it is stays. A tensor that the module has under
/// several names may be in the file once, as `safetensors.torch.save_model`
/// writes it. `LoadReport::notes` says what was chosen.
/// Warns if the method `state_dict` was saved uncalled, and takes the weights
/// from its model. No code of the file runs; its GPUs need not be here.
/// Errors: throws what `load` throws; as `find_state_dict`; kMismatch
/// (E_AMBIGUOUS) if several parts of the file fit, or the file several parts of
/// the module; as `load_state_dict`. The module is then unchanged.
LoadReport load_weights(
    torch::nn::Module& module,
    const std::string& path,
    const LoadWeightsOptions& options = {},
    FileSystem& fs = real_fs());

/// The same from a file that was opened, or an entry of it. Tensors go where
/// `load` was told to put them: only `key`, `strict`, `by_position`, `first`
/// and `may_differ` of `options` count.
LoadReport load_weights(
    torch::nn::Module& module,
    const ckpt::Entry& file,
    const LoadWeightsOptions& options = {});

/// The same for weights that were found already: a dict of tensors. Only
/// `strict`, `by_position`, `first` and `may_differ` of `options` count.
LoadReport load_fitting(
    torch::nn::Module& module,
    const ckpt::Value& weights,
    const LoadWeightsOptions& options = {});

} // namespace lockstep
#pragma GCC visibility pop
