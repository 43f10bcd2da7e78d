// SPDX-License-Identifier: BSD-3-Clause
#include "cli_train/eval_files.h"

#include <utility>

#include "cli_train/eval_text.h"
#include "cli_train/predictions.h"
#include "lockstep/base/internal/answer.h"
#include "lockstep/base/internal/atomic_file.h"
#include "lockstep/base/strings.h"
#include "lockstep/data/augment.h"
#include "lockstep/report/confusion.h"

namespace lockstep::cli_train {
namespace {

std::string worst_csv(const EvalAnswer& answer) {
  std::string text = "sample_name,target,prediction,loss\n";
  for (const train::WorstSample& sample : answer.found.worst) {
    text += format(
        "{},{},{},{}\n",
        csv_field(sample.name),
        csv_field(target_text(sample, answer.trained)),
        csv_field(prediction_text(sample, answer.trained)),
        shortest(sample.loss));
  }
  return text;
}

std::string confusion_svg(const EvalAnswer& answer, const MetricTable& table) {
  std::vector<std::vector<double>> counts;
  counts.reserve(table.rows.size());
  for (const MetricRow& row : table.rows) {
    counts.push_back(row.values);
  }
  const std::string title = format(
      "{}, {} of {}",
      answer.model,
      counted(static_cast<std::uint64_t>(answer.found.samples), "sample"),
      answer.data_dir.empty() ? answer.data : answer.data_dir);
  return report::draw_confusion(title, table.columns, counts);
}

} // namespace

std::vector<std::string> write_eval_files(
    const EvalAnswer& answer,
    const std::string& folder,
    FileSystem& fs) {
  fs.create_directories(folder).value();
  std::vector<std::string> names;
  const auto write = [&](std::string name, const std::string& text) {
    write_file_atomically(fs, format("{}/{}", folder, name), text).value();
    names.push_back(std::move(name));
  };
  write(
      "metrics.json",
      answer_json("lockstep.eval/1", eval_json(answer)).dump(1) + "\n");
  write("worst.csv", worst_csv(answer));
  if (const MetricTable* table = find_table(answer.found, "confusion")) {
    write("confusion.svg", confusion_svg(answer, *table));
  }
  const Image sheet = worst_sheet(answer);
  if (!sheet.pixels.empty()) {
    write_png(format("{}/worst.png", folder), sheet, fs);
    names.emplace_back("worst.png");
  }
  return names;
}

} // namespace lockstep::cli_train
