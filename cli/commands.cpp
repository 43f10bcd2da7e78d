// SPDX-License-Identifier: BSD-3-Clause
#include <array>

#include "cli/command.h"
#include "lockstep/base/strings.h"

namespace lockstep::cli {
namespace {

constexpr std::array kCommands{
    Command{
        "ckpt",
        "inspect",
        "one screen: format, keys, tensors, prefix (the default)",
        Takes::kFile,
        run_inspect},
    Command{
        "ckpt",
        "ls",
        "list the tensors in file order",
        Takes::kFile,
        run_ls},
    Command{
        "ckpt",
        "show",
        "show a tensor, a number or a dict by its name",
        Takes::kFileAndKey,
        run_show},
    Command{
        "ckpt",
        "verify",
        "check every CRC, bound and offset; exit 3 if damaged",
        Takes::kFile,
        run_verify},
    Command{"", "explain", "explain an error code", Takes::kCode, run_explain},
};

} // namespace

std::span<const Command> commands() {
  return kCommands;
}

std::string schema_name(const Command& command) {
  return command.group.empty()
             ? format("lockstep.{}/1", command.name)
             : format("lockstep.{}.{}/1", command.group, command.name);
}

} // namespace lockstep::cli
