// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/program/internal/numbers.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <compare>
#include <cstdint>
#include <limits>

#include <c10/util/Exception.h>

namespace lockstep::program {
namespace {

using Value = c10::IValue;
using Values = std::span<const Value>;

bool is_whole(const Value& value) {
  return value.isInt() || value.isBool();
}

std::int64_t whole(const Value& value) {
  return value.isBool() ? static_cast<std::int64_t>(value.toBool())
                        : value.toInt();
}

double real(const Value& value) {
  return is_whole(value) ? static_cast<double>(whole(value)) : value.toDouble();
}

bool truth(const Value& value) {
  return is_whole(value) ? whole(value) != 0 : value.toDouble() != 0.0;
}

[[noreturn]] void overflow() {
  TORCH_CHECK(false, "a number does not fit in 64 bits");
}

// By one rule for whole numbers, where a result must fit, and one for others.
Value arithmetic(
    Values values,
    bool (*of_whole)(std::int64_t, std::int64_t, std::int64_t*),
    double (*of_real)(double, double)) {
  if (is_whole(values[0]) && is_whole(values[1])) {
    std::int64_t result = 0;
    if (of_whole(whole(values[0]), whole(values[1]), &result)) {
      overflow();
    }
    return result;
  }
  return of_real(real(values[0]), real(values[1]));
}

Value add(Values values) {
  return arithmetic(
      values,
      [](std::int64_t a, std::int64_t b, std::int64_t* out) {
        return __builtin_add_overflow(a, b, out);
      },
      [](double a, double b) { return a + b; });
}

Value subtract(Values values) {
  return arithmetic(
      values,
      [](std::int64_t a, std::int64_t b, std::int64_t* out) {
        return __builtin_sub_overflow(a, b, out);
      },
      [](double a, double b) { return a - b; });
}

Value multiply(Values values) {
  return arithmetic(
      values,
      [](std::int64_t a, std::int64_t b, std::int64_t* out) {
        return __builtin_mul_overflow(a, b, out);
      },
      [](double a, double b) { return a * b; });
}

void check_divisor(std::int64_t a, std::int64_t b) {
  TORCH_CHECK(b != 0, "division by zero");
  if (a == std::numeric_limits<std::int64_t>::min() && b == -1) {
    overflow();
  }
}

// Towards minus infinity, as Python.
std::int64_t floor_divide(std::int64_t a, std::int64_t b) {
  check_divisor(a, b);
  const std::int64_t quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

Value floordiv(Values values) {
  if (is_whole(values[0]) && is_whole(values[1])) {
    return floor_divide(whole(values[0]), whole(values[1]));
  }
  TORCH_CHECK(real(values[1]) != 0.0, "division by zero");
  return std::floor(real(values[0]) / real(values[1]));
}

Value modulo(Values values) {
  if (is_whole(values[0]) && is_whole(values[1])) {
    const std::int64_t a = whole(values[0]);
    const std::int64_t b = whole(values[1]);
    return a - floor_divide(a, b) * b;
  }
  const double b = real(values[1]);
  TORCH_CHECK(b != 0.0, "division by zero");
  const double rest = std::fmod(real(values[0]), b);
  return rest != 0.0 && (rest < 0.0) != (b < 0.0) ? rest + b : rest;
}

Value truediv(Values values) {
  TORCH_CHECK(real(values[1]) != 0.0, "division by zero");
  return real(values[0]) / real(values[1]);
}

Value power(Values values) {
  if (!is_whole(values[0]) || !is_whole(values[1]) || whole(values[1]) < 0) {
    return std::pow(real(values[0]), real(values[1]));
  }
  std::int64_t result = 1;
  const std::int64_t base = whole(values[0]);
  const std::int64_t exponent = whole(values[1]);
  // Of 0, 1 and -1 any power fits: others overflow within 64 steps.
  const std::int64_t steps =
      base >= -1 && base <= 1 && exponent > 2 ? 2 + exponent % 2 : exponent;
  for (std::int64_t i = 0; i < steps; ++i) {
    if (__builtin_mul_overflow(result, base, &result)) {
      overflow();
    }
  }
  return result;
}

std::partial_ordering compare(Values values) {
  return is_whole(values[0]) && is_whole(values[1])
             ? std::partial_ordering(whole(values[0]) <=> whole(values[1]))
             : real(values[0]) <=> real(values[1]);
}

template <bool (*holds)(std::partial_ordering)>
Value comparison(Values values) {
  return holds(compare(values));
}

Value logical_and(Values values) {
  return values[0].isBool() ? Value(truth(values[0]) && truth(values[1]))
                            : Value(whole(values[0]) & whole(values[1]));
}

Value logical_or(Values values) {
  return values[0].isBool() ? Value(truth(values[0]) || truth(values[1]))
                            : Value(whole(values[0]) | whole(values[1]));
}

std::int64_t bits_to_shift(Values values) {
  const std::int64_t bits = whole(values[1]);
  TORCH_CHECK(bits >= 0, "a shift by ", bits, " bits");
  return std::min<std::int64_t>(bits, 63);
}

// Rounded down.
Value shift_right(Values values) {
  return whole(values[0]) >> bits_to_shift(values);
}

Value shift_left(Values values) {
  const std::int64_t number = whole(values[0]);
  const std::int64_t bits = bits_to_shift(values);
  std::int64_t shifted = 0;
  if (number != 0 &&
      (bits > 62 ||
       __builtin_mul_overflow(number, std::int64_t{1} << bits, &shifted))) {
    overflow();
  }
  return shifted;
}

Value negate(Values values) {
  return is_whole(values[0])
             ? subtract(std::array<Value, 2>{Value(0), values[0]})
             : Value(-values[0].toDouble());
}

Value logical_not(Values values) {
  return !truth(values[0]);
}

Value same(Values values) {
  return values[0];
}

Value to_real(Values values) {
  return real(values[0]);
}

template <double (*round)(double)>
Value rounded(Values values) {
  if (is_whole(values[0])) {
    return whole(values[0]);
  }
  const double result = round(values[0].toDouble());
  if (!(std::abs(result) < 9.2e18)) {
    overflow();
  }
  return static_cast<std::int64_t>(result);
}

Value square_root(Values values) {
  TORCH_CHECK(real(values[0]) >= 0.0, "square root of a negative number");
  return std::sqrt(real(values[0]));
}

Value larger(Values values) {
  return compare(values) < 0 ? values[1] : values[0];
}

Value smaller(Values values) {
  return compare(values) > 0 ? values[1] : values[0];
}

Value choose(Values values) {
  return truth(values[0]) ? values[1] : values[2];
}

constexpr std::array kRows = {
    NumberRow{"_operator.add", 2, add},
    NumberRow{"_operator.sub", 2, subtract},
    NumberRow{"_operator.mul", 2, multiply},
    NumberRow{"_operator.floordiv", 2, floordiv},
    NumberRow{"_operator.mod", 2, modulo},
    NumberRow{"_operator.truediv", 2, truediv},
    NumberRow{"_operator.pow", 2, power},
    NumberRow{"_operator.eq", 2, comparison<std::is_eq>},
    NumberRow{"_operator.ne", 2, comparison<std::is_neq>},
    NumberRow{"_operator.lt", 2, comparison<std::is_lt>},
    NumberRow{"_operator.le", 2, comparison<std::is_lteq>},
    NumberRow{"_operator.gt", 2, comparison<std::is_gt>},
    NumberRow{"_operator.ge", 2, comparison<std::is_gteq>},
    NumberRow{"_operator.and_", 2, logical_and},
    NumberRow{"_operator.or_", 2, logical_or},
    NumberRow{"_operator.lshift", 2, shift_left},
    NumberRow{"_operator.rshift", 2, shift_right},
    NumberRow{"_operator.neg", 1, negate},
    NumberRow{"_operator.pos", 1, same},
    NumberRow{"torch.sym_not", 1, logical_not},
    NumberRow{"torch.sym_float", 1, to_real},
    NumberRow{"torch.sym_int", 1, rounded<std::trunc>},
    NumberRow{"torch.sym_sqrt", 1, square_root},
    NumberRow{"torch._sym_sqrt", 1, square_root},
    NumberRow{"torch.sym_max", 2, larger},
    NumberRow{"torch.sym_min", 2, smaller},
    NumberRow{"torch.sym_ite", 3, choose},
    NumberRow{"math.trunc", 1, rounded<std::trunc>},
    NumberRow{"math.floor", 1, rounded<std::floor>},
    NumberRow{"math.ceil", 1, rounded<std::ceil>},
};

} // namespace

const NumberRow* find_number_function(std::string_view target) {
  const auto* row = std::ranges::find(kRows, target, &NumberRow::target);
  return row == kRows.end() ? nullptr : &*row;
}

} // namespace lockstep::program
