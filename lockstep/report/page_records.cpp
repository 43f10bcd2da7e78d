// SPDX-License-Identifier: BSD-3-Clause
//
// Where a run comes from, what it took, and how it went on.
#include <array>
#include <cmath>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/report/html_text.h"
#include "lockstep/report/page_sections.h"
#include "lockstep/train/settings/config.h"
#include "lockstep/train/settings/internal/run_names.h"

namespace lockstep::report {
namespace {

/// A part of the time of an epoch.
struct Phase {
  std::string_view column = {};
  std::string_view text = {};
};
constexpr std::array kPhases{
    Phase{"data_s", "waiting for data"},
    Phase{"forward_s", "forward and loss"},
    Phase{"backward_s", "backward, with the sum of gradients"},
    Phase{"update_s", "optimizer and hooks"},
    Phase{"read_s", "numbers of the steps"},
    Phase{"test_s", "test"},
    Phase{"save_s", "copies for checkpoints"},
    Phase{"report_s", "curves and this page"},
};

double sum_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) {
    sum += std::isfinite(value) ? value : 0;
  }
  return sum;
}

std::vector<std::string>
phase_row(std::string_view name, double seconds, double all, double epochs) {
  constexpr double kHundred = 100;
  const double share = all > 0 ? seconds / all * kHundred : 0;
  return {
      std::string(name),
      duration_text(seconds),
      format("{:.1f} %", share),
      duration_text(seconds / epochs),
      format(
          "<span class=\"track\" aria-hidden=\"true\"><span class=\"bar\" "
          "style=\"width:{:.1f}%\"></span></span>",
          share)};
}

std::string phases_html(const NumberTable& epochs) {
  const auto count = static_cast<double>(epochs.rows());
  const double all = sum_of(epochs.column(train::kSecondsColumn));
  PageTable table{
      .caption = "time of the epochs by phase",
      .heads = {"phase", "time", "share", "per epoch", "of all"}};
  double known = 0;
  for (const Phase& phase : kPhases) {
    if (epochs.has(phase.column)) {
      const double seconds = sum_of(epochs.column(phase.column));
      known += seconds;
      table.rows.push_back(phase_row(phase.text, seconds, all, count));
    }
  }
  if (all <= 0) {
    return {};
  }
  if (known > 0) {
    table.rows.push_back(
        phase_row("the rest", std::max(all - known, 0.0), all, count));
  }
  table.rows.push_back(phase_row("all", all, all, count));
  return table_html(table) +
         "<p class=\"dim\">As the process of rank 0 saw it; an accelerator "
         "works on while the process goes on.</p>\n";
}

std::string bytes_text(double bytes) {
  return std::isfinite(bytes) && bytes > 0
             ? human_bytes(static_cast<std::uint64_t>(bytes))
             : "-";
}

double last_of(const std::vector<double>& values) {
  return values.empty() ? std::nan("") : values.back();
}

// Devices of this start, and what the processes and devices needed at most.
std::string devices_html(const NumberTable& epochs, const PageJson& env) {
  PageTable table{
      .caption = "devices and memory",
      .heads = {"place", "what", "most memory"},
      .numbers_from = 2};
  const std::string gpu = text_in(env, "gpu");
  const PageJson& cpu = member_of(env, "cpu");
  int number = 0;
  const PageJson& devices = member_of(env, "devices");
  for (const PageJson& device : devices) {
    const std::string name = plain_text(device);
    const std::string chip = name == "cpu" ? text_in(cpu, "model") : gpu;
    const std::string column = format("device{}_bytes", number);
    table.rows.push_back(
        {format(
             "{} {}",
             devices.size() > 1 ? "replica" : "device",
             devices.size() > 1 ? std::to_string(number) : std::string()),
         foreign(join(
             chip.empty() ? std::vector{name} : std::vector{name, chip},
             ", ")),
         bytes_text(last_of(epochs.column(column)))});
    ++number;
  }
  for (int rank = 0;; ++rank) {
    const std::string column = format("rank{}_bytes", rank);
    if (!epochs.has(column)) {
      break;
    }
    table.rows.push_back(
        {format("rank {}", rank),
         format("process, {} threads", text_in(env, "threads")),
         bytes_text(last_of(epochs.column(column)))});
  }
  return table.rows.empty() ? std::string() : table_html(table);
}

std::string
end_of(const PageJson& start, bool is_last, std::string_view state) {
  const PageJson& end = member_of(start, "end");
  if (!end.is_object()) {
    return is_last && state == "running" ? "running"
           : is_last && state != "killed"
               ? html_text(state)
               : "killed: it did not say how it ended";
  }
  const std::string why = text_in(end, "why");
  std::string out = html_text(text_in(end, "how"));
  if (!why.empty()) {
    out += ": " + foreign(why);
  }
  const std::string message = text_in(end, "message");
  return message.empty() ? out : out + "<br>" + foreign(message);
}

std::string warnings_html(std::string_view log) {
  constexpr std::size_t kMostLines = 40;
  std::vector<std::string> lines;
  for (const std::string& line : split(log, '\n')) {
    if (line.starts_with("warning: ") || line.starts_with("error: ")) {
      lines.push_back(format("<li>{}</li>\n", foreign(line)));
    }
  }
  if (lines.empty()) {
    return "<p>No warnings.</p>\n";
  }
  const std::size_t left_out =
      lines.size() - std::min(lines.size(), kMostLines);
  lines.erase(
      lines.begin(),
      lines.begin() + static_cast<std::ptrdiff_t>(left_out));
  return format(
      "<h3>Warnings</h3>\n<ul class=\"log\">\n{}{}</ul>\n",
      left_out == 0 ? std::string()
                    : format("<li>({} earlier ones)</li>\n", left_out),
      join(lines, ""));
}

// What a run without this setting would have.
std::string default_of(const std::string& key) {
  const train::Flag* const flag = train::find_key(key);
  return flag == nullptr ? std::string()
                         : train::get_flag(train::TrainConfig(), *flag);
}

std::vector<std::string> definition(
    std::string_view name,
    const std::string& text) {
  return {std::string(name), foreign(text)};
}

} // namespace

std::string times_section(const RunHistory& history, const PageJson& env) {
  const std::string phases =
      history.epochs().rows() == 0 ? "" : phases_html(history.epochs());
  const std::string devices = devices_html(history.epochs(), env);
  if (phases.empty() && devices.empty()) {
    return {};
  }
  return section_html(
      "times",
      "Time and memory",
      format(
          "<div class=\"columns\">\n<div>\n{}</div>\n<div>\n{}</div>\n</div>\n",
          phases,
          devices));
}

std::string starts_section(
    const PageJson& env,
    std::string_view state,
    std::string_view log) {
  const PageJson& starts = member_of(env, "starts");
  PageTable table{
      .caption = "starts of the program",
      .heads = {"started", "at step", "ranks", "host", "ended"},
      .numbers_from = 99};
  const std::size_t count = starts.is_array() ? starts.size() : 0;
  for (std::size_t i = 0; i < count; ++i) {
    const PageJson& start = starts[i];
    table.rows.push_back(
        {html_text(text_in(start, "started")),
         html_text(text_in(start, "step")),
         html_text(text_in(start, "ranks")),
         foreign(text_in(start, "host")),
         end_of(start, i + 1 == count, state)});
  }
  if (table.rows.empty() && log.empty()) {
    return {};
  }
  return section_html(
      "starts",
      "Starts, resumes and faults",
      (table.rows.empty() ? std::string() : table_html(table)) +
          warnings_html(log));
}

std::string settings_section(const PageJson& env) {
  const PageJson& args = member_of(env, "args");
  const PageJson& sources = member_of(env, "sources");
  PageTable chosen{
      .caption = "settings that were chosen",
      .heads = {"setting", "value", "from"},
      .numbers_from = 99};
  PageTable others{
      .caption = "settings with their defaults",
      .heads = {"setting", "value"},
      .numbers_from = 99};
  for (const auto& [key, value] : args.items()) {
    const train::Flag* const flag = train::find_key(key);
    const std::string text = plain_text(value);
    const std::string source = text_in(sources, key);
    const std::string name =
        html_text("--" + (flag == nullptr ? key : std::string(flag->name)));
    const std::string shown =
        text.empty() ? std::string("<span class=\"dim\">none</span>")
                     : foreign(text);
    // Lists and numbers are spelled in other ways here and there.
    const bool is_default =
        (source.empty() || source == train::kFromCheckpoint) &&
        (flag == nullptr || text == default_of(key) ||
         plain_text(PageJson::parse(
             default_of(key),
             /*cb=*/nullptr,
             /*allow_exceptions=*/false)) == text);
    if (is_default) {
      others.rows.push_back({name, shown});
    } else {
      chosen.rows.push_back(
          {name, shown, foreign(source.empty() ? "the program" : source)});
    }
  }
  std::string out;
  if (!chosen.rows.empty()) {
    out += table_html(chosen);
  }
  if (!others.rows.empty()) {
    out += format(
        "<details><summary>{} more have their defaults</summary>\n{}"
        "</details>\n",
        others.rows.size(),
        table_html(others));
  }
  return section_html("settings", "Settings", out);
}

std::string origin_section(const PageJson& env) {
  const PageJson& data = member_of(env, "data");
  const PageJson& cpu = member_of(env, "cpu");
  PageTable table{
      .caption = "data, machine and versions",
      .heads = {"what", "value"},
      .numbers_from = 99};
  const auto add = [&](std::string_view name, const std::string& text) {
    if (!text.empty()) {
      table.rows.push_back(definition(name, text));
    }
  };
  add("training samples", text_in(data, "train_samples"));
  add("test samples", text_in(data, "test_samples"));
  add("samples", text_in(data, "sample_shape"));
  add("classes", text_in(data, "num_classes"));
  add("digest of the training data", text_in(data, "train_digest"));
  add("digest of the test data", text_in(data, "test_digest"));
  add("Lockstep", text_in(env, "lockstep"));
  add("LibTorch", text_in(env, "torch"));
  add("compiler", text_in(env, "compiler"));
  add("commit of the working directory", text_in(env, "git"));
  add("host", text_in(env, "host"));
  add("system", text_in(env, "os"));
  add("processor",
      cpu.empty() ? std::string()
                  : format(
                        "{}, {} cores, {}",
                        text_in(cpu, "model"),
                        text_in(cpu, "cores"),
                        text_in(cpu, "isa")));
  add("GPU", text_in(env, "gpu"));
  const std::string command = command_text(member_of(env, "command"));
  std::string out;
  if (!command.empty()) {
    out += format(
        "<h3>Command</h3>\n<pre><code>{}</code></pre>\n",
        html_text(command));
  }
  if (!table.rows.empty()) {
    out += table_html(table);
  }
  return section_html("origin", "Where it comes from", out);
}

} // namespace lockstep::report
