// SPDX-License-Identifier: BSD-3-Clause
//
// What is said about command lines that no command takes.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "cli/command.h"
#include "lockstep/base/error.h"

namespace CLI {
class ParseError;
} // namespace CLI

namespace lockstep::cli {

Error usage_error(std::string message, std::string hint = {});

/// True for "-x" and "--long", not for "-".
bool is_flag(std::string_view arg);

/// "did you mean 'near'?", or where to look.
std::string did_you_mean(
    std::string_view word,
    std::span<const std::string> known,
    std::string_view else_run = "lockstep --help");

/// `word` is not a command of the top level.
Error unknown_command(const std::string& word);

/// `lockstep ckpt WORD`, where WORD is not a command: an error unless it is a
/// file, or looks like one.
std::optional<Error> unknown_ckpt_word(const std::string& word);

/// What the parser of `command` did not like, in words.
Error explain_parse_error(
    const CLI::ParseError& error,
    const CLI::App& app,
    const Command& command);

} // namespace lockstep::cli
