// SPDX-License-Identifier: BSD-3-Clause
//
// What `lockstep ckpt convert` writes of a file, and what commands leave out
// because the format has no place for it.
//   LOCKSTEP_ASSIGN(const Chosen chosen, choose_values(file, "npz", false));
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/ckpt/load.h"

namespace lockstep::cli {

/// What is written, and what is not.
struct Chosen {
  ckpt::Value root = {};
  /// Entries of the top level.
  std::vector<std::string> left_out = {};
  /// `_metadata`, the versions of modules, that the format has no place for.
  std::vector<std::string> versions = {};
  /// Other attributes, likewise.
  std::vector<std::string> attributes = {};
  /// Tensors that no name leads to (`unnamed_tensors`), likewise.
  std::vector<std::string> unnamed = {};
  /// Records beside the value, likewise.
  std::vector<std::string> records = {};
  /// What is written as something else.
  std::vector<std::string> warnings = {};
};

/// For the writer `to`. Where the format has no place for the rest, that is the
/// weights alone unless `all` is set. Errors: those of the writer.
Result<Chosen>
choose_values(const ckpt::Checkpoint& file, std::string_view to, bool all);

/// All of `root`, and what the writer `to` has no place for.
/// Errors: those of the writer.
Result<Chosen> choose_all(const ckpt::Value& root, std::string_view to);

/// Names of all that is left out.
std::vector<std::string> left_out_names(const Chosen& chosen);

/// The same for people, with a line feed after each line.
std::string left_out_text(const Chosen& chosen, std::string_view format_name);

} // namespace lockstep::cli
