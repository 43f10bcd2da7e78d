// SPDX-License-Identifier: BSD-3-Clause
//
// A condition between sizes, as torch.export writes it in Python:
// "L['x'].size()[0] % 3 == 0".
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::program {

enum class GuardNumber : std::uint8_t { kValue, kSize, kStride, kOffset };

/// A number that an input has: of "L['x']['k'].size()[1]" the path "x[k]",
/// without quotes, `kSize` and 1.
struct GuardSource {
  std::string path = {};
  GuardNumber kind = GuardNumber::kValue;
  std::size_t dimension = 0;

  friend bool operator==(const GuardSource&, const GuardSource&) = default;
};

/// In reverse Polish notation: a function of the last values, or a value.
struct GuardStep {
  double (*one)(double) = nullptr;
  double (*two)(double, double) = nullptr;
  /// Place in `GuardExpression::sources()`; without one `number` is the value.
  std::optional<std::size_t> source = {};
  double number = 0;
};

/// Parsed once, evaluated for all inputs, from any threads.
class GuardExpression {
 public:
  /// Nothing for a text with other words, of more than 64 numbers of inputs or
  /// of more than 64 brackets in one another.
  static std::optional<GuardExpression> parse(std::string_view text);

  [[nodiscard]] const std::vector<GuardSource>& sources() const {
    return sources_;
  }

  /// What Python's evaluation gives, as far as numbers below 2^53 go; not a
  /// number where Python raises, as for a division by zero.
  /// `values[i]`: of `sources()[i]`.
  [[nodiscard]] double evaluate(std::span<const double> values) const;

  /// True for "L['x'].size()[0] != 1" and the like, by which torch.export keeps
  /// a size that it made dynamic from being 0 or 1.
  [[nodiscard]] bool is_of_small_sizes() const;

 private:
  std::vector<GuardStep> steps_ = {};
  std::vector<GuardSource> sources_ = {};
};

} // namespace lockstep::program
