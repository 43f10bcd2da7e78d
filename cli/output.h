// SPDX-License-Identifier: BSD-3-Clause
//
// Where results and errors go: results to stdout, messages to stderr.
#pragma once

#include <optional>
#include <string_view>

#include "lockstep/base/internal/answer.h"

namespace lockstep::cli {

/// Writes `text` to standard output.
void print(std::string_view text);

/// A line "warning: TEXT" to standard error.
void print_warning(std::string_view text);

/// True if standard output has refused something that was printed.
bool is_cut_off();

/// `answer_json` and a line feed.
void print_result(std::string_view schema, Json result);

/// An element of a tensor as JSON: a number or a boolean where JSON has it,
/// with the same digits; else the text: "nan", "(1+2j)", "0x1f".
Json element_json(std::string_view text);

/// The error as text to stderr and, with `json`, as an object to stdout, with
/// what was found before it; its hint names flags. Returns its exit status.
int print_error(
    const Error& error,
    std::string_view schema,
    bool json,
    std::optional<Json> result = {});

} // namespace lockstep::cli
