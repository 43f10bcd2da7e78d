// SPDX-License-Identifier: BSD-3-Clause
//
// What became of a load: PyTorch's words where something does not fit, a table
// where it may.
//   for (const std::string& line : to_lines(load_weights(*net, file))) { ... }
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace lockstep {

/// Which tensors may differ between what is loaded and the module, by name or
/// by shape. Those of the module keep their values.
enum class MayDiffer {
  /// None, unless `strict` is off: then names may.
  kNothing,
  /// Those of the module's first and last layer, as for other images and other
  /// classes: each may have one counterpart of another name or shape.
  kEnds,
  /// All but one.
  kAnything,
};

/// One tensor that both sides have, in two shapes.
struct ShapeDifference {
  std::string key = {};
  std::vector<std::int64_t> loaded = {};
  std::vector<std::int64_t> module = {};
};

/// What did not match; all lists are empty after a full load.
struct LoadReport {
  /// Units: tensors that were copied into the module.
  std::int64_t taken = 0;
  std::vector<std::string> missing_keys = {};
  std::vector<std::string> unexpected_keys = {};
  /// With `MayDiffer` only; else it is an error.
  std::vector<ShapeDifference> mismatched = {};
  /// With `by_position`: name in the file, name in the model, in order.
  std::vector<std::pair<std::string, std::string>> mapping = {};
  /// What `load_weights` chose: the entry of the file, how names were fitted.
  std::vector<std::string> notes = {};

  /// The tensors of the module that are as new: missing, or of another shape.
  [[nodiscard]] std::vector<std::string> made_new() const;
};

/// Python's text: `<All keys matched successfully>` or
/// `_IncompatibleKeys(missing_keys=[...], unexpected_keys=[...])`.
std::string to_string(const LoadReport& report);

/// A table: how many tensors were taken; what was chosen; which are new, with
/// both shapes; which of the file were left. At most `shown` names of a kind,
/// then their number; 0: all.
std::vector<std::string> to_lines(
    const LoadReport& report,
    std::size_t shown = 5);

/// True if only ends differ: `MayDiffer::kEnds`. `model_keys` are all of the
/// module's, in order.
bool only_ends_differ(
    const LoadReport& report,
    const std::vector<std::string>& model_keys);

/// What a load cannot do, in PyTorch's words.
struct LoadProblems {
  /// Of the module: "ResNet".
  std::string class_name = {};
  std::vector<std::string> missing_keys = {};
  std::vector<std::string> unexpected_keys = {};
  /// One text per tensor that cannot be copied.
  std::vector<std::string> errors = {};
};

/// "Error(s) in loading state_dict for ResNet:\n\t..."; empty if there is no
/// problem. At most `shown` names of a kind, then their number; 0: all, which
/// is PyTorch's text to the byte.
std::string load_message(const LoadProblems& problems, std::size_t shown);

} // namespace lockstep
