// SPDX-License-Identifier: BSD-3-Clause
//
// Whether a file is one that a command reads.
#pragma once

#include <span>
#include <string>

namespace lockstep::cli {

/// By the file itself: links of both kinds and other paths count. One name is
/// one file, also while another process puts a new file under it.
bool is_same_file(const std::string& a, const std::string& b);

/// `input`: a path, or "-" for standard input.
bool is_input(const std::string& path, const std::string& input);

/// Whether the file `path` is there and read with an input: it lies in the
/// folder that is one, or the index of shards that is one names it.
bool is_part_of(std::span<const std::string> inputs, const std::string& path);

} // namespace lockstep::cli
