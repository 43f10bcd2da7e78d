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
        setup_inspect},
    Command{"ckpt", "ls", "list the tensors in file order", setup_ls},
    Command{
        "ckpt",
        "show",
        "show a tensor, a number or a dict by its name",
        setup_show},
    Command{
        "ckpt",
        "digest",
        "SHA-256 of the weights, the same in every format",
        setup_digest},
    Command{
        "ckpt",
        "optim",
        "convert an optimizer state between Python and C++",
        setup_optim},
    Command{
        "ckpt",
        "verify",
        "check every CRC, bound and offset; exit 3 if damaged",
        setup_verify},
    Command{"", "explain", "explain an error code", setup_explain},
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
