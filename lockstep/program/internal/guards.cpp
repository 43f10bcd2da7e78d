// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/program/internal/guards.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/internal/numbers.h"
#include "lockstep/base/strings.h"

namespace lockstep::program {
namespace {

// "x['k']" as "x[k]": a file's names of inputs have quotes around all keys.
std::string without_quotes(std::string name) {
  std::erase_if(name, [](char c) { return c == '\'' || c == '"'; });
  return name;
}

// How the signature may call "args[0]" and "kwargs[y][k]": "args_0" and "y[k]",
// if it does not call it so.
std::vector<std::string> names_of(const std::string& path) {
  std::vector<std::string> names{path};
  const std::size_t bracket = path.find('[');
  const std::size_t end = path.find(']', bracket);
  if (end != std::string::npos) {
    const std::string key = path.substr(bracket + 1, end - bracket - 1);
    const std::string rest = path.substr(end + 1);
    names.push_back(path.substr(0, bracket) + "_" + key + rest);
    names.push_back(key + rest);
  }
  return names;
}

// Places of inputs by their names without quotes.
using InputPlaces = std::map<std::string, std::size_t>;

std::optional<std::size_t> input_at(
    const InputPlaces& inputs,
    const std::string& path) {
  for (const std::string& name : names_of(without_quotes(path))) {
    if (const auto found = inputs.find(name); found != inputs.end()) {
      return found->second;
    }
  }
  constexpr std::string_view kFlat = "flat_args[";
  if (path.starts_with(kFlat) && path.ends_with(']')) {
    const auto index = parse_number<std::size_t>(std::string_view(path).substr(
        kFlat.size(),
        path.size() - kFlat.size() - 1));
    return index && *index < inputs.size() ? index : std::nullopt;
  }
  return std::nullopt;
}

// Nothing for a dimension or a kind of number that the input does not have.
std::optional<double> number_of(
    const GuardSource& source,
    const c10::IValue& input) {
  if (source.kind == GuardNumber::kValue) {
    return input.isScalar() ? std::optional(input.toScalar().toDouble())
                            : std::nullopt;
  }
  if (!input.isTensor()) {
    return std::nullopt;
  }
  const at::Tensor& tensor = input.toTensor();
  if (source.kind == GuardNumber::kOffset) {
    return static_cast<double>(tensor.storage_offset());
  }
  const auto numbers =
      source.kind == GuardNumber::kSize ? tensor.sizes() : tensor.strides();
  return source.dimension < numbers.size()
             ? std::optional(static_cast<double>(numbers[source.dimension]))
             : std::nullopt;
}

std::string text_of(const GuardSource& source, double value) {
  const std::string name =
      source.kind == GuardNumber::kSize
          ? format("{}.size()[{}]", source.path, source.dimension)
      : source.kind == GuardNumber::kStride
          ? format("{}.stride()[{}]", source.path, source.dimension)
      : source.kind == GuardNumber::kOffset ? source.path + ".storage_offset()"
                                            : source.path;
  return format("{} is {}", name, value);
}

[[noreturn]] void refuse(
    const std::string& text,
    const GuardExpression& expression,
    const std::vector<double>& values) {
  std::vector<std::string> sizes;
  sizes.reserve(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    sizes.push_back(text_of(expression.sources()[i], values[i]));
  }
  raise(
      {.code = ErrorCode::kMismatch,
       .op = "program.run",
       .message = format(
           "the program is right for inputs with {} only; {}",
           text,
           join(sizes, ", ")),
       .hint = "the net may take another branch for these sizes: export it "
               "with inputs of such sizes, too; ProgramOptions::check_guards "
               "= false runs this branch all the same",
       .detail = "E_PROGRAM_INPUT"});
}

} // namespace

InputGuards::InputGuards(
    const std::vector<std::string>& texts,
    const std::vector<std::string>& names) {
  InputPlaces places;
  for (std::size_t i = 0; i < names.size(); ++i) {
    places.try_emplace(without_quotes(names[i]), i);
  }
  for (const std::string& text : texts) {
    auto expression = GuardExpression::parse(text);
    std::vector<std::size_t> inputs;
    if (expression) {
      for (const GuardSource& source : expression->sources()) {
        if (const auto input = input_at(places, source.path)) {
          inputs.push_back(*input);
        }
      }
    }
    if (!expression || inputs.size() < expression->sources().size()) {
      unread_.push_back(text);
    } else if (!expression->is_of_small_sizes()) {
      guards_.push_back({text, *std::move(expression), std::move(inputs)});
    }
  }
}

void InputGuards::check(const std::vector<c10::IValue>& inputs) const {
  std::vector<double> values;
  for (const Guard& guard : guards_) {
    values.clear();
    for (std::size_t i = 0; i < guard.inputs.size(); ++i) {
      const auto number =
          number_of(guard.expression.sources()[i], inputs[guard.inputs[i]]);
      values.push_back(
          number.value_or(std::numeric_limits<double>::quiet_NaN()));
    }
    const double result = guard.expression.evaluate(values);
    if (result == 0 || std::isnan(result)) {
      refuse(guard.text, guard.expression, values);
    }
  }
}

} // namespace lockstep::program
