// SPDX-License-Identifier: BSD-3-Clause
//
// `lockstep`: the torch-free program.
#include <exception>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/output.h"
#include "lockstep/base/internal/atomic_file.h"
#include "lockstep/base/internal/caught.h"

int main(int argc, char** argv) {
  using lockstep::ErrorCode;
  namespace cli = lockstep::cli;
  lockstep::remove_temporaries_on_signals();
  try {
    const std::vector<std::string> args(argv + (argc > 0 ? 1 : 0), argv + argc);
    const int status = cli::run(args);
    if (cli::is_cut_off()) {
      return cli::print_error(
          {.code = ErrorCode::kIo,
           .op = "cli.print",
           .message = "standard output took only a part of the text",
           .hint = "its disk may be full"},
          "lockstep.error/1",
          false);
    }
    return status;
  } catch (const std::exception& exception) {
    return cli::print_error(
        lockstep::error_of(exception, "cli.run"),
        "lockstep.error/1",
        false);
  }
}
