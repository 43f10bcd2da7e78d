// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/checkpoints/augment_file.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>
#include <vector>

#include <yaml-cpp/yaml.h>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"

namespace lockstep::train {
namespace {

constexpr std::string_view kProbability = "p";
constexpr std::string_view kInline = "--augment";

[[noreturn]] void bad_steps(
    const std::string& path,
    const YAML::Mark& mark,
    std::string message) {
  raise(
      {.code = ErrorCode::kInvalidArgument,
       .op = "train.augment",
       .message = std::move(message),
       .hint = "a step is a name, or '- name: {number: 0.5, range: [0, 1], p: "
               "0.5}'",
       .path = mark.is_null()
                   ? path
                   : format("{}:{}:{}", path, mark.line + 1, mark.column + 1),
       .detail = "E_CONFIG_FILE"});
}

std::string with_underscores(std::string name) {
  std::ranges::replace(name, '-', '_');
  return name;
}

// Reads the steps of one text.
class StepReader {
 public:
  explicit StepReader(std::string path) : path_(std::move(path)) {}

  Augment read(const YAML::Node& root) const {
    if (!root.IsSequence() || root.size() == 0) {
      bad_steps(path_, root.Mark(), "expected a list of steps");
    }
    Augment augment;
    augment.steps.reserve(root.size());
    for (const YAML::Node& node : root) {
      augment.steps.push_back(step(node));
    }
    return augment;
  }

 private:
  [[nodiscard]] AugmentStep step(const YAML::Node& node) const {
    if (node.IsScalar()) {
      return {.name = with_underscores(node.Scalar())};
    }
    if (!node.IsMap() || node.size() != 1) {
      bad_steps(path_, node.Mark(), "expected the name of one step");
    }
    const auto entry = *node.begin();
    AugmentStep step{.name = with_underscores(entry.first.Scalar())};
    if (entry.second.IsNull()) {
      return step;
    }
    if (!entry.second.IsMap()) {
      bad_steps(
          path_,
          entry.second.Mark(),
          format("expected the numbers of {} by name", escape(step.name)));
    }
    for (const auto& number : entry.second) {
      add_values(step, number.first.Scalar(), number.second);
    }
    return step;
  }

  void add_values(
      AugmentStep& step,
      const std::string& name,
      const YAML::Node& node) const {
    if (name == kProbability) {
      step.probability = number(node);
      return;
    }
    std::vector<double>& values = step.values[with_underscores(name)];
    if (!values.empty()) {
      bad_steps(
          path_,
          node.Mark(),
          format("{} has two numbers '{}'", escape(step.name), escape(name)));
    }
    if (!node.IsSequence()) {
      values.push_back(number(node));
      return;
    }
    values.reserve(node.size());
    for (const YAML::Node& item : node) {
      values.push_back(number(item));
    }
  }

  [[nodiscard]] double number(const YAML::Node& node) const {
    double value = 0;
    if (!node.IsScalar() || !YAML::convert<double>::decode(node, value)) {
      bad_steps(path_, node.Mark(), "expected a number");
    }
    return value;
  }

  std::string path_;
};

// A step or a number that is wrong is so in any size.
void check_steps(const Augment& augment, const std::string& path) {
  try {
    static_cast<void>(Augmenter(augment, {.height = 1, .width = 1}));
  } catch (const Exception& exception) {
    Error error = exception.error();
    error.path = path;
    raise(std::move(error));
  }
}

constexpr std::array kPixelMoves{
    PixelMoves{"none"},
    PixelMoves{.name = "flip", .horizontal_flip = true},
    PixelMoves{.name = "crop-flip", .crop_padding = 4, .horizontal_flip = true},
};

// "none" first, then what changes pictures least.
std::vector<std::string> all_words() {
  std::vector<std::string> words{"none"};
  std::ranges::copy(augment_names(), std::back_inserter(words));
  for (const PixelMoves& row : std::span(kPixelMoves).subspan(1)) {
    words.emplace_back(row.name);
  }
  return words;
}

bool is_word(std::string_view text) {
  const std::vector<std::string> words = all_words();
  return std::ranges::find(words, text) != words.end();
}

bool names_yaml(std::string_view text) {
  const std::string small = lower_case(text);
  return small.ends_with(".yaml") || small.ends_with(".yml");
}

} // namespace

std::span<const PixelMoves> pixel_moves() {
  return kPixelMoves;
}

const PixelMoves* find_pixel_moves(std::string_view name) {
  const auto* const row =
      std::ranges::find(kPixelMoves, name, &PixelMoves::name);
  return row == kPixelMoves.end() ? nullptr : row;
}

Augment augment_from_yaml(const std::string& text, const std::string& path) {
  try {
    Augment augment = StepReader(path).read(YAML::Load(text));
    check_steps(augment, path);
    return augment;
  } catch (const YAML::Exception& error) {
    bad_steps(path, error.mark, error.msg);
  }
}

std::string to_yaml(const Augment& augment) {
  std::vector<std::string> steps;
  steps.reserve(augment.steps.size());
  for (const AugmentStep& step : augment.steps) {
    std::vector<std::string> numbers;
    numbers.reserve(step.values.size() + 1);
    for (const auto& [name, values] : step.values) {
      std::vector<std::string> parts;
      parts.reserve(values.size());
      for (const double value : values) {
        parts.push_back(shortest(value));
      }
      const std::string list = join(parts, ", ");
      numbers.push_back(
          values.size() == 1 ? format("{}: {}", name, list)
                             : format("{}: [{}]", name, list));
    }
    if (const auto& probability = step.probability) {
      numbers.push_back(format("{}: {}", kProbability, shortest(*probability)));
    }
    steps.push_back(
        numbers.empty() ? step.name
                        : format("{}: {{{}}}", step.name, join(numbers, ", ")));
  }
  return format("[{}]", join(steps, ", "));
}

std::string resolved_augment(const std::string& text, FileSystem& fs) {
  if (is_word(text)) {
    return text;
  }
  if (text.starts_with('[')) {
    return to_yaml(augment_from_yaml(text, std::string(kInline)));
  }
  if (!names_yaml(text) && !fs.stat(text)) {
    const std::vector<std::string> words = all_words();
    const std::string near = nearest(text, words);
    raise(
        {.code = ErrorCode::kInvalidArgument,
         .op = "train.flags",
         .message = format(
             "--augment: expected {} or a YAML file, got '{}'",
             join(words, ", "),
             escape(text)),
         .hint = near.empty() ? "" : format("did you mean {}?", near),
         .detail = "E_FLAG_VALUE"});
  }
  return to_yaml(augment_from_yaml(read_text(fs, text).value(), text));
}

Augment augment_of(const std::string& resolved) {
  if (find_pixel_moves(resolved) != nullptr) {
    return {};
  }
  return resolved.starts_with('[')
             ? augment_from_yaml(resolved, std::string(kInline))
             : named_augment(resolved);
}

} // namespace lockstep::train
