// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/program/internal/sizes.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/tensor/modules.h"

namespace lockstep::program {
namespace {

/// `factor` times a symbol and `offset`.
struct Affine {
  std::int64_t factor = 0;
  std::int64_t offset = 0;
  std::string symbol = {};
};

// Reads sympy's text of an expression with one symbol: "Add(Mul(Integer(2),
// Symbol('s0', integer=True)), Integer(1))".
class AffineReader {
 public:
  explicit AffineReader(std::string_view text) : text_(text) {}

  std::optional<Affine> run() {
    auto result = expression(0);
    return text_.empty() ? result : std::nullopt;
  }

 private:
  static constexpr int kMaxDepth = 8;

  std::optional<Affine> expression(int depth) {
    if (depth > kMaxDepth) {
      return std::nullopt;
    }
    if (accept("Integer(")) {
      return integer();
    }
    if (accept("Symbol('")) {
      const std::size_t end = text_.find('\'');
      const std::size_t close = text_.find(')');
      if (end == std::string_view::npos || close == std::string_view::npos ||
          close < end) {
        return std::nullopt;
      }
      Affine result{.factor = 1, .symbol = std::string(text_.substr(0, end))};
      text_.remove_prefix(close + 1);
      return result;
    }
    const bool is_sum = accept("Add(");
    return is_sum || accept("Mul(") ? terms(is_sum, depth) : std::nullopt;
  }

  std::optional<Affine> terms(bool is_sum, int depth) {
    auto total = expression(depth + 1);
    while (total && accept(", ")) {
      const auto next = expression(depth + 1);
      total = next ? combine(*total, *next, is_sum) : std::nullopt;
    }
    return accept(")") ? total : std::nullopt;
  }

  static std::optional<Affine>
  combine(const Affine& a, const Affine& b, bool is_sum) {
    if (!a.symbol.empty() && !b.symbol.empty()) {
      return std::nullopt;
    }
    const Affine& named = a.symbol.empty() ? b : a;
    const Affine& plain = a.symbol.empty() ? a : b;
    Affine result{.symbol = named.symbol};
    const bool overflows =
        is_sum ? __builtin_add_overflow(a.offset, b.offset, &result.offset)
               : __builtin_mul_overflow(
                     named.factor,
                     plain.offset,
                     &result.factor) ||
                     __builtin_mul_overflow(
                         named.offset,
                         plain.offset,
                         &result.offset);
    if (is_sum) {
      result.factor = named.factor;
    }
    return overflows ? std::nullopt : std::optional(result);
  }

  std::optional<Affine> integer() {
    Affine result;
    const auto [stop, problem] = std::from_chars(
        text_.data(),
        text_.data() + text_.size(),
        result.offset);
    text_.remove_prefix(static_cast<std::size_t>(stop - text_.data()));
    return problem == std::errc() && accept(")") ? std::optional(result)
                                                 : std::nullopt;
  }

  bool accept(std::string_view word) {
    const bool is_next = text_.starts_with(word);
    text_.remove_prefix(is_next ? word.size() : 0);
    return is_next;
  }

  std::string_view text_;
};

[[noreturn]] void mismatch(std::string message, std::string hint = {}) {
  raise(
      {.code = ErrorCode::kMismatch,
       .op = "program.run",
       .message = std::move(message),
       .hint = std::move(hint),
       .detail = "E_PROGRAM_INPUT"});
}

// What torch.export takes for granted of a size that it made dynamic: it asks
// for 2, but nets take 0 and 1 as well.
constexpr std::int64_t kAssumedMin = 2;

// Of the factor and the offset of a size, so that sums stay below 2^63.
constexpr std::int64_t kMaxTerm = 1LL << 31;

// The size that this value of the symbol gives.
std::string size_text(const SizeRule& rule, std::int64_t value) {
  std::int64_t size = 0;
  return __builtin_mul_overflow(rule.factor, value, &size) ||
                 __builtin_add_overflow(size, rule.offset, &size)
             ? "any"
             : std::to_string(size);
}

} // namespace

InputSizes::InputSizes(const ckpt::ExportedModel& model) {
  for (const ckpt::ExportedInput& input : model.inputs) {
    if (input.kind != ckpt::ExportedInputKind::kUser &&
        input.kind != ckpt::ExportedInputKind::kConstant) {
      continue;
    }
    auto& rules = inputs_.emplace_back();
    if (input.kind == ckpt::ExportedInputKind::kConstant ||
        input.argument.kind != ckpt::ExportedKind::kTensor) {
      continue;
    }
    const auto meta = model.graph.tensors.find(input.argument.text);
    if (meta == model.graph.tensors.end()) {
      raise(
          {.code = ErrorCode::kCorrupt,
           .op = "program.load",
           .message = format(
               "the file does not say which sizes input '{}' has",
               escape(input.argument.text)),
           .detail = "E_PROGRAM"});
    }
    rules.emplace();
    for (const ckpt::ExportedSize& size : meta->second.sizes) {
      rules->push_back(rule_of(size, model));
    }
  }
}

SizeRule InputSizes::rule_of(
    const ckpt::ExportedSize& size,
    const ckpt::ExportedModel& model) {
  if (size.expression.empty()) {
    return {.offset = size.value.value_or(0)};
  }
  const auto affine = AffineReader(size.expression).run();
  const bool is_usable =
      affine && affine->factor >= 0 && affine->factor <= kMaxTerm &&
      affine->offset >= -kMaxTerm && affine->offset <= kMaxTerm;
  if (!is_usable) {
    return {.is_free = true};
  }
  if (affine->factor == 0) {
    return {.offset = affine->offset};
  }
  const auto [symbol, is_new] =
      places_.try_emplace(affine->symbol, symbols_.size());
  if (is_new) {
    const auto range = model.ranges.find(affine->symbol);
    symbols_.push_back(
        {affine->symbol,
         range == model.ranges.end() ? ckpt::ExportedRange() : range->second});
  }
  return {
      .factor = affine->factor,
      .offset = affine->offset,
      .symbol = symbol->second};
}

void InputSizes::check(
    const std::vector<c10::IValue>& inputs,
    const std::vector<std::string>& names) const {
  std::vector<std::optional<std::int64_t>> bound(symbols_.size());
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    const std::optional<std::vector<SizeRule>>& given = inputs_[i];
    if (!given) {
      continue; // no tensor
    }
    const std::vector<SizeRule>& rules = *given;
    const auto sizes = inputs[i].toTensor().sizes();
    if (sizes.size() != rules.size()) {
      mismatch(format(
          "input '{}' has the sizes {}; expected {} dimensions, got {}",
          names[i],
          tuple_text(sizes),
          rules.size(),
          sizes.size()));
    }
    for (std::size_t d = 0; d < rules.size(); ++d) {
      if (rules[d].factor != 0) {
        check_size(
            rules[d],
            sizes[d],
            format("input '{}' size {}", names[i], d),
            bound);
      } else if (!rules[d].is_free && sizes[d] != rules[d].offset) {
        mismatch(
            format(
                "input '{}' size {} is {}, exported for {}",
                names[i],
                d,
                sizes[d],
                rules[d].offset),
            format(
                "export with dynamic_shapes={{'{}': {{{}: "
                "torch.export.Dim('size')}}}}",
                names[i],
                d));
      }
    }
  }
}

void InputSizes::check_size(
    const SizeRule& rule,
    std::int64_t size,
    const std::string& place,
    std::vector<std::optional<std::int64_t>>& bound) const {
  const SymbolRule& symbol = symbols_[rule.symbol];
  const std::int64_t rest = size - rule.offset;
  if (rest % rule.factor != 0) {
    mismatch(format(
        "{} is {}; exported for {} times a whole number{}",
        place,
        size,
        rule.factor,
        rule.offset == 0 ? "" : format(" and {}", rule.offset)));
  }
  const std::int64_t value = rest / rule.factor;
  std::optional<std::int64_t>& known = bound[rule.symbol];
  if (known && *known != value) {
    mismatch(format(
        "{} is {}; expected {}, as another input has it (dimension {})",
        place,
        size,
        size_text(rule, *known),
        symbol.name));
  }
  known = value;
  const std::int64_t low = symbol.range.min.value_or(0);
  const bool is_low = value < 0 || (low > kAssumedMin && value < low);
  if (is_low || (symbol.range.max && value > *symbol.range.max)) {
    mismatch(
        format(
            "{} is {}; exported for {} to {}",
            place,
            size,
            size_text(rule, low),
            symbol.range.max ? size_text(rule, *symbol.range.max) : "any"),
        "export with a wider range: torch.export.Dim('size', min=, max=)");
  }
}

} // namespace lockstep::program
