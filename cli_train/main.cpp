// SPDX-License-Identifier: BSD-3-Clause
//
// The program `lockstep-train`: sub-commands of `lockstep` that need LibTorch.
// `lockstep train ...` starts it with the same arguments.
#include <algorithm>
#include <cstdio>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include <c10/util/Exception.h>

#include "cli_train/commands.h"
#include "cli_train/cuda_library.h"
#include "lockstep/base/internal/answer.h"
#include "lockstep/base/internal/program_text.h"
#include "lockstep/base/strings.h"
#include "lockstep/kernels/install.h"
#include "lockstep/launch/error_file.h"
#include "lockstep/tensor/internal/host_memory.h"
#include "lockstep/train/loop/smallest_batch.h"
#include "lockstep/train/settings/internal/commands.h"

namespace {

using lockstep::cli_train::Arguments;
using lockstep::train::kTrainCommands;

bool has(Arguments args, std::string_view flag) {
  return std::ranges::find(args, flag) != args.end();
}

// The name of what `args` ask for in JSON.
std::string_view schema_of(Arguments args) {
  const auto* const found = std::ranges::find(
      kTrainCommands,
      args.front(),
      &lockstep::train::TrainCommand::name);
  if (found == kTrainCommands.end()) {
    return "args";
  }
  return has(args, "--tune") ? "tune" : std::string_view(args.front());
}

int fail(const lockstep::Error& error, Arguments args) {
  std::fprintf(stderr, "%s\n", lockstep::to_program_text(error).c_str());
  if (has(args, "--json") && args.front() != "train") { // which has none
    const std::string schema =
        lockstep::format("lockstep.{}/1", schema_of(args));
    std::puts(lockstep::answer_json(schema, error).dump().c_str());
  }
  return lockstep::error_info(error.code).exit_code;
}

lockstep::Error no_memory() {
  return {
      .code = lockstep::ErrorCode::kUnavailable,
      .op = "train",
      .message = "there is not enough memory",
      .hint = "a smaller --batch-size or --img-size needs less"};
}

// LibTorch's errors have no kinds. Two are about what was asked for; another is
// a bug.
lockstep::Error what_libtorch_says(const std::string& text) {
  if (text.find("can't allocate memory") != std::string::npos) {
    return no_memory();
  }
  return lockstep::train::one_value_error(text).value_or(
      lockstep::Error{.op = "train", .message = text});
}

} // namespace

int main(int argc, char** argv) {
  lockstep::keep_freed_host_memory();
  lockstep::launch::install_error_file();
  const std::vector<std::string> args(argv + 1, argv + argc);
  try {
    lockstep::cli_train::load_cuda_library();
    lockstep::kernels::install(); // and `--kernels` has a choice
    return lockstep::cli_train::run_command(args);
  } catch (const lockstep::Exception& error) {
    lockstep::launch::write_error_file(error);
    return fail(error.error(), args);
  } catch (const std::bad_alloc& error) {
    lockstep::launch::write_error_file(error);
    return fail(no_memory(), args);
  } catch (const c10::Error& error) {
    lockstep::launch::write_error_file(error);
    return fail(what_libtorch_says(error.what_without_backtrace()), args);
  } catch (const std::exception& error) {
    lockstep::launch::write_error_file(error);
    return fail({.op = "train", .message = error.what()}, args);
  }
}
