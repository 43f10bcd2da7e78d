// SPDX-License-Identifier: BSD-3-Clause
#include "cli_train/data_text.h"

#include <algorithm>
#include <array>
#include <utility>

#include "lockstep/base/internal/answer.h"
#include "lockstep/base/strings.h"

namespace lockstep::cli_train {
namespace {

using internal::DataFacts;
using internal::PartFacts;

constexpr std::size_t kMostLines = 10;

std::string times(const std::vector<std::int64_t>& sizes) {
  std::vector<std::string> texts;
  texts.reserve(sizes.size());
  for (const std::int64_t size : sizes) {
    texts.push_back(format("{}", size));
  }
  return join(texts, " x ");
}

std::string numbers(const std::vector<double>& values) {
  std::vector<std::string> texts;
  texts.reserve(values.size());
  for (const double value : values) {
    texts.push_back(format("{:.4f}", value));
  }
  return join(texts, " ");
}

bool has_masks(const DataFacts& facts) {
  return facts.target.kind == TargetKind::kClasses &&
         !facts.target.shape.empty();
}

std::int64_t total(const PartFacts& part) {
  std::int64_t sum = part.not_counted;
  for (const std::int64_t count : part.class_counts) {
    sum += count;
  }
  return std::max<std::int64_t>(sum, 1);
}

// A count of samples, or a share of pixels.
std::string
count_text(const DataFacts& facts, const PartFacts& part, std::int64_t count) {
  return has_masks(facts) ? format(
                                "{:.2f} %",
                                100.0 * static_cast<double>(count) /
                                    static_cast<double>(total(part)))
                          : with_commas(static_cast<std::uint64_t>(count));
}

std::string row(
    std::string name,
    int width,
    const std::string& train,
    const std::string& test) {
  return format(
      "  {}{:>12}{:>12}\n",
      padded(std::move(name), width),
      train,
      test);
}

std::string counts_text(const DataFacts& facts) {
  constexpr std::size_t kMostClasses = 100;
  int width = 12;
  const std::size_t shown = std::min(facts.class_names.size(), kMostClasses);
  for (std::size_t i = 0; i < shown; ++i) {
    width = std::max(width, display_width(escape(facts.class_names[i])) + 2);
  }
  std::string text = row("", width, "training", "test");
  const auto samples = [](const PartFacts& part) {
    return with_commas(static_cast<std::uint64_t>(part.samples));
  };
  text += row("samples", width, samples(facts.train), samples(facts.test));
  if (facts.train.class_counts.empty()) {
    return text;
  }
  for (std::size_t i = 0; i < shown; ++i) {
    text +=
        row(escape(facts.class_names[i]),
            width,
            count_text(facts, facts.train, facts.train.class_counts[i]),
            count_text(facts, facts.test, facts.test.class_counts[i]));
  }
  if (shown < facts.class_names.size()) {
    text += format(
        "  and {} more classes: --json lists all\n",
        facts.class_names.size() - shown);
  }
  if (has_masks(facts)) {
    text +=
        row("not counted",
            width,
            count_text(facts, facts.train, facts.train.not_counted),
            count_text(facts, facts.test, facts.test.not_counted));
    text += format(
        "  (pixels of masks that are resized to {})\n",
        times(facts.target.shape));
  }
  return text;
}

std::string size_text(const ImageShape& shape) {
  return format("{} x {}", shape.width, shape.height);
}

std::string samples_text(const DataReport& report) {
  const DataFacts& facts = report.facts;
  std::string text;
  if (report.has_files && facts.sizes == 1) {
    text += format("images of {} pixels", size_text(facts.smallest));
  } else if (report.has_files && facts.sizes > 1) {
    text += format(
        "images of {} sizes, {} to {} pixels",
        facts.sizes,
        size_text(facts.smallest),
        size_text(facts.largest));
  } else {
    text += format("samples of {} numbers", times(facts.sample_shape));
  }
  if (report.has_files || facts.sample_shape.size() == 3) {
    text += format(
        ", {}",
        counted(static_cast<std::uint64_t>(facts.sample_shape[0]), "channel"));
  }
  text += format(
      "\nmean {}, std {} of the training part{}\n",
      numbers(facts.mean),
      numbers(facts.std),
      report.has_files ? ", pixels / 255" : "");
  return text;
}

template <class T, class TextOf>
std::string
list_text(std::string title, const std::vector<T>& all, TextOf text_of) {
  if (all.empty()) {
    return "";
  }
  std::string text = std::move(title) + "\n";
  for (std::size_t i = 0; i < std::min(all.size(), kMostLines); ++i) {
    text += format("  {}\n", text_of(all[i]));
  }
  if (all.size() > kMostLines) {
    text +=
        format("  and {} more: --json lists all\n", all.size() - kMostLines);
  }
  return text;
}

std::string values_text(const DataFacts& facts) {
  return list_text(
      "values to predict, in the training part",
      facts.values,
      [](const internal::ValueFacts& value) {
        return format(
            "{}: {:.6g} to {:.6g}, mean {:.6g}",
            escape(value.name),
            value.min,
            value.max,
            value.mean);
      });
}

std::string problem_text(const Error& error) {
  return error.path.empty()
             ? error.message
             : format("{}: {}", escape(error.path, 200), error.message);
}

Json part_json(const PartFacts& part) {
  Json json = Json::object();
  json.set("samples", part.samples)
      .set("class_counts", Json::array(part.class_counts))
      .set("not_counted", part.not_counted);
  return json;
}

Json size_json(const ImageShape& shape) {
  return Json::array(std::array{shape.width, shape.height});
}

} // namespace

std::string data_text(const DataReport& report) {
  const DataFacts& facts = report.facts;
  std::string text = format("{}: {}\n", escape(report.path, 200), report.kind);
  text += counts_text(facts);
  text += values_text(facts);
  text += samples_text(report);
  for (const std::string& note : report.notes) {
    text += format("note: {}\n", note);
  }
  text += list_text(
      format("damaged: {}", counted(facts.problems.size(), "sample")),
      facts.problems,
      problem_text);
  text += list_text(
      format(
          "{} of the test in the training part, too",
          facts.twice.size() == 1
              ? std::string("1 sample is")
              : format("{} samples are", facts.twice.size())),
      facts.twice,
      [](const internal::TwiceFound& twice) {
        return format(
            "{} = {}",
            escape(twice.test, 200),
            escape(twice.train, 200));
      });
  text += list_text(
      format("{}:", escape(report.sheet_path, 200)),
      report.sheet_samples,
      [](const std::string& sample) { return escape(sample, 200); });
  return text;
}

Json data_json(const DataReport& report) {
  const DataFacts& facts = report.facts;
  Json values = Json::array();
  for (const internal::ValueFacts& value : facts.values) {
    Json json = Json::object();
    json.set("name", value.name)
        .set("min", value.min)
        .set("mean", value.mean)
        .set("max", value.max);
    values.push(std::move(json));
  }
  Json twice = Json::array();
  for (const internal::TwiceFound& found : facts.twice) {
    Json json = Json::object();
    json.set("train", found.train).set("test", found.test);
    twice.push(std::move(json));
  }
  Json problems = Json::array();
  for (const Error& error : facts.problems) {
    problems.push(error_json(error));
  }
  Json result = Json::object();
  result.set("path", report.path)
      .set("kind", report.kind)
      .set("sample_shape", Json::array(facts.sample_shape))
      .set("target_shape", Json::array(facts.target.shape))
      .set("classes", Json::array(facts.class_names))
      .set("train", part_json(facts.train))
      .set("test", part_json(facts.test))
      .set("values", std::move(values))
      .set("sizes", facts.sizes)
      .set("smallest", size_json(facts.smallest))
      .set("largest", size_json(facts.largest))
      .set("mean", Json::array(facts.mean))
      .set("std", Json::array(facts.std))
      .set("notes", Json::array(report.notes))
      .set("damaged", std::move(problems))
      .set("in_both", std::move(twice))
      .set("sheet", report.sheet_path)
      .set("sheet_samples", Json::array(report.sheet_samples));
  return answer_json("lockstep.data/1", std::move(result));
}

} // namespace lockstep::cli_train
