// SPDX-License-Identifier: BSD-3-Clause
//
// The records of an exported program, each read from its JSON.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lockstep/ckpt/formats/exported/exported_program.h"

namespace lockstep::ckpt::internal {

/// A row of a table of weights or of constants.
struct PayloadRow {
  std::string name = {};
  /// "weight_0"
  std::string path = {};
  bool is_parameter = false;
  bool is_pickle = false;
  ExportedTensorMeta meta = {};
};

// Errors of all: kCorrupt (E_PROGRAM), kUnsafe (E_LIMIT, E_DEPTH).

/// models/NAME.json: all of `out` but its name and weights.
/// Errors: also kUnsupported (E_PROGRAM_VERSION).
Status read_model(
    std::string_view text,
    std::string_view record,
    const Limits& limits,
    ExportedModel& out);

/// data/weights/NAME_weights_config.json and its like.
Result<std::vector<PayloadRow>> read_payloads(
    std::string_view text,
    std::string_view record,
    const Limits& limits);

/// A pytree as `treespec_dumps` writes it: [1, {"type": ...}].
Status read_tree(
    std::string_view text,
    std::string_view record,
    const Limits& limits,
    ExportedTree& out);

/// Compares definitions, uses and numbers of values in the graph and the
/// signature of `model`.
Status check_model(const ExportedModel& model);

} // namespace lockstep::ckpt::internal
