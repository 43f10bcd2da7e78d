// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/launch/internal/failure_report.h"

#include <sys/wait.h>

#include <algorithm>
#include <ctime>

#include <nlohmann/json.hpp>

#include "lockstep/base/strings.h"
#include "lockstep/launch/error_file.h"
#include "lockstep/launch/internal/options.h"

namespace lockstep::launch {
namespace {

constexpr std::size_t kMaxLines = 30;
constexpr std::size_t kMaxLineBytes = 400;

std::string text_at(const nlohmann::json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>()
                                                     : "";
}

std::string how_text(int status) {
  return WIFSIGNALED(status)
             ? format("killed by {}", signal_name(WTERMSIG(status)))
             : format("exit status {}", WEXITSTATUS(status));
}

std::string who_text(const RankEnd& end) {
  return format(
      "rank {} (local {}, pid {}): {}",
      end.rank,
      end.local_rank,
      static_cast<std::int64_t>(end.pid),
      how_text(end.status));
}

// The first lines, indented and safe for a terminal.
std::string message_text(const std::string& message) {
  std::string text;
  std::size_t count = 0;
  for (const std::string& line : split(message, '\n')) {
    if (++count > kMaxLines) {
      return text + "    ...\n";
    }
    text += format("    {}\n", escape(line, kMaxLineBytes));
  }
  return text;
}

std::string ranks_text(const std::vector<const RankEnd*>& ends) {
  std::vector<std::string> names;
  names.reserve(ends.size());
  for (const RankEnd* end : ends) {
    names.push_back(std::to_string(end->rank));
  }
  return format(
      "{} {}",
      names.size() == 1 ? "rank" : "ranks",
      join(names, ", "));
}

} // namespace

void read_error_file(FileSystem& fs, RankEnd& end) {
  const auto text = read_text(fs, format("{}/{}", end.folder, kErrorFile));
  if (!text) {
    return;
  }
  const auto root = nlohmann::json::parse(*text, nullptr, false);
  if (!root.is_object() || !root.contains("message")) {
    return;
  }
  const auto& message = root["message"];
  if (message.is_string()) {
    end.message = message.get<std::string>();
    return;
  }
  const auto extra = message.find("extraInfo");
  if (extra != message.end() && extra->is_object()) {
    end.message = text_at(*extra, "py_callstack");
    const auto follow_on = extra->find("follow_on");
    end.is_follow_on = follow_on != extra->end() && *follow_on == true;
  }
  if (end.message.empty()) {
    end.message = text_at(message, "message");
  }
}

int exit_code(int status) {
  constexpr int kSignalBase = 128;
  return WIFSIGNALED(status) ? kSignalBase + WTERMSIG(status)
                             : WEXITSTATUS(status);
}

const RankEnd* root_cause(const std::vector<RankEnd>& ends) {
  const RankEnd* first = nullptr;
  for (const RankEnd& end : ends) {
    if (end.has_failed() &&
        (first == nullptr || (first->is_follow_on && !end.is_follow_on))) {
      first = &end;
    }
  }
  return first;
}

std::string failure_text(const std::vector<RankEnd>& ends) {
  const RankEnd& root = *root_cause(ends);
  std::string text = format("first failure: {}\n", who_text(root));
  if (!root.message.empty()) {
    text += message_text(root.message);
  }
  if (!root.folder.empty()) {
    text += format("    files: {}\n", escape(root.folder, kMaxLineBytes));
  }
  std::vector<const RankEnd*> stopped;
  for (const RankEnd& end : ends) {
    if (end.was_stopped) {
      stopped.push_back(&end);
    } else if (end.has_failed() && &end != &root) {
      text += format("then: {}\n", who_text(end));
      if (!end.message.empty()) {
        text += message_text(end.message.substr(0, end.message.find('\n')));
      }
    }
  }
  if (!stopped.empty()) {
    text += format("stopped: {}\n", ranks_text(stopped));
  }
  return text;
}

} // namespace lockstep::launch
