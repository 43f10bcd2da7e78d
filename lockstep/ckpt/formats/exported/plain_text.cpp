// SPDX-License-Identifier: BSD-3-Clause
//
// Texts of a program that PyTorch evaluates as Python. What is known passes,
// word by word; every other word, call and index is refused.
#include <algorithm>
#include <span>
#include <string_view>
#include <vector>

#include "lockstep/ckpt/formats/exported/operator_rules.h"
#include "lockstep/ckpt/formats/exported/plain_words.h"

namespace lockstep::ckpt {
namespace {

bool has(std::span<const std::string_view> texts, std::string_view text) {
  return std::ranges::find(texts, text) != texts.end();
}

bool is_lower(char c) {
  return c >= 'a' && c <= 'z';
}
bool is_figure(char c) {
  return c >= '0' && c <= '9';
}
bool starts_word(char c) {
  return is_lower(c) || (c >= 'A' && c <= 'Z') || c == '_';
}
bool continues_word(char c) {
  return starts_word(c) || is_figure(c);
}

// "s77", "zuf0", "x": no function of Python or sympy that a call could reach.
bool is_symbol(std::string_view name) {
  const auto* const figures =
      std::find_if_not(name.begin(), name.end(), is_lower);
  return figures != name.begin() &&
         std::all_of(figures, name.end(), is_figure) &&
         (figures != name.end() || name.size() == 1);
}

/// What a text may hold. Everything else is refused.
struct Grammar {
  std::span<const std::string_view> functions = {};
  /// Values.
  std::span<const std::string_view> names = {};
  /// Words in front of `=`.
  std::span<const std::string_view> options = {};
  /// Names behind a dot, which are called.
  std::span<const std::string_view> methods = {};
  /// Modules in front of a dot, all of whose functions may be called.
  std::span<const std::string_view> modules = {};
  /// Functions and values with their module: "torch.sym_float", "math.inf".
  std::span<const std::string_view> dotted = {};
  std::span<const std::string_view> constants = {};
  std::span<const std::string_view> word_operators = kWordOperators;
  std::string_view operators = {};
  /// Texts may stand where values do, not only in functions that take them.
  bool has_texts = false;
};

/// Goes over a text of Python token by token, evaluating nothing.
class PlainText {
 public:
  PlainText(std::string_view text, const Grammar& grammar)
      : rest_(text), grammar_(grammar) {}

  bool run() {
    while (!rest_.empty()) {
      if (rest_.front() == ' ') {
        rest_.remove_prefix(1);
      } else if (!token()) {
        return false;
      }
    }
    return open_.empty();
  }

 private:
  /// What the last token was.
  enum class Last {
    /// A value may follow: the start, an operator, an open bracket.
    kOperator,
    /// The bracket of its arguments must follow.
    kFunction,
    /// As `kFunction`, for one that takes a text.
    kTextFunction,
    kMethod,
    /// The bracket of a function that takes a text.
    kTextBracket,
    kValue,
    /// A value that has indices and methods.
    kTensor,
  };

  bool token() {
    const char c = rest_.front();
    if (starts_word(c)) {
      return word();
    }
    if (is_figure(c)) {
      return takes_value() && number();
    }
    rest_.remove_prefix(1);
    switch (c) {
      case '\'':
        return (grammar_.has_texts ? takes_value()
                                   : last_ == Last::kTextBracket) &&
               quoted();
      case '(':
        return open();
      case ')':
        return close();
      case '[':
        return last_ == Last::kTensor && index();
      case '.':
        return last_ == Last::kTensor && method();
      default:
        return sign(c);
    }
  }

  [[nodiscard]] bool takes_value() const {
    return last_ == Last::kOperator || last_ == Last::kTextBracket;
  }

  std::string_view take_word() {
    const auto* const end = std::ranges::find_if_not(rest_, continues_word);
    const std::string_view taken(rest_.begin(), end);
    rest_.remove_prefix(taken.size());
    return taken;
  }

  [[nodiscard]] bool is_next(char c) const {
    const std::size_t at = rest_.find_first_not_of(' ');
    return at != std::string_view::npos && rest_[at] == c;
  }

  bool word() {
    const std::string_view name = take_word();
    if (has(grammar_.word_operators, name)) {
      last_ = Last::kOperator;
      return true;
    }
    if (!takes_value()) {
      return false;
    }
    if (rest_.starts_with('.') && name != kArguments) {
      return member(name);
    }
    if (is_next('(')) {
      last_ = has(kTextFunctions, name) ? Last::kTextFunction : Last::kFunction;
      return has(grammar_.functions, name);
    }
    if (rest_.starts_with('=') && !rest_.starts_with("==")) {
      rest_.remove_prefix(1);
      last_ = Last::kOperator;
      return !open_.empty() && has(grammar_.options, name);
    }
    last_ = name == kArguments ? Last::kTensor : Last::kValue;
    return has(grammar_.names, name) || is_symbol(name);
  }

  // Of a module, at the dot behind its name.
  bool member(std::string_view module) {
    rest_.remove_prefix(1);
    const std::string_view name = take_word();
    const std::string_view dotted(
        module.data(),
        module.size() + 1 + name.size());
    if (has(grammar_.constants, dotted)) {
      last_ = Last::kValue;
      return true;
    }
    last_ = Last::kFunction;
    const bool is_public = !name.empty() && !name.starts_with('_');
    return is_next('(') && (has(grammar_.dotted, dotted) ||
                            (is_public && has(grammar_.modules, module)));
  }

  // Of arguments or around a value: nothing else is called.
  bool open() {
    if (last_ == Last::kValue || last_ == Last::kTensor) {
      return false;
    }
    open_.push_back(last_);
    last_ = last_ == Last::kTextFunction ? Last::kTextBracket : Last::kOperator;
    return true;
  }

  bool close() {
    if (open_.empty()) {
      return false;
    }
    last_ = open_.back() == Last::kMethod ? Last::kTensor : Last::kValue;
    open_.pop_back();
    return true;
  }

  // Behind the bracket: a number or a name.
  bool index() {
    bool is_plain = false;
    if (rest_.starts_with('\'')) {
      is_plain = key();
    } else {
      is_plain = !rest_.empty() && is_figure(rest_[0]);
      digits();
    }
    if (!is_plain || !rest_.starts_with(']')) {
      return false;
    }
    rest_.remove_prefix(1);
    last_ = Last::kTensor;
    return true;
  }

  // A text that only names an input. PyTorch repeats the condition inside of
  // another text, which a quote would end.
  bool key() {
    rest_.remove_prefix(1);
    return quoted("/");
  }

  bool method() {
    last_ = Last::kMethod;
    return has(grammar_.methods, take_word()) && is_next('(');
  }

  // `=` alone binds a name.
  bool sign(char c) {
    last_ = Last::kOperator;
    if (c == '=' || (c == '!' && rest_.starts_with('='))) {
      const bool is_comparison = rest_.starts_with('=');
      rest_.remove_prefix(is_comparison ? 1 : 0);
      return is_comparison;
    }
    if ((c == '<' || c == '>') && rest_.starts_with('=')) {
      rest_.remove_prefix(1);
    }
    return grammar_.operators.find(c) != std::string_view::npos;
  }

  void digits() {
    while (!rest_.empty() && is_figure(rest_[0])) {
      rest_.remove_prefix(1);
    }
  }

  // "12", "1.5", "1e-05": no attribute of a number.
  bool number() {
    digits();
    if (rest_.starts_with('.')) {
      rest_.remove_prefix(1);
      digits();
    }
    if (rest_.starts_with('e')) {
      rest_.remove_prefix(
          rest_.starts_with("e-") || rest_.starts_with("e+") ? 2 : 1);
      digits();
    }
    last_ = Last::kValue;
    return rest_.empty() || !(starts_word(rest_[0]) || rest_[0] == '.');
  }

  // Behind the first quote.
  bool quoted(std::string_view more = {}) {
    const std::size_t end = rest_.find('\'');
    if (end == std::string_view::npos) {
      return false;
    }
    const std::string_view text = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    last_ = Last::kValue;
    return std::ranges::all_of(text, [more](char c) {
      return continues_word(c) || c == '.' || c == '-' || c == '+' ||
             c == ' ' || c == ':' || more.find(c) != std::string_view::npos;
    });
  }

  std::string_view rest_;
  const Grammar& grammar_;
  Last last_ = Last::kOperator;
  // What stood before each open bracket.
  std::vector<Last> open_;
};

} // namespace

bool is_plain_expression(std::string_view text) {
  static constexpr Grammar kGrammar{
      .functions = kExpressionFunctions,
      .names = kExpressionNames,
      .options = kExpressionOptions,
      .operators = ",+-*/%<>~&|"};
  return PlainText(text, kGrammar).run();
}

bool is_plain_guard(std::string_view text) {
  static constexpr Grammar kGrammar{
      .functions = kGuardFunctions,
      .names = kGuardNames,
      .methods = kGuardMethods,
      .modules = kGuardModules,
      .dotted = kGuardDotted,
      .constants = kGuardConstants,
      .word_operators = kGuardWordOperators,
      .operators = ",+-*/%<>",
      .has_texts = true};
  return PlainText(text, kGrammar).run();
}

} // namespace lockstep::ckpt
