// SPDX-License-Identifier: BSD-3-Clause
//
// Arguments that several commands take, declared the same way everywhere.
#pragma once

#include <string>

namespace CLI {
class App;
} // namespace CLI

namespace lockstep::cli {

/// The positional FILE, "-" for standard input.
void add_file(CLI::App& app, std::string& file);

} // namespace lockstep::cli
