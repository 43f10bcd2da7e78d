// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <string>
#include <utility>

#include "cli/command_docs.h"
#include "lockstep/base/strings.h"

namespace lockstep::cli {
namespace {

using Docs = std::span<const CommandDoc>;

// `at` is what stands where no flag does: files, folders, or words.
constexpr std::string_view kBashHead =
    R"sh(# bash completion for lockstep; made by `lockstep completion bash`.
_lockstep() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}
  local command=${COMP_WORDS[1]} flags= at= value= i file=
  COMPREPLY=()
  if [[ $cur == = ]]; then
    cur=
  elif [[ $prev == = ]]; then
    prev=${COMP_WORDS[COMP_CWORD-2]}
  fi
  if [[ $COMP_CWORD -eq 1 ]]; then
    command=
  elif [[ $command == help && ${COMP_WORDS[2]} == ckpt && $COMP_CWORD -gt 2 ]]; then
    command='help ckpt'
  elif [[ $command == ckpt && $COMP_CWORD -gt 2 ]]; then
    command="ckpt ${COMP_WORDS[2]}"
  fi
  case $command in
)sh";

constexpr std::string_view kBashTail =
    R"sh(    'ckpt help'|'help ckpt') at=$ckpt ;;
    *) at=files ;;
  esac
  if [[ $command == 'ckpt show' && $cur != -* && -z $value ]]; then
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
  if [[ -n $value ]]; then
    at=$value
  elif [[ $cur == -* ]]; then
    at=$flags
  fi
  if [[ $at == *' files' || $at == *' folders' ]]; then
    COMPREPLY=($(compgen -W "${at% *}" -- "$cur"))
    at=${at##* }
  fi
  case $at in
    files) compopt -o filenames 2>/dev/null
      COMPREPLY+=($(compgen -f -- "$cur")) ;;
    folders) compopt -o filenames 2>/dev/null
      COMPREPLY+=($(compgen -d -- "$cur")) ;;
    *) COMPREPLY+=($(compgen -W "$at" -- "$cur")) ;;
  esac
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
  elif [[ $command == help && $words[3] == ckpt ]] && (( CURRENT > 3 )); then
    command='help ckpt'
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

constexpr std::string_view kFishHead =
    R"sh(# fish completion for lockstep; made by `lockstep completion fish`.
function __lockstep_is
  set -l words (commandline -opc)
  test "$words[2..]" = "$argv"
end
function __lockstep_in
  set -l words (commandline -opc)
  string match -q -- "$argv *" "$words[2..] "
end
)sh";

// Names of the commands of a group; the groups themselves at the top.
std::vector<std::pair<std::string, std::string>> entries_of(
    Docs commands,
    std::string_view group) {
  std::vector<std::pair<std::string, std::string>> entries;
  if (group.empty()) {
    entries.emplace_back("ckpt", kCkptHelp);
  } else {
    entries.emplace_back("help", "print the help of a command");
  }
  for (const CommandDoc& command : commands) {
    if (command.group() == group) {
      entries.emplace_back(command.last_name(), command.help);
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

// What bash offers for a value: "sgd adam", "files", "auto best files".
std::string offers_of(const ArgumentDoc& argument) {
  std::vector<std::string> parts = argument.words;
  if (argument.takes_file()) {
    parts.emplace_back("files");
  } else if (argument.takes_folder()) {
    parts.emplace_back("folders");
  }
  return join(parts, " ");
}

// What is offered where no flag stands; the first that has something.
std::string place_of(Docs commands, const CommandDoc& command) {
  if (command.name == "help") {
    return words_of(commands, "");
  }
  for (const ArgumentDoc& argument : command.arguments) {
    if (argument.is_positional && !offers_of(argument).empty()) {
      return offers_of(argument);
    }
  }
  return "";
}

// Inside single quotes; `special` characters get a backslash before.
std::string in_quotes(std::string_view text, std::string_view special = "") {
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

std::string bash_values(const CommandDoc& command) {
  std::string text;
  for (const ArgumentDoc& argument : command.arguments) {
    if (argument.is_positional || argument.value.empty()) {
      continue;
    }
    const std::string names =
        argument.short_name.empty()
            ? argument.name
            : format("{}|{}", argument.short_name, argument.name);
    const std::string offers = offers_of(argument);
    // A space: there is a value, and nothing to offer.
    text += format(
        "        {}) value={} ;;\n",
        names,
        in_quotes(offers.empty() ? " " : offers));
  }
  return text;
}

std::string zsh_entries(Docs commands, std::string_view group) {
  std::string text = "entries=(";
  for (const auto& [name, help] : entries_of(commands, group)) {
    text += "\n        " + in_quotes(format("{}:{}", name, help));
  }
  return text + ")\n      _describe command entries";
}

// ":value:(a b)", ":file:_files", or both for _alternative's sake: the words.
std::string zsh_value(const ArgumentDoc& argument) {
  std::vector<std::string> words;
  for (const std::string& word : argument.words) {
    std::string escaped;
    for (const char c : word) {
      escaped += c == ':' || c == '*' ? "\\" : "";
      escaped += c;
    }
    words.push_back(std::move(escaped));
  }
  const bool is_file = argument.takes_file() || argument.takes_folder();
  if (!words.empty() && is_file) {
    return format(
        ":value:_alternative \"words:word:({})\" \"files:file:_files\"",
        join(words, " "));
  }
  return !words.empty()            ? format(":value:({})", join(words, " "))
         : argument.takes_file()   ? ":file:_files"
         : argument.takes_folder() ? ":folder:_files -/"
                                   : ":value:";
}

std::string zsh_arguments(const CommandDoc& command) {
  std::string text = "_arguments '1: :'";
  std::string place;
  text += command.group().empty() ? "" : " '2: :'";
  for (const ArgumentDoc& argument : command.arguments) {
    if (argument.is_positional) {
      place = place.empty() ? "*" + zsh_value(argument) : place;
      continue;
    }
    std::string spec = argument.name + (argument.value.empty() ? "" : "=");
    spec += "[";
    for (const char c : argument.help) {
      spec += c == '[' || c == ']' || c == '\\' ? "\\" : "";
      spec += c;
    }
    spec += "]";
    spec += argument.value.empty() ? "" : zsh_value(argument);
    text += " \\\n        " + in_quotes(spec);
  }
  if (command.name == "ckpt show") {
    return text + " \\\n        '3:file:_files' '4:name:_lockstep_names'";
  }
  return place.empty() ? text : text + " \\\n        " + in_quotes(place);
}

std::string fish_value(const ArgumentDoc& argument) {
  const std::string words = argument.words.empty()
                                ? ""
                                : " -a " + in_quotes(join(argument.words, " "));
  return argument.takes_file()     ? " -rF" + words
         : argument.takes_folder() ? " -x -a '(__fish_complete_directories)'"
                                   : " -x" + words;
}

std::string fish_argument(
    const CommandDoc& command,
    const ArgumentDoc& argument) {
  const std::string begin =
      format("complete -c lockstep -n '__lockstep_in {}'", command.name);
  if (argument.is_positional) {
    const std::string words = in_quotes(join(argument.words, " "));
    return argument.takes_file() || argument.takes_folder()
               ? ""
               : format("{} -f -a {}\n", begin, words);
  }
  std::string text = format("{} -l {}", begin, argument.name.substr(2));
  text += argument.short_name.empty()
              ? ""
              : format(" -s {}", argument.short_name.substr(1));
  text += argument.value.empty() ? "" : fish_value(argument);
  return format("{} -d {}\n", text, in_quotes(argument.help, "\\"));
}

} // namespace

std::string bash_completion(Docs commands) {
  std::string text(kBashHead);
  const std::string ckpt = words_of(commands, "ckpt");
  text += format("    '') at='{}' ;;\n", words_of(commands, ""));
  text += format("    ckpt) at='{} files' ;;\n", ckpt);
  for (const CommandDoc& command : commands) {
    text += format(
        "    '{}') flags='{}' at='{}'\n      case $prev in\n{}      esac ;;\n",
        command.name,
        flags_of(command),
        place_of(commands, command),
        bash_values(command));
  }
  std::string tail(kBashTail);
  tail.replace(tail.find("$ckpt"), 5, in_quotes(ckpt));
  return text + tail;
}

std::string zsh_completion(Docs commands) {
  std::string text(kZshHead);
  text += "    '')\n      " + zsh_entries(commands, "") + " ;;\n";
  text += "    ckpt)\n      " + zsh_entries(commands, "ckpt") +
          "\n      _files ;;\n";
  text += "    'help ckpt'|'ckpt help')\n      " +
          zsh_entries(commands, "ckpt") + " ;;\n";
  for (const CommandDoc& command : commands) {
    const std::string body = command.name == "help" ? zsh_entries(commands, "")
                                                    : zsh_arguments(command);
    text += format("    '{}')\n      {} ;;\n", command.name, body);
  }
  return text + std::string(kZshTail);
}

std::string fish_completion(Docs commands) {
  std::string text(kFishHead);
  for (const std::string_view group : {"", "ckpt", "help", "help ckpt"}) {
    const bool is_ckpt = group.ends_with("ckpt");
    for (const auto& [name, help] :
         entries_of(commands, is_ckpt ? "ckpt" : "")) {
      text += format(
          "complete -c lockstep -n '__lockstep_is {}' -a {} -d {}{}\n",
          group,
          name,
          in_quotes(help),
          group == "ckpt" ? "" : " -f");
    }
  }
  for (const CommandDoc& command : commands) {
    for (const ArgumentDoc& argument : command.arguments) {
      text += fish_argument(command, argument);
    }
  }
  return text +
         "complete -c lockstep -n '__lockstep_in ckpt show' -a "
         "'(lockstep ckpt ls --names (commandline -opc)[4] 2>/dev/null)'\n";
}

} // namespace lockstep::cli
