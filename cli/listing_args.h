// SPDX-License-Identifier: BSD-3-Clause
//
// What `ls` and `tree` have in common: their flags, and rows as text.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/json.h"
#include "lockstep/ckpt/inspect.h"
#include "lockstep/ckpt/load.h"

namespace CLI {
class App;
} // namespace CLI

namespace lockstep::cli {

/// Arguments of both commands.
struct ListArgs {
  std::string file = {};
  bool is_long = false;
  std::string sort = "file";
  std::string filter = {};
  std::size_t depth = 0;
  /// Only for `ls`.
  bool names_only = false;
};

/// Declares FILE, -l, --sort, --filter and --depth.
void add_listing(CLI::App& app, ListArgs& args);

/// The rows that `args` ask for. Errors: kInvalidArgument (--sort, --filter).
Result<std::vector<ckpt::ListRow>> list_rows(
    const ckpt::Checkpoint& file,
    const ListArgs& args);

/// Prints a list, and to standard error what was read with a warning.
void print_list(const ckpt::Checkpoint& file, std::string_view text);

/// Where a file of `format` (`Checkpoint::format`) keeps the storage: a record
/// of an archive ("data/3"), an entry of a stream ("key 3"), or "own" where
/// every tensor has bytes of its own.
std::string storage_place(
    std::string_view format,
    const ckpt::Storage& storage);

/// The place, and the tensor's offset inside the storage: "data/3+12".
std::string storage_text(std::string_view format, const ckpt::Tensor& tensor);

/// " strided grad"
std::string flags_text(const ckpt::Tensor& tensor);

/// A folded part of a name: path, tensors, bytes.
Json group_json(const ckpt::TreeRow& row);

} // namespace lockstep::cli
