// SPDX-License-Identifier: BSD-3-Clause
//
// Loads weights whose names differ but whose order and shapes agree: the i-th
// entry of the file goes to the i-th of the model, and the shapes prove it.
//   auto match = match_by_position(file_entries, model_entries);
//   match->pairs                         // {{0, 0}, {1, 1}, ...}
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/ckpt/edit.h"

#pragma GCC visibility push(default)
namespace lockstep::ckpt {

/// A weight without its bytes. Shape: `sizes`, one entry per dimension.
struct NamedShape {
  std::string name = {};
  std::vector<std::int64_t> sizes = {};

  friend bool operator==(const NamedShape&, const NamedShape&) = default;
};

/// Entry `from` of the file goes to entry `to` of the model.
struct PositionPair {
  std::size_t from = 0;
  std::size_t to = 0;

  friend bool operator==(const PositionPair&, const PositionPair&) = default;
};

/// A proven plan.
struct PositionMatch {
  /// Ascending in both members; equal shapes.
  std::vector<PositionPair> pairs = {};
  /// Names of the model that get nothing, and of the file that go nowhere.
  std::vector<std::string> missing_keys = {};
  std::vector<std::string> unexpected_keys = {};

  /// True if nothing is left over on either side.
  [[nodiscard]] bool is_complete() const noexcept {
    return missing_keys.empty() && unexpected_keys.empty();
  }
};

/// Where the shapes of the two lists first differ: "entry 3 is 'conv.bias' [4]
/// in the file, 'norm.weight' [8] in the model"; empty if they are equal.
std::string first_difference_text(
    std::span<const NamedShape> file,
    std::span<const NamedShape> model);

/// The module that a weight belongs to: "layer1.0" of "layer1.0.weight", "" of
/// "weight".
std::string parent_of(const std::string& name);

/// Finds the one way to lay the file's entries along the model's, in order,
/// with equal shapes and as many pairs as possible.
/// Errors: kMismatch: E_AMBIGUOUS if there are several such ways (the message
/// names an entry with two places), E_NO_MATCH if no shape agrees, both with
/// the first difference; kUnsafe (E_LIMIT) for lists of over 4,000 entries that
/// differ.
Result<PositionMatch> match_by_position(
    std::span<const NamedShape> file,
    std::span<const NamedShape> model);

/// The weights of a tree as `match_by_position` wants them. Modules and nested
/// values count by the names of `for_each_tensor`. Errors: as that.
Result<std::vector<NamedShape>> shapes_of(const Value& weights);

/// Gives the weights of `root` the names of the model: in the order of the
/// file, without those that go nowhere. `_metadata` follows the modules.
/// `match` must be of `shapes_of` these weights. Errors: as `weights_to_edit`.
Result<Edited> rename_by_position(
    const Value& root,
    std::span<const NamedShape> model,
    const PositionMatch& match);

/// PyTorch's words for what is left over, one per line; empty if complete:
/// `Missing key(s) in state_dict: "fc.weight". `
std::string leftovers_text(const PositionMatch& match);

} // namespace lockstep::ckpt
#pragma GCC visibility pop
