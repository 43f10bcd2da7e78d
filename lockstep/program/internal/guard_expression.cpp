// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/program/internal/guard_expression.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

#include <c10/util/SmallVector.h>

namespace lockstep::program {
namespace {

constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();

// The sign is the divisor's, as in Python.
double modulo(double a, double b) {
  const double rest = b == 0 ? kNoNumber : std::fmod(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}
/// Two values and a word between them, or before them.
struct Binary {
  std::string_view text;
  double (*function)(double, double);
};
/// A word before a value.
struct Unary {
  std::string_view text;
  double (*function)(double);
};

// What has no number makes no truth either.
template <class Holds>
double truth(double a, double b) {
  return std::isnan(a) || std::isnan(b) ? kNoNumber : Holds()(a, b) ? 1 : 0;
}

// The second value counts only where the first does not decide, as in Python.
double both(double a, double b) {
  return a == 0 || std::isnan(a) ? a : truth<std::not_equal_to<>>(b, 0);
}
double either(double a, double b) {
  return a != 0 && !std::isnan(a) ? 1
         : std::isnan(a)          ? a
                                  : truth<std::not_equal_to<>>(b, 0);
}

template <class Holds>
double choice_of(double a, double b) {
  return std::isnan(a) || std::isnan(b) ? kNoNumber : Holds()(b, a) ? b : a;
}

// From the loosest to the tightest; a longer word before its beginning.
constexpr std::array kOr{Binary{"or ", either}};
constexpr std::array kAnd{Binary{"and ", both}};
constexpr std::array kComparisons{
    Binary{"<=", truth<std::less_equal<>>},
    Binary{">=", truth<std::greater_equal<>>},
    Binary{"==", truth<std::equal_to<>>},
    Binary{"!=", truth<std::not_equal_to<>>},
    Binary{"<", truth<std::less<>>},
    Binary{">", truth<std::greater<>>}};
constexpr std::array kSums{
    Binary{"+", [](double a, double b) { return a + b; }},
    Binary{"-", [](double a, double b) { return a - b; }}};
constexpr std::array kProducts{
    Binary{"//", [](double a, double b) { return (a - modulo(a, b)) / b; }},
    Binary{"/", [](double a, double b) { return b == 0 ? kNoNumber : a / b; }},
    Binary{"*", [](double a, double b) { return a * b; }},
    Binary{"%", modulo}};
constexpr Binary kPower{"**", [](double a, double b) {
                          return std::pow(a, b);
                        }};
// The first two until PyTorch 2.13, the others from 2.14 on.
constexpr std::array kChoices{
    Binary{"max(", choice_of<std::greater<>>},
    Binary{"min(", choice_of<std::less<>>},
    Binary{"torch.sym_max(", choice_of<std::greater<>>},
    Binary{"torch.sym_min(", choice_of<std::less<>>}};
constexpr Unary kNegate{"-", [](double x) { return -x; }};
constexpr Unary kNot{"not ", [](double x) {
                       return truth<std::equal_to<>>(x, 0);
                     }};
constexpr std::array kFunctions{
    Unary{"abs(", [](double x) { return std::abs(x); }},
    Unary{"math.floor(", [](double x) { return std::floor(x); }},
    Unary{"math.ceil(", [](double x) { return std::ceil(x); }},
    Unary{"math.trunc(", [](double x) { return std::trunc(x); }},
    Unary{"round(", [](double x) { return std::nearbyint(x); }},
    Unary{"math.sqrt(", [](double x) { return std::sqrt(x); }},
    Unary{"torch._sym_sqrt(", [](double x) { return std::sqrt(x); }}};

class Parser {
 public:
  Parser(
      std::string_view text,
      std::vector<GuardStep>& steps,
      std::vector<GuardSource>& sources)
      : rest_(text), steps_(steps), sources_(sources) {}

  bool run() {
    return expression() && (spaces(), rest_.empty());
  }

 private:
  static constexpr int kMostDepth = 64;
  static constexpr std::size_t kMostSources = 64; // each is compared with all

  bool expression() {
    return chain(kOr, &Parser::conjunction);
  }
  bool conjunction() {
    return chain(kAnd, &Parser::negation);
  }
  bool negation() {
    spaces();
    return accept(kNot.text) ? nested(&Parser::negation) && push(kNot)
                             : comparison();
  }
  // Of two sides: Python's chains of three do not occur.
  bool comparison() {
    if (!sum()) {
      return false;
    }
    const Binary* const word = next_of(kComparisons);
    return word == nullptr ||
           (sum() && push(*word) && next_of(kComparisons) == nullptr);
  }
  bool sum() {
    return chain(kSums, &Parser::product);
  }
  bool product() {
    return chain(kProducts, &Parser::sign);
  }
  bool sign() {
    spaces();
    return accept(kNegate.text) ? nested(&Parser::sign) && push(kNegate)
                                : power();
  }
  bool power() {
    if (!value()) {
      return false;
    }
    spaces();
    return !accept(kPower.text) || (nested(&Parser::sign) && push(kPower));
  }

  bool value() {
    spaces();
    if (accept("(") || accept("torch.sym_float(")) {
      return nested(&Parser::expression) && accept(")");
    }
    for (const Unary& word : kFunctions) {
      if (accept(word.text)) {
        return nested(&Parser::expression) && accept(")") && push(word);
      }
    }
    for (const Binary& word : kChoices) {
      if (accept(word.text)) {
        return choice(word);
      }
    }
    return accept("L") ? source() : number();
  }

  bool choice(const Binary& word) {
    if (!nested(&Parser::expression)) {
      return false;
    }
    while (accept(",")) {
      if (!nested(&Parser::expression) || !push(word)) {
        return false;
      }
    }
    return accept(")");
  }

  bool number() {
    for (const auto& [text, value] :
         {std::pair("True", 1.0),
          std::pair("False", 0.0),
          std::pair("math.inf", std::numeric_limits<double>::infinity())}) {
      if (accept(text)) {
        steps_.push_back({.number = value});
        return true;
      }
    }
    double value = 0;
    const auto [end, problem] =
        std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (problem != std::errc()) {
      return false;
    }
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    steps_.push_back({.number = value});
    return true;
  }

  // Behind "L": "['x'][0].size()[1]".
  bool source() {
    GuardSource found;
    while (rest_.starts_with('[')) {
      if (!key(found.path)) {
        return false;
      }
    }
    if (found.path.empty()) {
      return false;
    }
    if (!what_of(found)) {
      return false;
    }
    const auto known = std::ranges::find(sources_, found);
    const auto index = static_cast<std::size_t>(known - sources_.begin());
    if (known == sources_.end()) {
      if (index == kMostSources) {
        return false;
      }
      sources_.push_back(std::move(found));
    }
    steps_.push_back({.source = index});
    return true;
  }

  // Adds "['k']" or "[0]" to a path, which begins with a name.
  bool key(std::string& path) {
    rest_.remove_prefix(1);
    const bool is_quoted = rest_.starts_with('\'') || rest_.starts_with('"');
    const std::size_t begin = is_quoted ? 1 : 0;
    const std::size_t end = rest_.find(is_quoted ? rest_.front() : ']', begin);
    if (end == std::string_view::npos || (path.empty() && !is_quoted)) {
      return false;
    }
    const std::string name(rest_.substr(begin, end - begin));
    path += path.empty() ? name : "[" + name + "]";
    rest_.remove_prefix(end + begin);
    return accept("]");
  }

  bool what_of(GuardSource& found) {
    if (accept(".storage_offset()")) {
      found.kind = GuardNumber::kOffset;
      return true;
    }
    if (!rest_.starts_with('.')) {
      return true;
    }
    found.kind =
        rest_.starts_with(".size") ? GuardNumber::kSize : GuardNumber::kStride;
    if (!accept(".size()[") && !accept(".stride()[")) {
      return false;
    }
    const auto [end, problem] = std::from_chars(
        rest_.data(),
        rest_.data() + rest_.size(),
        found.dimension);
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    return problem == std::errc() && accept("]");
  }

  template <std::size_t N>
  bool chain(const std::array<Binary, N>& words, bool (Parser::*part)()) {
    if (!(this->*part)()) {
      return false;
    }
    while (const Binary* const word = next_of(words)) {
      if (!(this->*part)() || !push(*word)) {
        return false;
      }
    }
    return true;
  }

  bool nested(bool (Parser::*part)()) {
    depth_ += 1;
    const bool is_read = depth_ <= kMostDepth && (this->*part)();
    depth_ -= 1;
    spaces();
    return is_read;
  }

  template <std::size_t N>
  const Binary* next_of(const std::array<Binary, N>& words) {
    spaces();
    for (const Binary& word : words) {
      if (accept(word.text)) {
        return &word;
      }
    }
    return nullptr;
  }

  bool push(const Unary& word) {
    steps_.push_back({.one = word.function});
    return true;
  }
  bool push(const Binary& word) {
    steps_.push_back({.two = word.function});
    return true;
  }

  bool accept(std::string_view word) {
    const bool is_next = rest_.starts_with(word);
    rest_.remove_prefix(is_next ? word.size() : 0);
    return is_next;
  }

  void spaces() {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(' '), rest_.size()));
  }

  std::string_view rest_;
  std::vector<GuardStep>& steps_;
  std::vector<GuardSource>& sources_;
  int depth_ = 0;
};

} // namespace

std::optional<GuardExpression> GuardExpression::parse(std::string_view text) {
  GuardExpression result;
  const bool is_read = Parser(text, result.steps_, result.sources_).run();
  return is_read ? std::optional(std::move(result)) : std::nullopt;
}

double GuardExpression::evaluate(std::span<const double> values) const {
  c10::SmallVector<double, 16> stack;
  for (const GuardStep& step : steps_) {
    if (step.one != nullptr) {
      stack.back() = step.one(stack.back());
    } else if (step.two != nullptr) {
      const double b = stack.back();
      stack.pop_back();
      stack.back() = step.two(stack.back(), b);
    } else {
      stack.push_back(step.source ? values[*step.source] : step.number);
    }
  }
  return stack.back();
}

bool GuardExpression::is_of_small_sizes() const {
  const bool is_of_a_source = steps_.size() == 3 && !steps_[1].source &&
                              sources_.size() == 1 &&
                              sources_[0].kind == GuardNumber::kSize;
  if (!is_of_a_source || !steps_[0].source) {
    return false;
  }
  const double bound = steps_[1].number;
  auto* const function = steps_[2].two;
  return (function == truth<std::not_equal_to<>> &&
          (bound == 0 || bound == 1)) ||
         (function == truth<std::greater<>> && bound <= 1) ||
         (function == truth<std::greater_equal<>> && bound <= 2);
}

} // namespace lockstep::program
