// SPDX-License-Identifier: BSD-3-Clause
#include <array>

#include <CLI/CLI.hpp>

#include "cli/command.h"
#include "cli/reading_flags.h"
#include "lockstep/base/strings.h"

namespace lockstep::cli {
namespace {

constexpr std::array kCommands{
    Command{
        "ckpt",
        "inspect",
        "one screen: format, keys, tensors, prefix (the default)",
        setup_inspect},
    Command{"ckpt", "ls", "list the tensors, one line each", setup_ls},
    Command{"ckpt", "tree", "show the tensors as a tree", setup_tree},
    Command{
        "ckpt",
        "show",
        "show a tensor, a number or a dict by its name",
        setup_show},
    Command{
        "ckpt",
        "diff",
        "compare the tensors of two files; exit 1 if they differ",
        setup_diff},
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
    Command{
        "ckpt",
        "convert",
        "write another format, dtype or device tag",
        setup_convert},
    Command{
        "ckpt",
        "strip",
        "remove 'module.' from the keys, in place or to a new file",
        setup_strip},
    Command{
        "ckpt",
        "prefix",
        "put a prefix in front of the keys",
        setup_prefix},
    Command{
        "ckpt",
        "rename",
        "rename keys by a rule: 's/^features/backbone/'",
        setup_rename},
    Command{"ckpt", "pick", "keep one entry, or some weights", setup_pick},
    Command{"ckpt", "drop", "take entries or weights out", setup_drop},
    Command{"ckpt", "merge", "join the weights of two files", setup_merge},
    Command{
        "ckpt",
        "match",
        "load by position: give weights another model's names",
        setup_match},
    Command{
        "ckpt",
        "extract-model",
        "write the state_dict of a model that was saved whole",
        setup_extract_model},
    Command{
        "ckpt",
        "source",
        "print the Python sources that travel in a file",
        setup_source},
    Command{
        "ckpt",
        "repair",
        "write what is sound in a damaged zip file to a new one",
        setup_repair},
    Command{
        "ckpt",
        "scan",
        "find names that could run code, in every pickle of a file",
        setup_scan},
    Command{
        "ckpt",
        "limits",
        "what a file may ask for, and the flags to allow more",
        setup_limits},
    Command{"", "explain", "explain an error code", setup_explain},
    Command{
        "",
        "completion",
        "print a completion script for bash, zsh or fish",
        setup_completion},
    Command{"", "man", "print the manual page", setup_man},
};

} // namespace

std::span<const Command> commands() {
  return kCommands;
}

void add_common_flags(const Command& command, CLI::App& app, Common& common) {
  app.add_flag("--json", common.json, "print one JSON object");
  app.add_option("--color", common.color_mode, "auto, always or never")
      ->group("");
  app.add_flag_callback(
         "--no-color",
         [&common] { common.color_mode = "never"; },
         "the same as --color never")
      ->group("");
  if (command.group == "ckpt") {
    add_reading_flags(app, common);
  }
}

std::string schema_name(const Command& command) {
  return command.group.empty()
             ? format("lockstep.{}/1", command.name)
             : format("lockstep.{}.{}/1", command.group, command.name);
}

} // namespace lockstep::cli
