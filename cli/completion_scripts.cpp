// SPDX-License-Identifier: BSD-3-Clause
#include <string>

#include "cli/command_docs.h"
#include "lockstep/base/strings.h"

namespace lockstep::cli {
namespace {

using Docs = std::span<const CommandDoc>;

constexpr std::string_view kBashHead =
    R"sh(# bash completion for lockstep; made by `lockstep completion bash`.
_lockstep() {
  local cur=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[1]} words= i file=
  COMPREPLY=()
  if [[ $command == ckpt && $COMP_CWORD -gt 2 ]]; then
    command="ckpt ${COMP_WORDS[2]}"
  elif [[ $COMP_CWORD -eq 1 ]]; then
    command=
  fi
  case $command in
)sh";

constexpr std::string_view kBashTail = R"sh(  esac
  if [[ $command == 'ckpt show' && $cur != -* ]]; then
    for ((i = 3; i < COMP_CWORD; i++)); do
      [[ ${COMP_WORDS[i]} == -* ]] || file=${file:-${COMP_WORDS[i]}}
    done
    if [[ -n $file ]]; then
      local IFS=$'\n'
      COMPREPLY=($(compgen -W "$(lockstep ckpt ls --names "$file" \
        2>/dev/null)" -- "$cur"))
      return
    fi
  fi
  if [[ $cur == -* || -z $command || $command == ckpt ]]; then
    COMPREPLY=($(compgen -W "$words" -- "$cur"))
  fi
  if [[ $cur != -* && -n $command ]]; then
    compopt -o filenames 2>/dev/null
    COMPREPLY+=($(compgen -f -- "$cur"))
  fi
}
complete -F _lockstep lockstep
)sh";

constexpr std::string_view kZshHead = R"sh(#compdef lockstep
# zsh completion for lockstep; made by `lockstep completion zsh`.
_lockstep_names() {
  local -a names
  names=(${(f)"$(lockstep ckpt ls --names ${words[4]} 2>/dev/null)"})
  compadd -a names
}
_lockstep() {
  local -a entries
  local command=$words[2]
  if (( CURRENT == 2 )); then
    command=
  elif [[ $command == ckpt ]] && (( CURRENT > 3 )); then
    command="ckpt $words[3]"
  fi
  case $command in
)sh";

constexpr std::string_view kZshTail = R"sh(    *) _files ;;
  esac
}
_lockstep "$@"
)sh";

std::string command_line(const CommandDoc& command) {
  return command.group.empty() ? command.name
                               : command.group + " " + command.name;
}

// Names of the commands of a group; the groups themselves at the top.
std::vector<std::pair<std::string, std::string>> entries_of(
    Docs commands,
    std::string_view group) {
  std::vector<std::pair<std::string, std::string>> entries;
  if (group.empty()) {
    entries.emplace_back("ckpt", "look inside checkpoint files");
  }
  for (const CommandDoc& command : commands) {
    if (command.group == group) {
      entries.emplace_back(command.name, command.help);
    }
  }
  return entries;
}

std::string words_of(Docs commands, std::string_view group) {
  std::vector<std::string> words;
  for (const auto& [name, help] : entries_of(commands, group)) {
    words.push_back(name);
  }
  return join(words, " ");
}

std::string flags_of(const CommandDoc& command) {
  std::vector<std::string> words{"--help"};
  for (const ArgumentDoc& argument : command.arguments) {
    if (!argument.is_positional && argument.name != "--help") {
      words.push_back(argument.name);
    }
  }
  return join(words, " ");
}

// Inside single quotes; `special` characters get a backslash before.
std::string quoted(std::string_view text, std::string_view special) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'') {
      out += "'\\''";
      continue;
    }
    if (special.find(c) != std::string_view::npos) {
      out += '\\';
    }
    out += c;
  }
  return out + "'";
}

std::string zsh_entries(Docs commands, std::string_view group) {
  std::string text = "entries=(";
  for (const auto& [name, help] : entries_of(commands, group)) {
    text += "\n        " + quoted(format("{}:{}", name, help), "");
  }
  return text + ")\n      _describe command entries";
}

std::string zsh_arguments(const CommandDoc& command) {
  std::string text = "_arguments '1: :' '2: :'";
  for (const ArgumentDoc& argument : command.arguments) {
    if (argument.is_positional) {
      continue;
    }
    std::string spec = argument.name + (argument.takes_value ? "=" : "") + "[" +
                       argument.help + "]";
    if (argument.takes_value) {
      spec += ":value:";
    }
    text += " \\\n        " + quoted(spec, "");
  }
  return text + (command_line(command) == "ckpt show"
                     ? " \\\n        '3:file:_files' '4:name:_lockstep_names'"
                     : " \\\n        '*:file:_files'");
}

} // namespace

std::string bash_completion(Docs commands) {
  std::string text(kBashHead);
  text += format("    '') words='{}' ;;\n", words_of(commands, ""));
  text += format("    ckpt) words='{}' ;;\n", words_of(commands, "ckpt"));
  for (const CommandDoc& command : commands) {
    text += format(
        "    '{}') words='{}' ;;\n",
        command_line(command),
        flags_of(command));
  }
  return text + std::string(kBashTail);
}

std::string zsh_completion(Docs commands) {
  std::string text(kZshHead);
  text += "    '')\n      " + zsh_entries(commands, "") + " ;;\n";
  text += "    ckpt)\n      " + zsh_entries(commands, "ckpt") +
          "\n      _files ;;\n";
  for (const CommandDoc& command : commands) {
    text += format(
        "    '{}')\n      {} ;;\n",
        command_line(command),
        zsh_arguments(command));
  }
  return text + std::string(kZshTail);
}

std::string fish_completion(Docs commands) {
  std::string text =
      "# fish completion for lockstep; made by `lockstep completion fish`.\n"
      "function __lockstep_is\n"
      "  set -l words (commandline -opc)\n"
      "  test \"$words[2..]\" = \"$argv\"\n"
      "end\n"
      "function __lockstep_in\n"
      "  set -l words (commandline -opc)\n"
      "  string match -q -- \"$argv*\" \"$words[2..]\"\n"
      "end\n";
  for (const char* group : {"", "ckpt"}) {
    for (const auto& [name, help] : entries_of(commands, group)) {
      text += format(
          "complete -c lockstep -n '__lockstep_is {}' -a {} -d {}\n",
          group,
          name,
          quoted(help, ""));
    }
  }
  for (const CommandDoc& command : commands) {
    for (const ArgumentDoc& argument : command.arguments) {
      if (!argument.is_positional) {
        text += format(
            "complete -c lockstep -n '__lockstep_in {}' -l {}{} -d {}\n",
            command_line(command),
            argument.name.substr(2),
            argument.takes_value ? " -r" : "",
            quoted(argument.help, ""));
      }
    }
  }
  return text +
         "complete -c lockstep -n '__lockstep_in ckpt show' -a "
         "'(lockstep ckpt ls --names (commandline -opc)[4] 2>/dev/null)'\n";
}

} // namespace lockstep::cli
