// SPDX-License-Identifier: BSD-3-Clause
#include "cli/run_facts.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <limits>
#include <set>
#include <utility>

#include <nlohmann/json.hpp>

#include "lockstep/base/internal/csv.h"
#include "lockstep/base/internal/folder_lock.h"
#include "lockstep/base/internal/numbers.h"
#include "lockstep/base/strings.h"
#include "lockstep/train/settings/internal/run_names.h"

namespace lockstep::cli {
namespace {

using nlohmann::json;

constexpr std::array kRunFiles{
    train::kEnvFile,
    train::kArgsFile,
    train::kResultsFile};
// More in a file are none of a run, and need not fit into an integer.
constexpr double kMaxEpochs = 1e9;
// Folders inside folders.
constexpr int kMaxRunDepth = 8;

std::string file_in(const std::string& folder, std::string_view name) {
  return format("{}/{}", folder, name);
}

std::string
text_in(FileSystem& fs, const std::string& folder, std::string_view name) {
  auto text = read_text(fs, file_in(folder, name));
  return text ? *std::move(text) : "";
}

// As `args.yaml` spells it: true, 0.1, sgd; lists with commas.
std::string plain_text(const json& value) {
  if (value.is_string()) {
    return value.get<std::string>();
  }
  if (!value.is_array()) {
    return value.dump();
  }
  std::vector<std::string> parts;
  for (const json& item : value) {
    parts.push_back(plain_text(item));
  }
  return join(parts, ",");
}

struct EndName {
  std::string_view how = {};
  RunState state = RunState::kStopped;
};
constexpr std::array kEndNames{
    EndName{"finished", RunState::kFinished},
    EndName{"interrupted", RunState::kInterrupted},
    EndName{"failed", RunState::kFailed},
};

// How the newest start ended; nothing if it was killed, or runs.
void read_end(const json& starts, RunFacts& facts) {
  if (!starts.is_array() || starts.empty() || !starts.back().is_object()) {
    return;
  }
  const json end = starts.back().value("end", json());
  if (!end.is_object()) {
    return;
  }
  const auto* const found = std::ranges::find(
      kEndNames,
      plain_text(end.value("how", json(""))),
      &EndName::how);
  if (found != kEndNames.end()) {
    facts.state = found->state;
    facts.why = plain_text(end.value("why", json("")));
    facts.error = plain_text(end.value("message", json("")));
  }
}

void read_env(const std::string& text, RunFacts& facts) {
  const json env = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!env.is_object()) {
    return;
  }
  const json args = env.value("args", json::object());
  for (const auto& [key, value] : args.items()) {
    facts.args[key] = plain_text(value);
  }
  facts.best_column = plain_text(env.value("best_by", json("")));
  facts.is_lower_better = plain_text(env.value("better", json(""))) == "lower";
  facts.devices = plain_text(env.value("devices", json("")));
  facts.ranks =
      parse_number<std::int64_t>(plain_text(env.value("ranks", json(0))))
          .value_or(0);
  read_end(env.value("starts", json::array()), facts);
  facts.lockstep_version = plain_text(env.value("lockstep", json("")));
}

// Lines "key: value", which is all that `args.yaml` has.
void read_args(const std::string& text, RunFacts& facts) {
  constexpr std::string_view kQuotes = "\"'";
  for (const std::string& line : split(text, '\n')) {
    const std::size_t colon = line.find(": ");
    if (colon == std::string::npos || line.starts_with('#')) {
      continue;
    }
    std::string value = line.substr(colon + 2);
    if (value.size() > 1 && kQuotes.find(value[0]) != std::string_view::npos) {
      value = value.substr(1, value.size() - 2);
    }
    facts.args[line.substr(0, colon)] = value;
  }
}

// As the trainer, which saves no epoch as the best whose losses are not finite.
std::optional<double>
best_of(const CsvTable& table, std::string_view column, bool is_lower_better) {
  std::optional<double> best;
  const auto values = table.cells(column);
  const auto is_usable = [&](std::string_view name, std::size_t row) {
    const auto cells = table.cells(name);
    return row >= cells.size() || !cells[row] || std::isfinite(*cells[row]);
  };
  for (std::size_t row = 0; row < values.size(); ++row) {
    const double value =
        values[row].value_or(std::numeric_limits<double>::quiet_NaN());
    if (!std::isfinite(value) || !is_usable(train::kTrainLossColumn, row) ||
        !is_usable(train::kTestLossColumn, row)) {
      continue;
    }
    if (!best || (is_lower_better ? value < *best : value > *best)) {
      best = value;
    }
  }
  return best;
}

void guess_best_column(const CsvTable& table, RunFacts& facts) {
  for (const std::string_view column :
       {train::kTestAccuracyColumn,
        train::kTestLossColumn,
        train::kTrainLossColumn}) {
    if (!table.column(column).empty()) {
      facts.best_column = column;
      facts.is_lower_better = column != train::kTestAccuracyColumn;
      return;
    }
  }
}

void read_results(const std::string& text, RunFacts& facts) {
  const CsvTable table(text);
  // Not the number of rows: a run can begin after the first epoch.
  const auto epochs = table.column(train::kEpochColumn);
  if (!epochs.empty() && epochs.back() >= 0 && epochs.back() <= kMaxEpochs) {
    facts.epochs_done = static_cast<std::int64_t>(epochs.back());
  }
  if (facts.best_column.empty()) {
    guess_best_column(table, facts);
  }
  facts.best = best_of(table, facts.best_column, facts.is_lower_better);
  if (const auto losses = table.column(train::kTestLossColumn);
      !losses.empty()) {
    facts.last_loss = losses.back();
  }
  const auto seconds = table.column(train::kSecondsColumn);
  if (!seconds.empty()) {
    double sum = 0;
    for (const double epoch : seconds) {
      sum += epoch;
    }
    facts.seconds = sum;
  }
}

// Since the newest of the files of the run was written.
std::int64_t age_of(const std::string& folder) {
  namespace stdfs = std::filesystem;
  auto newest = stdfs::file_time_type::min();
  for (const std::string_view name :
       {train::kEnvFile,
        train::kArgsFile,
        train::kResultsFile,
        train::kLogFile}) {
    std::error_code missing;
    const auto time = stdfs::last_write_time(file_in(folder, name), missing);
    newest = missing ? newest : std::max(newest, time);
  }
  const auto age = stdfs::file_time_type::clock::now() - newest;
  return std::chrono::duration_cast<std::chrono::seconds>(age).count();
}

RunState state_of(FileSystem& fs, const RunFacts& facts) {
  const FolderOwner owner = FolderLock::owner_of(fs, facts.path);
  if (owner.held == FolderHeld::kYes) {
    return RunState::kRunning;
  }
  if (facts.state != RunState::kStopped) {
    return facts.state; // it says how it ended
  }
  if (facts.epochs() != 0 && facts.epochs_done >= facts.epochs()) {
    return RunState::kFinished;
  }
  if (owner.held == FolderHeld::kUnknown) {
    return RunState::kUnknown;
  }
  return owner.text.empty() ? RunState::kStopped : RunState::kKilled;
}

// One name per folder: links lead to the same one several times, or in circles.
std::string real_place(const std::string& path) {
  std::error_code code;
  const auto place = std::filesystem::canonical(path, code);
  return code ? path : place.string();
}

bool is_run_directory(FileSystem& fs, const std::string& path) {
  const auto info = fs.stat(path);
  return info && info->kind == FileInfo::Kind::kDirectory;
}

} // namespace

std::string_view state_name(RunState state) {
  constexpr std::array<std::string_view, 7> kNames{
      "running",
      "finished",
      "interrupted",
      "failed",
      "stopped",
      "killed",
      "unknown"};
  return kNames.at(static_cast<std::size_t>(state));
}

std::string RunFacts::name() const {
  return base_name(path);
}

std::string RunFacts::arg(const std::string& key) const {
  const auto found = args.find(key);
  return found == args.end() ? "" : found->second;
}

std::int64_t RunFacts::epochs() const {
  return parse_number<std::int64_t>(arg("epochs")).value_or(0);
}

bool is_run_folder(FileSystem& fs, const std::string& path) {
  return std::ranges::any_of(kRunFiles, [&](std::string_view name) {
    return fs.stat(file_in(path, name)).has_value();
  });
}

Result<std::vector<std::string>> find_runs(
    FileSystem& fs,
    const std::string& path) {
  if (is_run_folder(fs, path)) {
    return std::vector{path};
  }
  std::vector<std::string> runs;
  std::set<std::string> visited;
  std::vector<std::pair<std::string, int>> pending{{path, 0}};
  while (!pending.empty()) {
    const auto [folder, depth] = pending.back();
    pending.pop_back();
    if (!visited.insert(real_place(folder)).second) {
      continue;
    }
    const auto names = fs.list(folder);
    if (!names && depth == 0) {
      return names.error();
    }
    if (!names) {
      continue;
    }
    for (const std::string& name : *names) {
      const std::string below = file_in(folder, name);
      if (!is_run_directory(fs, below)) {
        continue;
      }
      if (is_run_folder(fs, below)) {
        if (visited.insert(real_place(below)).second) {
          runs.push_back(below);
        }
      } else if (depth < kMaxRunDepth) {
        pending.emplace_back(below, depth + 1);
      }
    }
  }
  std::ranges::sort(runs);
  return runs;
}

RunFacts read_run(FileSystem& fs, const std::string& path) {
  RunFacts facts{.path = path};
  read_args(text_in(fs, path, train::kArgsFile), facts);
  read_env(text_in(fs, path, train::kEnvFile), facts);
  read_results(text_in(fs, path, train::kResultsFile), facts);
  facts.devices = facts.devices.empty() ? facts.arg("devices") : facts.devices;
  facts.age = age_of(path);
  facts.state = state_of(fs, facts);
  if (facts.state == RunState::kRunning) {
    facts.why.clear(); // of the start before
    facts.error.clear();
  }
  return facts;
}

} // namespace lockstep::cli
