// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
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
        setup_inspect,
        {"lockstep ckpt checkpoint.pth.tar",
         "lockstep ckpt inspect --json model.pt"}},
    Command{
        "ckpt",
        "ls",
        "list the tensors, one line each",
        setup_ls,
        {"lockstep ckpt ls checkpoint.pth.tar",
         "lockstep ckpt ls model.pt --sort size --filter 'weight$'"}},
    Command{
        "ckpt",
        "tree",
        "show the tensors as a tree",
        setup_tree,
        {"lockstep ckpt tree checkpoint.pth.tar",
         "lockstep ckpt tree --depth 1 model.pt"}},
    Command{
        "ckpt",
        "show",
        "show a tensor, a module, a number or a dict by its name",
        setup_show,
        {"lockstep ckpt show checkpoint.pth.tar state_dict.fc.weight",
         "lockstep ckpt show --stats model.pt fc"}},
    Command{
        "ckpt",
        "diff",
        "compare the tensors of two files; exit 1 if they differ",
        setup_diff,
        {"lockstep ckpt diff model.pt model.safetensors",
         "lockstep ckpt diff parallel.pt model.pt --map module.="}},
    Command{
        "ckpt",
        "digest",
        "SHA-256 of the weights, the same in every format",
        setup_digest,
        {"lockstep ckpt digest model.pt",
         "lockstep ckpt digest model.pt model.safetensors"}},
    Command{
        "ckpt",
        "optim",
        "convert an optimizer state between Python and C++",
        setup_optim,
        {"lockstep ckpt optim checkpoint.pth.tar optimizer.pt --to cpp",
         "lockstep ckpt optim --dry-run checkpoint.pth.tar optimizer.pt --to "
         "cpp"}},
    Command{
        "ckpt",
        "verify",
        "check every CRC, bound and offset; exit 3 if damaged",
        setup_verify,
        {"lockstep ckpt verify checkpoint.pth.tar",
         "lockstep ckpt verify --deep model.pt parallel.pt"}},
    Command{
        "ckpt",
        "convert",
        "write another format, dtype or device tag",
        setup_convert,
        {"lockstep ckpt convert model.pt weights.safetensors",
         "lockstep ckpt convert --dtype bfloat16 model.pt half.pt"}},
    Command{
        "ckpt",
        "strip",
        "remove 'module.' from the keys, in place or to a new file",
        setup_strip,
        {"lockstep ckpt strip parallel.pt",
         "lockstep ckpt strip parallel.pt -o plain.pt"}},
    Command{
        "ckpt",
        "prefix",
        "put a prefix in front of the keys",
        setup_prefix,
        {"lockstep ckpt prefix model.pt --prefix module. -o wrapped.pt",
         "lockstep ckpt prefix --dry-run model.pt --prefix backbone."}},
    Command{
        "ckpt",
        "rename",
        "rename keys by a rule: 's/^features/backbone/'",
        setup_rename,
        {"lockstep ckpt rename model.pt 's/^fc/head/' -o renamed.pt",
         "lockstep ckpt rename --dry-run model.pt 's/^fc/head/'"}},
    Command{
        "ckpt",
        "pick",
        "keep some entries, or some weights",
        setup_pick,
        {"lockstep ckpt pick checkpoint.pth.tar state_dict -o weights.pt",
         "lockstep ckpt pick model.pt fc -o classifier.pt"}},
    Command{
        "ckpt",
        "drop",
        "take entries or weights out",
        setup_drop,
        {"lockstep ckpt drop checkpoint.pth.tar optimizer -o smaller.pt",
         "lockstep ckpt drop --dry-run model.pt fc"}},
    Command{
        "ckpt",
        "merge",
        "join the weights of two files",
        setup_merge,
        {"lockstep ckpt merge backbone.pt head.pt joined.pt",
         "lockstep ckpt merge --replace model.pt head.pt joined.pt"}},
    Command{
        "ckpt",
        "average",
        "write the mean of the weights of several files",
        setup_average,
        {"lockstep ckpt average model.pt other.pt -o mean.pt",
         "lockstep ckpt average --dry-run model.pt other.pt -o mean.pt"}},
    Command{
        "ckpt",
        "match",
        "load by position: give weights another model's names",
        setup_match,
        {"lockstep ckpt match model.pt parallel.pt",
         "lockstep ckpt match model.pt parallel.pt -o renamed.pt"}},
    Command{
        "ckpt",
        "extract-model",
        "write the state_dict of a model that was saved whole",
        setup_extract_model,
        {"lockstep ckpt extract-model whole.pt weights.pt",
         "lockstep ckpt extract-model --dry-run whole.pt weights.pt"}},
    Command{
        "ckpt",
        "source",
        "print the Python sources that a file contains",
        setup_source,
        {"lockstep ckpt source whole2017.pth",
         "lockstep ckpt source --list whole2017.pth"}},
    Command{
        "ckpt",
        "repair",
        "write what is sound in a damaged zip file to a new one",
        setup_repair,
        {"lockstep ckpt repair damaged.pt rescued.pt",
         "lockstep ckpt repair --json damaged.pt rescued.pt"}},
    Command{
        "ckpt",
        "scan",
        "find names that could run code, in every pickle of files",
        setup_scan,
        {"lockstep ckpt scan model.pt", "lockstep ckpt scan --sarif ."}},
    Command{
        "ckpt",
        "limits",
        "what a file may ask for, and the flags to allow more",
        setup_limits,
        {"lockstep ckpt limits", "lockstep ckpt limits --json"}},
    Command{
        "",
        "run",
        "start a program as several ranks, with torchrun's flags",
        setup_run,
        {"lockstep run --nproc-per-node 2 ./train",
         "lockstep run --nproc-per-node 2 --max-restarts 3 --tee 3 ./train"}},
    Command{
        "",
        "runs",
        "list training runs, or compare some of them",
        setup_runs,
        {"lockstep runs", "lockstep runs runs/first runs/second"}},
    Command{
        "",
        "doctor",
        "what this machine has, and what stands in the way of training",
        setup_doctor,
        {"lockstep doctor", "lockstep doctor --json runs"}},
    Command{
        "",
        "explain",
        "explain an error code, or list all",
        setup_explain,
        {"lockstep explain E_CRC", "lockstep explain"}},
    Command{
        "",
        "completion",
        "print a completion script for bash, zsh or fish",
        setup_completion,
        {"lockstep completion zsh > _lockstep",
         "lockstep completion fish > lockstep.fish"}},
    Command{
        "",
        "man",
        "print the manual page",
        setup_man,
        {"lockstep man > lockstep.1", "lockstep man train > lockstep-train.1"}},
    Command{
        "",
        "help",
        "print the help of a command",
        setup_help,
        {"lockstep help ckpt strip", "lockstep help explain"}},
};

} // namespace

std::span<const Command> commands() {
  return kCommands;
}

const Command* find_command(std::string_view group, std::string_view name) {
  const auto* found = std::ranges::find_if(kCommands, [&](const Command& row) {
    return row.group == group && row.name == name;
  });
  return found == kCommands.end() ? nullptr : found;
}

void add_common_flags(const Command& command, CLI::App& app, Common& common) {
  app.set_help_flag(); // to be the last one
  if (app.get_prefix_command()) {
    app.set_help_flag("-h,--help", "print this help");
    return; // what is printed is the program's affair
  }
  auto* json = app.add_flag("--json", common.json, "print one JSON object");
  for (const char* other : {"--csv", "--npy", "--sarif"}) {
    if (auto* option = app.get_option_no_throw(other)) {
      json->excludes(option);
    }
  }
  app.add_option("--color", common.color_mode, "use colours")
      ->check(CLI::IsMember({"auto", "always", "never"}));
  app.add_flag_callback(
         "--no-color",
         [&common] { common.color_mode = "never"; },
         "the same as --color never")
      ->group(kHiddenGroup);
  app.set_help_flag("-h,--help", "print this help");
  if (command.group == "ckpt") {
    add_reading_flags(app, common);
  }
}

std::string full_name(const Command& command) {
  return command.group.empty() ? std::string(command.name)
                               : format("{} {}", command.group, command.name);
}

std::string schema_name(const Command& command) {
  return command.group.empty()
             ? format("lockstep.{}/1", command.name)
             : format("lockstep.{}.{}/1", command.group, command.name);
}

} // namespace lockstep::cli
