// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/step/class_weights.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include <yaml-cpp/yaml.h>

#include "lockstep/base/error.h"
#include "lockstep/base/internal/numbers.h"
#include "lockstep/base/strings.h"

namespace lockstep::train {
namespace {

constexpr std::string_view kBalanced = "balanced";

[[noreturn]] void refuse_weights(
    std::string_view detail,
    std::string message,
    std::string hint,
    std::string path = {}) {
  raise(
      {.code = ErrorCode::kInvalidArgument,
       .op = "train.class_weights",
       .message = std::move(message),
       .hint = std::move(hint),
       .path = std::move(path),
       .detail = std::string(detail)});
}

// What a class is called in a file: its name, or its number.
std::vector<std::string> names_of_classes(const Dataset& data) {
  std::vector<std::string> names = data.class_names();
  for (std::int64_t i = std::ssize(names); i < data.num_classes(); ++i) {
    names.push_back(std::to_string(i));
  }
  return names;
}

// Reads the weights of one text.
class WeightReader {
 public:
  WeightReader(const Dataset& data, std::string path)
      : names_(names_of_classes(data)), path_(std::move(path)) {}

  [[nodiscard]] std::vector<double> read(const YAML::Node& root) const {
    std::vector<double> weights;
    if (root.IsMap()) {
      weights = by_name(root);
    } else if (root.IsSequence()) {
      for (const YAML::Node& node : root) {
        weights.push_back(number(node.IsScalar() ? node.Scalar() : ""));
      }
    } else if (root.IsScalar()) {
      std::string text = root.Scalar();
      std::ranges::replace(text, ' ', ',');
      for (const std::string& part : split(text, ',')) {
        if (!part.empty()) {
          weights.push_back(number(part));
        }
      }
    }
    if (weights.size() != names_.size()) {
      refuse(format(
          "expected a weight for each of {}, got {}",
          counted(names_.size(), "class", "classes"),
          weights.size()));
    }
    if (std::ranges::all_of(weights, [](double x) { return x == 0; })) {
      refuse("all weights are 0: nothing would be learned");
    }
    return weights;
  }

 private:
  [[noreturn]] void refuse(std::string message) const {
    refuse_weights(
        "E_CONFIG_FILE",
        std::move(message),
        format(
            "a number for each class, in their order or by name: {}",
            some_names(names_)),
        path_);
  }
  [[nodiscard]] double number(const std::string& text) const {
    const auto value = parse_number<double>(text);
    if (!value || !std::isfinite(*value) || *value < 0) {
      refuse(
          format("a weight is a number of at least 0, got '{}'", escape(text)));
    }
    return *value;
  }
  [[nodiscard]] std::vector<double> by_name(const YAML::Node& root) const {
    std::vector<std::optional<double>> found(names_.size());
    for (const auto& entry : root) {
      const std::string name = entry.first.Scalar();
      const auto place = std::ranges::find(names_, name);
      if (place == names_.end()) {
        const std::string near = nearest(name, names_);
        refuse(format(
            "no class is called '{}'{}",
            escape(name),
            near.empty() ? "" : format(", did you mean {}?", near)));
      }
      auto& weight = found[static_cast<std::size_t>(place - names_.begin())];
      if (weight) {
        refuse(format("the class '{}' has two weights", escape(name)));
      }
      weight = number(entry.second.IsScalar() ? entry.second.Scalar() : "");
    }
    std::vector<double> weights;
    weights.reserve(found.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      const std::optional<double> weight = found[i];
      if (!weight) {
        refuse(format("the class '{}' has no weight", escape(names_[i])));
      }
      weights.push_back(*weight);
    }
    return weights;
  }

  std::vector<std::string> names_;
  std::string path_;
};

std::vector<double> weights_in(
    const std::string& text,
    const Dataset& data,
    const std::string& path) {
  try {
    return WeightReader(data, path).read(YAML::Load(text));
  } catch (const YAML::Exception& error) {
    refuse_weights("E_CONFIG_FILE", error.msg, "", path);
  }
}

bool is_list_of_numbers(const std::string& text) {
  return std::ranges::all_of(split(text, ','), [](const std::string& part) {
    return parse_number<double>(part).has_value();
  });
}

std::vector<std::int64_t>
classes_of(const Dataset& data, std::int64_t samples, std::string_view flag) {
  if (data.target_format() != TargetFormat{.kind = TargetKind::kClasses}) {
    refuse_weights(
        "E_FLAGS",
        format(
            "{} counts classes; the data have no class for each sample",
            flag),
        "leave it out, or name weights in a file");
  }
  // In parts: some data read the samples for it.
  constexpr std::int64_t kPart = 1024;
  std::vector<std::int64_t> classes(static_cast<std::size_t>(samples));
  for (std::int64_t first = 0; first < samples; first += kPart) {
    const auto begin = static_cast<std::size_t>(first);
    const auto count =
        static_cast<std::size_t>(std::min(kPart, samples - first));
    std::vector<std::int64_t> numbers(count);
    std::iota(numbers.begin(), numbers.end(), first);
    data.read_targets(numbers, std::span(classes).subspan(begin, count));
  }
  return classes;
}

// Of no class are those that are not counted.
std::vector<std::int64_t> counts_of(
    const std::vector<std::int64_t>& classes,
    std::int64_t num_classes) {
  std::vector<std::int64_t> counts(static_cast<std::size_t>(num_classes));
  for (const std::int64_t number : classes) {
    if (number >= 0 && number < num_classes) {
      ++counts[static_cast<std::size_t>(number)];
    }
  }
  return counts;
}

} // namespace

std::string resolved_class_weights(
    const std::string& text,
    const Dataset& data,
    FileSystem& fs) {
  if (text.empty() || text == kBalanced) {
    return text;
  }
  std::vector<double> weights;
  if (fs.stat(text)) {
    weights = weights_in(read_text(fs, text).value(), data, text);
  } else if (is_list_of_numbers(text)) {
    weights = weights_in(text, data, "--class-weights");
  } else {
    const std::vector<std::string> words{std::string(kBalanced)};
    refuse_weights(
        "E_FLAG_VALUE",
        format(
            "--class-weights: expected balanced or a file, got '{}'",
            escape(text)),
        nearest(text, words).empty() ? "a file has a number for each class"
                                     : "did you mean balanced?");
  }
  std::vector<std::string> parts;
  parts.reserve(weights.size());
  for (const double weight : weights) {
    parts.push_back(shortest(weight));
  }
  return join(parts, ",");
}

std::vector<double> class_weights(
    const std::string& resolved,
    const Dataset& data,
    std::int64_t samples) {
  if (resolved.empty()) {
    return {};
  }
  if (resolved != kBalanced) {
    return weights_in(resolved, data, "--class-weights");
  }
  const std::vector<std::int64_t> counts = counts_of(
      classes_of(data, samples, "--class-weights balanced"),
      data.num_classes());
  std::vector<double> weights;
  const auto total = static_cast<double>(
      std::accumulate(counts.begin(), counts.end(), std::int64_t{0}));
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] == 0) {
      refuse_weights(
          "E_FLAGS",
          format(
              "--class-weights balanced: the class '{}' has no training sample",
              escape(names_of_classes(data)[i])),
          "name weights in a file, or train on more samples");
    }
    weights.push_back(
        total / static_cast<double>(std::ssize(counts) * counts[i]));
  }
  return weights;
}

std::vector<double> balanced_sample_weights(
    const Dataset& data,
    std::int64_t samples) {
  const std::vector<std::int64_t> classes =
      classes_of(data, samples, "--sampler balanced");
  const std::vector<std::int64_t> counts =
      counts_of(classes, data.num_classes());
  std::vector<double> weights;
  weights.reserve(classes.size());
  for (const std::int64_t number : classes) {
    const bool is_class = number >= 0 && number < std::ssize(counts);
    weights.push_back(
        is_class ? 1.0 / static_cast<double>(
                             counts[static_cast<std::size_t>(number)])
                 : 0.0);
  }
  return weights;
}

} // namespace lockstep::train
