// SPDX-License-Identifier: BSD-3-Clause
//
// `lockstep runs [PATH...]`: lists run folders; two or more that are named
// themselves are compared. With --html the page of each is written anew.
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/command.h"
#include "cli/listing_args.h"
#include "cli/output.h"
#include "cli/run_facts.h"
#include "lockstep/base/internal/utc.h"
#include "lockstep/base/strings.h"
#include "lockstep/report/run_page.h"
#include "lockstep/train/settings/internal/run_names.h"

namespace lockstep::cli {
namespace {

struct RunsArgs {
  std::vector<std::string> paths = {};
  std::string sort = "age";
  bool html = false;
};

struct RunOrder {
  std::string_view name = {};
  bool (*before)(const RunFacts& a, const RunFacts& b) = nullptr;
};

// Of runs that were chosen by the same number; others after them, and those
// without a best epoch last.
bool is_better(const RunFacts& a, const RunFacts& b) {
  if (!a.best || !b.best) {
    return a.best.has_value() && !b.best.has_value();
  }
  if (a.best_column != b.best_column) {
    return a.best_column > b.best_column; // val_top1 before val_loss
  }
  return a.is_lower_better ? *a.best < *b.best : *a.best > *b.best;
}

constexpr std::array kRunOrders{
    RunOrder{
        "age",
        [](const RunFacts& a, const RunFacts& b) { return a.age < b.age; }},
    RunOrder{
        "name",
        [](const RunFacts& a, const RunFacts& b) { return a.path < b.path; }},
    RunOrder{"best", is_better},
    RunOrder{
        "time",
        [](const RunFacts& a, const RunFacts& b) {
          return a.seconds > b.seconds;
        }},
};

std::string or_dash(const std::string& text) {
  return text.empty() ? "-" : escape(text, 40);
}

std::string epochs_text(const RunFacts& run) {
  return run.epochs() == 0 ? std::to_string(run.epochs_done)
                           : format("{}/{}", run.epochs_done, run.epochs());
}

// "failed: loss nan".
std::string state_text(const RunFacts& run) {
  const std::string state(state_name(run.state));
  return run.why.empty() ? state : format("{}: {}", state, escape(run.why, 40));
}

// "top1 87.31" of "val_top1": one number, and which.
std::string best_text(const RunFacts& run) {
  if (!run.best) {
    return "-";
  }
  const std::string name = escape(
      run.best_column.starts_with(train::kTestPrefix)
          ? run.best_column.substr(train::kTestPrefix.size())
          : run.best_column,
      20);
  constexpr double kLarge = 10;
  return std::abs(*run.best) >= kLarge ? format("{} {:.2f}", name, *run.best)
                                       : format("{} {:.4f}", name, *run.best);
}

// "cpu,cpu", "cpu x 2 ranks".
std::string devices_text(const RunFacts& run) {
  return run.ranks > 1 ? format("{} x {} ranks", run.devices, run.ranks)
                       : run.devices;
}

std::string time_text(const RunFacts& run) {
  constexpr double kMinute = 60;
  if (!run.seconds) {
    return "-";
  }
  return *run.seconds < kMinute ? format("{:.1f} s", *run.seconds)
                                : human_seconds(*run.seconds);
}

using Cells = std::vector<std::string>;

// Columns as wide as their widest cell.
std::string aligned(const std::vector<Cells>& rows) {
  std::vector<int> widths;
  for (const Cells& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], display_width(row[i]));
    }
  }
  std::string text;
  for (const Cells& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += padded(row[i], widths[i] + 2);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string list_text(const std::vector<RunFacts>& runs) {
  std::vector<Cells> rows{
      {"run",
       "model",
       "data",
       "devices",
       "state",
       "epochs",
       "best",
       "time",
       "age"}};
  for (const RunFacts& run : runs) {
    rows.push_back(
        {escape(run.path, 60),
         or_dash(run.arg("model")),
         or_dash(run.arg("data")),
         or_dash(devices_text(run)),
         state_text(run),
         epochs_text(run),
         best_text(run),
         time_text(run),
         age_text(std::chrono::seconds(run.age))});
  }
  return aligned(rows);
}

// Settings whose values are not the same in all runs.
std::vector<std::string> differing_keys(const std::vector<RunFacts>& runs) {
  std::vector<std::string> keys;
  for (const RunFacts& run : runs) {
    for (const auto& [key, value] : run.args) {
      const bool differs = std::ranges::any_of(
          runs,
          [&](const RunFacts& other) { return other.arg(key) != value; });
      if (differs && std::ranges::find(keys, key) == keys.end()) {
        keys.push_back(key);
      }
    }
  }
  std::ranges::sort(keys);
  return keys;
}

template <class Cell>
Cells row_of(
    const std::string& title,
    const std::vector<RunFacts>& runs,
    Cell cell) {
  Cells row{title};
  for (const RunFacts& run : runs) {
    row.push_back(or_dash(cell(run)));
  }
  return row;
}

std::string comparison_text(const std::vector<RunFacts>& runs) {
  std::vector<Cells> rows{
      row_of("", runs, [](const RunFacts& run) { return run.path; })};
  for (const std::string& key : differing_keys(runs)) {
    rows.push_back(row_of(key, runs, [&key](const RunFacts& run) {
      return run.arg(key);
    }));
  }
  rows.emplace_back();
  rows.push_back(row_of("state", runs, state_text));
  rows.push_back(row_of("devices", runs, devices_text));
  rows.push_back(row_of("epochs", runs, epochs_text));
  rows.push_back(row_of("best", runs, best_text));
  rows.push_back(row_of("test loss", runs, [](const RunFacts& run) {
    return run.last_loss ? format("{:.4f}", *run.last_loss) : "";
  }));
  rows.push_back(row_of("time", runs, time_text));
  return aligned(rows);
}

// JSON has no number that is not finite.
Json number_or_null(const std::optional<double>& number) {
  return number && std::isfinite(*number) ? Json(*number) : Json();
}

Json run_json(const RunFacts& run) {
  Json args = Json::object();
  for (const auto& [key, value] : run.args) {
    args.set(key, value);
  }
  return Json::object()
      .set("path", run.path)
      .set("name", run.name())
      .set("state", state_name(run.state))
      .set("why", run.why)
      .set("error", run.error)
      .set("devices", run.devices)
      .set("ranks", run.ranks)
      .set("lockstep", run.lockstep_version)
      .set("epochs_done", run.epochs_done)
      .set("epochs", run.epochs())
      .set("best", number_or_null(run.best))
      .set("best_by", run.best_column)
      .set("test_loss", number_or_null(run.last_loss))
      .set("seconds", number_or_null(run.seconds))
      .set("age_seconds", run.age)
      .set("args", std::move(args));
}

Json runs_json(const std::vector<RunFacts>& runs, bool is_comparison) {
  Json result = Json::object();
  result.set("runs", Json::array(runs, run_json));
  if (is_comparison) {
    result.set("differing", Json::array(differing_keys(runs)));
  }
  return result;
}

Result<std::vector<RunFacts>> read_runs(const RunsArgs& args) {
  std::vector<RunFacts> runs;
  for (const std::string& path : args.paths) {
    LOCKSTEP_ASSIGN(const auto folders, find_runs(real_fs(), path));
    for (const std::string& folder : folders) {
      runs.push_back(read_run(real_fs(), folder));
    }
  }
  if (runs.empty()) {
    return Error{
        .code = ErrorCode::kNotFound,
        .op = "cli.runs",
        .message = "no run folders",
        .hint = "'lockstep train' makes them below runs/",
        .path = join(args.paths, ", "),
        .detail = "E_NO_RUN"};
  }
  return runs;
}

// `report.html` of each, from what is in its folder now.
// All that can be written. Errors: the first one.
Status write_pages(const std::vector<RunFacts>& runs) {
  Status first;
  for (const RunFacts& run : runs) {
    Status status = report::write_run_page(
        real_fs(),
        run.path,
        state_name(run.state),
        run.error.empty() ? run.why : run.error);
    if (first && !status) {
      first = std::move(status);
    }
  }
  return first;
}

Result<int> run_runs(RunsArgs args, const Common& common) {
  const bool is_comparison =
      args.paths.size() > 1 &&
      std::ranges::all_of(args.paths, [](const std::string& path) {
        return is_run_folder(real_fs(), path);
      });
  if (args.paths.empty()) {
    args.paths.emplace_back(train::kRunsFolder);
  }
  LOCKSTEP_ASSIGN(auto runs, read_runs(args));
  if (!is_comparison) {
    const auto* order =
        std::ranges::find(kRunOrders, args.sort, &RunOrder::name);
    std::ranges::stable_sort(runs, order->before);
  }
  Status written = args.html ? write_pages(runs) : Status();
  if (common.json) {
    print_result("lockstep.runs/1", runs_json(runs, is_comparison));
  } else {
    print(is_comparison ? comparison_text(runs) : list_text(runs));
  }
  LOCKSTEP_TRY(written);
  return 0;
}

} // namespace

Runner setup_runs(CLI::App& app, const Common& common) {
  auto args = std::make_shared<RunsArgs>();
  app.add_option(
      "FOLDER",
      args->paths,
      "run folders, or folders of them; default: runs/");
  std::vector<std::string> orders;
  orders.reserve(kRunOrders.size());
  for (const RunOrder& order : kRunOrders) {
    orders.emplace_back(order.name);
  }
  app.add_option("--sort", args->sort, "order of a list")
      ->check(CLI::IsMember(orders));
  app.add_flag(
      "--html",
      args->html,
      "write report.html of each anew, with how it ended");
  return [args, &common] { return run_runs(*args, common); };
}

} // namespace lockstep::cli
