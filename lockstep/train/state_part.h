// SPDX-License-Identifier: BSD-3-Clause
//
// What a run consists of, as an ordered list of parts that save and load
// themselves. A program with a loop of its own uses the same list:
//   RunState state;
//   state.add(model_part(*net)).add(optimizer_part(optimizer));
//   state.add(generator_part()).add({"note", save_note, load_note});
//   ckpt::Value root = state.save();       // a plain dict: Python reads it
//   state.load(file.root);
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "lockstep/ckpt/value.h"
#include "lockstep/tensor/state_dict.h"

#pragma GCC visibility push(default)
namespace lockstep::train {

/// What a checkpoint means that lacks a part.
enum class IfMissing {
  /// It is refused.
  kRefuse,
  /// The run goes on, and says that its bits may differ.
  kWarn,
  /// The part decides nothing, or is made up from others.
  kIgnore,
};

/// One entry of a checkpoint and how it is made and taken over.
struct StatePart {
  /// Key in the checkpoint's dict.
  std::string key = {};
  /// The state of now. Tensors may alias live ones; made through one builder,
  /// those that share memory keep sharing it.
  std::function<ckpt::Value(ValueBuilder&)> save = {};
  /// Takes over a copy of a saved state, or throws and changes nothing.
  std::function<void(const ckpt::Value&)> load = {};
  IfMissing if_missing = IfMissing::kRefuse;
};

/// `key`: a number of the program's own. Ownership: borrows it.
/// Errors of loading: throws kMismatch for what is no number.
StatePart number_part(const std::string& key, std::int64_t& number);
StatePart number_part(const std::string& key, double& number);

/// The parts of a run. Ownership: a part borrows what it saves.
/// Threads: one at a time; nothing may train meanwhile.
class RunState {
 public:
  /// Errors: throws kInvalidArgument for an empty key or one that is taken.
  RunState& add(StatePart part);
  RunState& add(std::vector<StatePart> parts);

  /// A dict with the parts in their order. Its tensors alias live memory: write
  /// it, or copy it (`SnapshotBuffer`), before training goes on.
  [[nodiscard]] ckpt::Value save() const;

  /// The keys that `root` lacks and that are to be warned of.
  /// Errors: throws kMismatch for missing keys that are needed.
  [[nodiscard]] std::vector<std::string> missing(const ckpt::Value& root) const;

  /// Loads the parts in their order and returns `missing(root)`. What is loaded
  /// must be a copy: `root` may alias a mapped file.
  /// Errors: as `missing`, before anything changes; what a part throws, and
  /// then the parts from it on are unchanged.
  std::vector<std::string> load(const ckpt::Value& root) const;

 private:
  std::vector<StatePart> parts_;
};

} // namespace lockstep::train
#pragma GCC visibility pop
