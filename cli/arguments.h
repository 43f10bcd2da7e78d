// SPDX-License-Identifier: BSD-3-Clause
//
// Arguments that several commands take, declared the same way everywhere.
#pragma once

#include <cstdint>
#include <string>

#include "lockstep/base/error.h"

namespace CLI {
class App;
} // namespace CLI

namespace lockstep::cli {

/// The positional FILE, "-" for standard input.
void add_file(CLI::App& app, std::string& file);

/// The positional OUT, also as --output.
void add_output(
    CLI::App& app,
    std::string& path,
    const std::string& help = "file to write, also as -o OUT");

/// "5GB" as bytes; 0 for no text. Errors: kInvalidArgument.
Result<std::uint64_t> parse_bytes(const std::string& text);

/// For an option's `check`: what is wrong with a number that is negative or not
/// finite; nothing of what is no number, which the option's type refuses.
std::string check_not_negative(const std::string& text);

} // namespace lockstep::cli
