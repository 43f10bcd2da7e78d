// SPDX-License-Identifier: BSD-3-Clause
//
// `lockstep`: the torch-free program.
#include <exception>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/output.h"
#include "lockstep/base/atomic_file.h"

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
  } catch (const lockstep::Exception& exception) {
    return cli::print_error(exception.error(), "lockstep.error/1", false);
  } catch (const std::exception& exception) {
    return cli::print_error(
        {.code = ErrorCode::kInternal,
         .op = "cli.run",
         .message = exception.what(),
         .hint = "this is a bug in Lockstep; please report it"},
        "lockstep.error/1",
        false);
  }
}
