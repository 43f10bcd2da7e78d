// SPDX-License-Identifier: BSD-3-Clause
//
// What a file was read with a warning of: an array that is no tensor is in no
// list and in no comparison.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/json.h"
#include "lockstep/ckpt/checkpoint.h"

namespace lockstep::cli {

/// The warnings of `file` but that it has no checksums, with `path` in front
/// where there are several files.
std::vector<std::string> warning_lines(
    const ckpt::Checkpoint& file,
    std::string_view path = {});

/// Writes to standard error which tensors reading `file` left out
/// (W_INDEX_UNUSED): a file that is made of it lacks them, too.
void warn_of_left_out(const ckpt::Checkpoint& file);

/// Writes to standard error what becomes of `file` in the format `to`: NumPy's
/// numbers are Python's, and a program is its weights alone.
void warn_of_new_format(const ckpt::Checkpoint& file, std::string_view to);

/// Writes them to standard error, a line each.
void print_warnings(std::span<const std::string> warnings);

/// `result` with `warnings`, if there are any.
Json with_warnings(Json result, std::span<const std::string> warnings);

} // namespace lockstep::cli
