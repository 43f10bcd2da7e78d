// SPDX-License-Identifier: BSD-3-Clause
#include "cli/arguments.h"

#include <CLI/CLI.hpp>

namespace lockstep::cli {

void add_file(CLI::App& app, std::string& file) {
  app.add_option("FILE", file, "checkpoint; - is standard input")->required();
}

} // namespace lockstep::cli
