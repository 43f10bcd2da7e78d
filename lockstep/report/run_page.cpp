// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/report/run_page.h"

#include <cmath>
#include <optional>
#include <utility>

#include "lockstep/base/internal/atomic_file.h"
#include "lockstep/base/internal/utc.h"
#include "lockstep/base/strings.h"
#include "lockstep/report/html_text.h"
#include "lockstep/report/page_sections.h"
#include "lockstep/report/page_style.h"
#include "lockstep/report/run_curves.h"
#include "lockstep/train/settings/internal/run_names.h"

namespace lockstep::report {
namespace {

// Without what is nested deeper than any record of a run.
PageJson object_of(const std::string& text) {
  constexpr int kMaxDepth = 32;
  PageJson json = PageJson::parse(
      text,
      [](int depth, PageJson::parse_event_t /*event*/, PageJson& /*value*/) {
        return depth <= kMaxDepth;
      },
      /*allow_exceptions=*/false);
  return json.is_object() ? json : PageJson::object();
}

/// The best epoch.
struct BestEpoch {
  std::string column = {};
  double value = 0.0;
  double epoch = 0.0;
};

// As the trainer, no epoch whose losses are not finite.
std::optional<BestEpoch> best_of(const RunHistory& history, bool is_lower) {
  const NumberTable& epochs = history.epochs();
  const std::vector<double> values = epochs.column(history.best_by());
  const std::vector<double> numbers = epochs.column(train::kEpochColumn);
  const std::vector<double> losses = epochs.column(train::kTrainLossColumn);
  const bool has_test = epochs.has(train::kTestLossColumn);
  const std::vector<double> tests = epochs.column(train::kTestLossColumn);
  std::optional<BestEpoch> best;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const bool is_usable = std::isfinite(values[i]) &&
                           (losses.empty() || std::isfinite(losses[i])) &&
                           (!has_test || std::isfinite(tests[i]));
    if (is_usable && (!best || (is_lower ? values[i] < best->value
                                         : values[i] > best->value))) {
      best = BestEpoch{
          .column = history.best_by(),
          .value = values[i],
          .epoch = numbers.empty() ? 0 : numbers[i]};
    }
  }
  return best;
}

double last_finite(const NumberTable& table, std::string_view column) {
  double last = std::nan("");
  for (const double value : table.column(column)) {
    last = std::isfinite(value) ? value : last;
  }
  return last;
}

double total(const NumberTable& table, std::string_view column) {
  double sum = 0;
  for (const double value : table.column(column)) {
    sum += std::isfinite(value) ? value : 0;
  }
  return sum;
}

std::string
card(std::string_view name, std::string_view value, std::string_view note) {
  return format(
      "<div><dt>{}</dt><dd>{}{}</dd></div>\n",
      name,
      value,
      note.empty() ? std::string() : format("<small>{}</small>", note));
}

// "test top1" of "val_top1".
std::string column_title(std::string_view column) {
  const bool is_test = column.starts_with(train::kTestPrefix);
  const std::size_t at = column.find('_');
  return format(
      "{} {}",
      is_test ? "test" : "training",
      html_text(at == std::string_view::npos ? column : column.substr(at + 1)));
}

std::string cards(const RunHistory& history, const PageJson& env) {
  const NumberTable& epochs = history.epochs();
  const bool is_lower = text_in(env, "better") == "lower";
  std::string out;
  if (const auto best = best_of(history, is_lower)) {
    out += card(
        format("best {}", column_title(best->column)),
        number_text(best->value),
        format("in epoch {:.0f}", best->epoch));
  }
  const std::string wanted = text_in(member_of(env, "args"), "epochs");
  out += card(
      "epochs",
      number_text(
          std::isnan(last_finite(epochs, "epoch"))
              ? 0
              : last_finite(epochs, "epoch")),
      wanted.empty() ? "" : format("of {}", html_text(wanted)));
  const double loss = last_finite(epochs, train::kTrainLossColumn);
  if (epochs.rows() > 0) {
    const double test = last_finite(epochs, train::kTestLossColumn);
    out += card(
        std::isnan(test) ? "last training loss" : "last test loss",
        number_text(std::isnan(test) ? loss : test),
        std::isnan(test) ? "" : format("in training {}", number_text(loss)));
    out += card(
        "images per second",
        number_text(std::round(last_finite(epochs, "images_per_s"))),
        "in the last epoch, training only");
    out += card(
        "time",
        duration_text(total(epochs, train::kSecondsColumn)),
        "of all epochs");
  }
  const PageJson& devices = member_of(env, "devices");
  const std::string ranks = text_in(env, "ranks");
  if (!devices.empty()) {
    out += card(
        "devices",
        html_text(plain_text(devices)),
        ranks.empty() || ranks == "1" ? "one process"
                                      : format("{} ranks", html_text(ranks)));
  }
  return format("<dl class=\"cards\">\n{}</dl>\n", out);
}

std::string header(const RunRecords& records, const PageJson& env) {
  const PageJson& args = member_of(env, "args");
  std::string out = format("<header>\n<h1>{}</h1>\n", foreign(records.folder));
  const std::string model = text_in(args, "model");
  out += "<p>";
  if (!records.state.empty()) {
    out += format(
        "<span class=\"state {0}\">{0}</span>",
        html_text(records.state));
  }
  if (!model.empty()) {
    out += format("{} on {}", foreign(model), foreign(text_in(args, "data")));
  }
  out += "</p>\n";
  if (!records.why.empty()) {
    out += format("<p class=\"why\">{}</p>\n", foreign(records.why));
  }
  return out + "</header>\n";
}

std::string curves_section(const RunHistory& history) {
  const RunCurves curves = curves_of(history, /*speed=*/true);
  std::string panels;
  for (const Panel& panel : curves.panels) {
    panels += draw_panel(panel, curves.x_name);
  }
  if (panels.empty()) {
    return section_html(
        "curves",
        "Curves",
        "<p>Nothing has been measured yet.</p>\n");
  }
  return section_html(
      "curves",
      "Curves",
      format("<div class=\"panels\">\n{}</div>\n", panels));
}

} // namespace

std::string run_page(const RunRecords& records, const RunHistory& history) {
  const PageJson env = object_of(records.env);
  const PageJson details = object_of(records.details);
  std::string out = format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, "
      "initial-scale=1\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src "
      "'none'; style-src 'unsafe-inline'; img-src data:\">\n"
      "<title>{} - Lockstep</title>\n<style>{}</style>\n</head>\n<body>\n",
      html_text(records.folder),
      page_style());
  out += header(records, env);
  out += "<main>\n" + cards(history, env);
  out += curves_section(history);
  out += classes_section(details);
  out += samples_section(details);
  out += times_section(history, env);
  out += starts_section(env, records.state, records.log);
  out += settings_section(env);
  out += origin_section(env);
  return out +
         format(
             "</main>\n<footer>Written by Lockstep {}, {}. The numbers are in "
             "results.csv and metrics.jsonl beside this file.</footer>\n"
             "</body>\n</html>\n",
             html_text(text_in(env, "lockstep")),
             html_text(records.written));
}

Status write_run_page(
    FileSystem& fs,
    const std::string& folder,
    std::string_view state,
    std::string_view why) {
  const auto text_of = [&](std::string_view name) {
    auto text = read_text(fs, format("{}/{}", folder, name));
    return text ? *std::move(text) : std::string();
  };
  RunHistory history;
  history.add_all(text_of(train::kMetricsFile));
  return write_file_atomically(
      fs,
      format("{}/{}", folder, train::kPageFile),
      run_page(
          {.folder = folder,
           .state = std::string(state),
           .why = std::string(why),
           .written = utc_text(utc_now()),
           .env = text_of(train::kEnvFile),
           .details = text_of(train::kDetailsFile),
           .log = text_of(train::kLogFile)},
          history),
      {.durable = false});
}

} // namespace lockstep::report
